"""Many devices at once: some with real ciphertexts, the others by the same law.

What devices observe is drawn from a law that is public, so that the truth is known and nobody is
in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import encryption_of
from panprivacy.devices.federated.distributions import discrete_gaussian
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.kind import Counts, Decryption
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.messages import REPORT_ID_BYTES, Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.rows import entries
from panprivacy.devices.federated.task import AnyKind, Task
from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_integer, proportion, whole_number
from panprivacy.privacy.coins import Coins, SecretCoins, SystemCoins
from panprivacy.privacy.guarantee import float_above
from panprivacy.statistics.release import Answers

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption

_MOST_DEVICES = 10_000_000
_MOST_TICKS = 1_000_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class DevicePopulation:
    """Devices with events at random, some of them often and most of them seldom.

    At each tick a device has an event or none, independently of all others: half of the devices
    with one probability, a quarter with twice that, an eighth with four times, and so on, up to 1.
    That is Zipf's law, in octaves.

    >>> DevicePopulation(devices=7, ticks=10, events=Fraction(2)).octaves()
    [(4, Fraction(1, 5)), (2, Fraction(2, 5)), (1, Fraction(4, 5))]

    Args:
        devices: number of devices, up to ten million.
        ticks: how many each observes, up to a million.
        events: that a device of the quieter half has, on average; above 0, at most one a tick.

    Raises:
        PlanError: a number is out of range.
    """

    devices: int
    ticks: int
    events: Fraction

    def __post_init__(self) -> None:
        positive_integer(_MOST_DEVICES, devices=self.devices)
        positive_integer(_MOST_TICKS, ticks=self.ticks)
        if not 0 < self.events <= self.ticks:
            message = "events must be above 0, and at most one a tick"
            raise PlanError(message)

    def octaves(self) -> list[tuple[int, Fraction]]:
        """Return numbers of devices, with the probability of an event at a tick for each."""
        found, left, probability = [], self.devices, self.events / self.ticks
        while left:
            size = (left + 1) // 2
            found.append((size, min(probability, Fraction(1))))
            left, probability = left - size, 2 * probability
        return found

    def observed(self, coins: Coins) -> Iterator[NDArray[np.uint8]]:
        """Yield the events of each device at each tick, uint8[devices]."""
        octaves = self.octaves()
        for _ in range(self.ticks):
            yield np.concatenate([coins.bernoulli(chance, size) for size, chance in octaves])


@dataclass(frozen=True)
class Simulated:
    """The result of a simulation.

    Args:
        answers: what a collector releases.
        truths: float64[answers], what is true of the devices.
        deviations: float64[answers], the standard deviations of the plain local model.
    """

    answers: Answers
    truths: Floats
    deviations: Floats


def simulate(
    kind: AnyKind,
    promise: Promise,
    population: DevicePopulation,
    key: Decryption,
    *,
    encrypted: int = 1_000,
    confidence: float = 0.95,
    encryption: Encryption | None = None,
    coins: SecretCoins | None = None,
    advance: Callable[[], object] = lambda: None,
) -> Simulated:
    """Let devices observe, report and be counted.

    Args:
        kind: the statistic.
        promise: the guarantee of a device, stated in the answers.
        population: the events of each device.
        key: the collector's secret key.
        encrypted: how many devices, spread evenly over all, hold real ciphertexts. The others
            are `kind.noised`, which has the same law. [tests/statistical/test_simulation.py]
        confidence: probability that each interval holds the truth.
        encryption: stands in for the public half of the key, for tests.
        coins: stand in for the system's, likewise.
        advance: called at the end of each tick.

    Raises:
        PlanError: a number is out of range.
    """
    sure, drawn = proportion(confidence=confidence), coins or SystemCoins()
    real = _spread(whole_number(0, population.devices, encrypted=encrypted), population.devices)
    fleet = _Fleet(kind, key.public if encryption is None else encryption, len(real), drawn)
    events = np.zeros(population.devices, np.int64)
    for bits in population.observed(drawn):
        events += bits
        fleet.observe(bits[real])
        advance()
    sums = kind.read(fleet.reports(), key, 1).sum(axis=0)
    sums += kind.noised(np.delete(events, real), drawn).sum(axis=0)
    answers = kind.release(sums.tolist(), len(events), sure, float_above(promise.epsilon))
    truths = truth(kind, events)
    return Simulated(answers, truths, local_deviations(kind, truths, len(events)))


def reported(task: Task, events: Counts, coins: SecretCoins) -> list[bytes]:
    """Return reports of devices with these numbers of events: by the law, encrypted once.

    Args:
        task: the task of the devices.
        events: int64[devices].
        coins: source of the noise, the encryption and the ids.
    """
    values = task.kind.noised(events, coins).ravel().tolist()
    row = encryption_of(task).encrypt(values, coins)
    rows = entries(row, task.kind.answers * task.entry_bytes)
    return [Report(coins.key(REPORT_ID_BYTES), one).to_bytes(task) for one in rows]


class _Fleet:
    """Devices that hold real ciphertexts, all of which are re-randomised together at each tick.

    A `Device` does one tick more slowly: it computes both rows whatever it observes, and wipes.
    """

    def __init__(
        self, kind: AnyKind, encryption: Encryption, devices: int, coins: SecretCoins
    ) -> None:
        self._kind, self._encryption, self._coins = kind, encryption, coins
        self._rows = [kind.initial(encryption, coins) for _ in range(devices)]

    def observe(self, bits: NDArray[np.uint8]) -> None:
        """End a tick, with an event on some devices."""
        size = self._kind.width * self._encryption.entry_bytes
        for place in np.flatnonzero(bits):
            row = self._rows[place]
            self._rows[place] = self._kind.after_event(row, self._encryption, self._coins)
        fresh = self._encryption.rerandomise(b"".join(self._rows), self._coins)
        self._rows = [fresh[i : i + size] for i in range(0, len(fresh), size)]

    def reports(self) -> bytes:
        """Return the reports of all devices, one row."""
        return b"".join(
            self._kind.reported(row, self._encryption, self._coins) for row in self._rows
        )


def truth(kind: AnyKind, events: Counts) -> Floats:
    """Return the true answers for devices with these numbers of events, float64[answers]."""
    if isinstance(kind, CountNonZero):
        return np.array([np.count_nonzero(events)], float)
    counted = np.minimum(events, kind.most)
    if isinstance(kind, DeviceHistogram):
        return np.bincount(counted, minlength=kind.answers).astype(float)
    return np.array([counted.mean()])


def local_deviations(kind: AnyKind, truths: Floats, devices: int) -> Floats:
    """Return the standard deviations of the answers in the plain local model, float64[answers].

    There each device knows how many events it had, in the clear, and adds the noise at the end.
    """
    if isinstance(kind, Mean):
        return np.array([math.sqrt(discrete_gaussian(kind.variance).variance / devices)])
    present, absent = map(float, kind.reporting)
    variances = truths * present * (1 - present) + (devices - truths) * absent * (1 - absent)
    return np.asarray(np.sqrt(variances) / float(kind.reporting.keep_probability), np.float64)


def _spread(some: int, among: int) -> NDArray[np.int64]:
    """Return `some` places, spread evenly among `among`."""
    return np.arange(some) * among // max(some, 1)
