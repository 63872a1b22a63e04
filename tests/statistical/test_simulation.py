"""What is simulated has the law of devices with ciphertexts.

False-alarm rate 1e-6 an assertion, and each check rejects what is off by 30 %.
"""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from panprivacy.audit.ideal import IdealEncryption, MemoryStorage
from panprivacy.devices.federated import device as device_module
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.shares import BothServers
from panprivacy.devices.federated.simulation import DevicePopulation, _Fleet, simulate
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.testing import SeededCoins

from .checks import OFF, accepted, centred, chi_square_tail, rejected, spreads

DEVICES, TICKS, RUNS = 6_000, 3, 400
PROMISE = Promise(epsilon=Fraction(2))
ROUGH = Promise(epsilon=Fraction(2), delta=Fraction(1, 10))
KINDS = [
    CountNonZero.planned(PROMISE),
    DeviceHistogram.planned(PROMISE, most=2),
    Mean.planned(ROUGH, most=2),
]
_WORTH_A_CELL = 100


class Apart(SeededCoins):
    """Coins whose noise does not depend on how many secrets are drawn."""

    def __init__(self, seed):
        super().__init__(seed)
        self._secrets = SeededCoins(seed + 1_000_000)

    def secret(self, nbytes):
        return self._secrets.key(nbytes)


def more_private(kind):
    """The same with noise that is off by 30 %."""
    if isinstance(kind, Mean):
        return Mean(most=kind.most, variance=kind.variance * Fraction(OFF))
    fields = {"most": kind.most} if isinstance(kind, DeviceHistogram) else {}
    return type(kind)(epsilon_0=kind.epsilon_0 / Fraction(OFF), **fields)


def observed(devices, ticks=TICKS):
    """Coins that are fair, uint8[devices, ticks]: all numbers of events are there."""
    return SeededCoins(5).bernoulli(Fraction(1, 2), devices * ticks).reshape(devices, ticks)


def by_fleet(kind, bits, key, coins):
    fleet = _Fleet(kind, key.public, len(bits), coins)
    for tick in bits.T:
        fleet.observe(tick)
    return kind.read(fleet.reports(), key, 1)


def by_devices(kind, bits, key, coins):
    """The reports of devices as they ship; nobody searches this process for what they leave."""
    promise = ROUGH if isinstance(kind, Mean) else PROMISE
    task = Task.new(kind, promise, horizon=bits.shape[1], key=bytes(key.public), coins=coins)
    rows = []
    with mock.patch.object(device_module, "wipe_traces"):
        for observed in bits.astype(bool):
            one = Device(task, MemoryStorage(), encryption=key.public, coins=coins)
            for bit in observed:
                one.observe(bool(bit))
            rows.append(Report.read(one.report(), task).row)
    return kind.read(b"".join(rows), key, 1)


def same_law(events, one, other):
    """Pearson's test of two samples of reports, apart for each number of events.

    Values that come less than 100 times in both samples together are pooled.
    """
    statistic, degrees = 0.0, 0
    for number in np.unique(events):
        both = [sample[events == number] for sample in (one, other)]
        values, places = np.unique(np.concatenate(both), axis=0, return_inverse=True)
        split = np.split(places.reshape(-1), 2)
        counts = np.array([np.bincount(side, minlength=len(values)) for side in split])
        common = counts.sum(axis=0) >= _WORTH_A_CELL
        rest = counts[:, ~common].sum(axis=1, keepdims=True)
        cells = np.hstack([counts[:, common], rest] if rest.sum() else [counts[:, common]])
        statistic += float(((cells[0] - cells[1]) ** 2 / cells.sum(axis=0)).sum())
        degrees += cells.shape[1] - 1
    return chi_square_tail(statistic, degrees)


@pytest.mark.long
@pytest.mark.parametrize("reports", [by_fleet, pytest.param(by_devices, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_reports_from_ciphertexts_have_the_law_of_those_without(kind, reports):
    bits = observed(DEVICES)
    events = bits.sum(axis=1, dtype=np.int64)
    encrypted = reports(kind, bits, IdealEncryption(), SeededCoins(1))
    assert accepted(same_law(events, encrypted, kind.noised(events, SeededCoins(2))))
    wrong = more_private(kind).noised(events, SeededCoins(2))
    assert rejected(same_law(events, encrypted, wrong))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_real_ciphertexts_say_what_ideal_ones_say(kind):
    """The noise is drawn from the same coins, so that the reports are the same, one by one."""
    bits = observed(12)
    keys = [DecryptionKey.generate(SeededCoins(seed)) for seed in (3, 4)]
    real = [keys[0]]
    if not kind.adds:
        leader, helper = (bytes(key.public).hex() for key in keys)
        for collusion in ("none", "one-server"):
            servers = TwoServers(leader=leader, helper=helper, collusion=collusion, batch=1)
            real.append(BothServers(b"a test", servers, *keys))
    ideal = by_fleet(kind, bits, IdealEncryption(), Apart(4)).tolist()
    assert all(by_fleet(kind, bits, key, Apart(4)).tolist() == ideal for key in real)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_answers_are_off_by_the_noise_of_the_local_model(kind):
    """No loss: the deviation is that of a count that is randomised at the end."""
    population = DevicePopulation(devices=100, ticks=2, events=Fraction(1, 2))
    coins, off = SeededCoins(6), []
    for _ in range(RUNS):
        key = IdealEncryption()
        found = simulate(kind, PROMISE, population, key, encrypted=20, coins=coins)
        values = np.array([one.value for one in found.answers.values()])
        off.append((values - found.truths) / found.deviations)
    errors = np.ravel(off)
    assert accepted(centred(errors))
    assert accepted(spreads(errors, 1.0, slack=1.03))
    assert rejected(spreads(errors, OFF, slack=1.03))
    assert rejected(spreads(errors, 1 / OFF, slack=1.03))
