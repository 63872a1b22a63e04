"""What somebody with the secret keys learns: of a device whose old file was put back, or two do."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest

from panprivacy import SystemCoins
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.audit.ideal import KEY, AuditedDevice, Decrypted, MemoryStorage
from panprivacy.devices.federated.collector import Collector
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.shares import BothServers
from panprivacy.devices.federated.task import CountNonZero, DeviceHistogram, Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import InputError

ONE = Promise(epsilon=Fraction(1))
KINDS = {"count": CountNonZero.planned(ONE), "histogram": DeviceHistogram.planned(ONE, most=1)}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def task_of(kind, key=None):
    key = key or KEY.hex()
    return Task(version=1, id="00" * 16, kind=kind, promise=ONE, horizon=1, key=key)


class PutBack(AuditedDevice):
    """After each report the file that was there before it is put back, and asked again."""

    def __init__(self, coins, task, times):
        super().__init__(coins, task)
        self._coins, self._times = coins, times
        self._counts = ()

    def reports(self):
        before = self._storage.state
        for _ in range(self._times):
            self._storage.state = before
            device = Device(self._task, self._storage, encryption=self._key, coins=self._coins)
            yield device.report()

    def release(self):
        rows = [Report.read(report, self._task).row for report in self.reports()]
        read = [self._task.kind.read(row, self._key, 1)[0] for row in rows]
        return Decrypted(tuple(int(one) for row in read for one in row))


class Counted(PutBack):
    """A collector takes what comes, and only its answer is seen."""

    def release(self):
        collector = Collector(self._task, self._key)
        for report in self.reports():
            with suppress(InputError):  # of the same id
                collector.add(report)
        return Decrypted(collector.release().counts)


TRIED = [("count", 1), ("count", 3), ("histogram", 1)]


@pytest.mark.parametrize(("kind", "times"), [*TRIED, slow("histogram", 2)])
def test_each_report_of_one_id_costs_the_promise_once_more(kind, times):
    """Claim 5: whoever has the key and saw them all, also those that were refused."""
    task = task_of(KINDS[kind])
    found = exact_loss(lambda coins: PutBack(coins, task, times), [[0], RELEASE], [[], RELEASE])
    assert float(found) == pytest.approx(times, rel=2e-3)
    assert found.within(times)


@pytest.mark.parametrize("kind", ["count", slow("histogram")])
def test_an_answer_has_one_of_them_and_costs_the_promise_once(kind):
    task = task_of(KINDS[kind])
    found = exact_loss(lambda coins: Counted(coins, task, 2), [[0], RELEASE], [[], RELEASE])
    assert float(found) == pytest.approx(1, rel=2e-3)
    assert found.within(1)


LEADER, HELPER = (DecryptionKey.generate(SystemCoins()) for _ in range(2))


def servers(collusion):
    leader, helper = (bytes(key.public).hex() for key in (LEADER, HELPER))
    return TwoServers(leader=leader, helper=helper, collusion=collusion, batch=1)


BY_TWO = pytest.mark.parametrize(
    ("kind", "collusion"),
    [
        ("count", "none"),
        ("count", "one-server"),
        slow("histogram", "none"),
        ("histogram", "one-server"),
    ],
)


@pytest.mark.parametrize("kind", ["count", slow("histogram")])
def test_the_states_and_the_report_of_two_servers_cost_the_promise(kind):
    """Ideal encryption: whoever sees every state, and then what both servers read together."""
    task = task_of(KINDS[kind], servers("none"))
    found = exact_loss(lambda coins: AuditedDevice(coins, task), [[0], RELEASE], [[], RELEASE])
    assert float(found) == pytest.approx(1, rel=2e-3)
    assert found.within(1)


class Walked(EnumeratedCoins):
    """Walks the coins of the noise; shares, proofs and nonces are what they are."""

    def secret(self, nbytes):
        return SystemCoins().secret(nbytes)


@BY_TWO
@pytest.mark.parametrize("event", [False, True])
def test_what_two_servers_read_together_has_exactly_the_law_of_the_noise(kind, collusion, event):
    """Real shares, proofs and ciphertexts, through a tick and a report."""
    task = task_of(KINDS[kind], servers(collusion))
    opening = BothServers(task.context, task.key, LEADER, HELPER)
    found, coins = {}, Walked()
    for _ in coins:
        device = Device(task, MemoryStorage(), coins=coins)
        device.observe(event)
        bits = tuple(opening.bits(Report.read(device.report(), task).row).tolist())
        found[bits] = found.get(bits, 0) + coins.probability
    present, absent = task.kind.reporting
    truth = [event] if kind == "count" else [not event, event]
    ones = [present if bit else absent for bit in truth]
    expected = {(): Fraction(1)}
    for one in ones:
        expected = {
            (*bits, bit): weight * (one if bit else 1 - one)
            for bits, weight in expected.items()
            for bit in (0, 1)
        }
    assert found == expected
