"""How many events a device had on average, each counted up to `most`.

A device holds `d_1, ..., d_most`, where `d_i` is 1 if there were i events or more. An event moves
them up by one place. What leaves is their sum, with discrete Gaussian noise that is added under
encryption.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Algorithm 4. Printed are a sum that is 0 for a device with more than `most`
events, and noise of variance `most sigma**2`, where `most**2 sigma**2` is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self, cast

import numpy as np

from panprivacy._validate import positive_integer
from panprivacy.coins import Coins, SecretCoins
from panprivacy.errors import PlanError
from panprivacy.federated.distributions import discrete_gaussian, gaussian_sum, hockey_stick
from panprivacy.federated.kind import Counts, Decryption, Kind, lenient
from panprivacy.federated.promise import Promise
from panprivacy.federated.rows import entries, joined
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Answers, Name, Release

if TYPE_CHECKING:
    from panprivacy.federated.elgamal import Encryption, SumEncryption
    from panprivacy.federated.kind import SumDecryption

_MOST: Final = 1_000
_MOST_VARIANCE: Final = 10**8
_LEAST_VARIANCE: Final = Fraction(1, 100)
_SMOOTH: Final = 4
_ENOUGH: Final = 10**6
_WIDEST: Final = 10**10
"""Variances of sums, by which laws can be written down: of any devices, and of smooth noise."""
_STEPS: Final = 500
"""Variances that are searched for are so many in a factor of ten."""


class Mean(Kind, frozen=True, kw_only=True, tag="mean"):
    """How many events a device had on average, each counted up to `most`.

    Guarantee: noise of this variance hides a number of 0 to `most` as `delta` says.
    [tests/unit/test_federated_promise.py, tests/exact/test_products.py]

    Accuracy: the estimate has no bias before it is cut to its interval; its standard deviation is
    at most `sqrt(variance / reports)`, and far less where the variance is below 1/10.

    Args:
        most: so many events of a device count at most; 1 to 1,000.
        variance: the parameter of each device's discrete Gaussian noise, 1/100 to 10**8.
    """

    adds: ClassVar[bool] = True

    most: int
    variance: Fraction

    def __post_init__(self) -> None:
        positive_integer(_MOST, most=self.most)
        if not _LEAST_VARIANCE <= self.variance <= _MOST_VARIANCE:
            message = f"variance must be {_LEAST_VARIANCE} to {_MOST_VARIANCE:,}"
            raise PlanError(message)

    @classmethod
    def planned(cls, promise: Promise, *, most: int) -> Self:
        """The one with the least noise that keeps a promise, of 500 a factor of ten.

        Raises:
            PlanError: the promise has no delta, which Gaussian noise needs, or is too much.
        """
        if not promise.delta:
            message = "a mean needs a delta above 0: its noise is Gaussian"
            raise PlanError(message)
        guess = 2 * math.log(2 / promise.delta) * (most / float(promise.epsilon)) ** 2
        guess /= promise.devices
        widest = _place(_MOST_VARIANCE)
        high = min(_place(guess), widest)

        def kept(place: int) -> bool:
            return cls(most=most, variance=_step(place)).keeps(promise)

        while not kept(high):
            if high == widest:
                message = "the promise takes too much noise: plan for fewer events, or promise less"
                raise PlanError(message)
            high = min(high + _STEPS // 10, widest)
        low = _place(_LEAST_VARIANCE)
        while low < high:
            middle = max((low + high) // 2, high - _STEPS // 10)  # a sum of much noise takes long
            low, high = (low, middle) if kept(middle) else (middle + 1, high)
        return cls(most=most, variance=_step(low))

    @property
    def width(self) -> int:
        """How many encrypted values a device holds."""
        return self.most

    @property
    def answers(self) -> int:
        """How many encrypted values a report has."""
        return 1

    def born(self, encryption: Encryption, coins: SecretCoins) -> bytes:
        """No events."""
        return encryption.encrypt([0] * self.most, coins)

    def after_event(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """All moved up by one place: one event or more."""
        return joined([encryption.encrypt([1], coins)], entries(row, encryption.entry_bytes)[:-1])

    def reported(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """The number of events, up to `most`, with noise."""
        drawn = coins.discrete_gaussian(self.variance, 1)
        try:
            noise = encryption.encrypt(drawn.tolist(), coins)
            terms = [*entries(row, encryption.entry_bytes), noise]
            total = cast("SumEncryption", encryption).add(*terms)
            return encryption.rerandomise(total, coins)
        finally:
            drawn.fill(0)

    def read(self, row: bytes, key: Decryption, processes: int) -> Counts:
        """One number a report, within what noise reaches but for once in 10**28 reports."""
        noise = discrete_gaussian(self.variance)
        low, high = noise.first, self.most + noise.last
        small_sums = cast("SumDecryption", key).small_sums
        size = key.public.entry_bytes
        values = lenient(lambda part: small_sums(part, low, high, processes), row, size)
        return values.reshape(-1, 1)

    def noised(self, events: Counts, coins: Coins) -> Counts:
        """Reports of devices with so many events, without any encryption."""
        noise = coins.discrete_gaussian(self.variance, events.size)
        return (np.minimum(events, self.most) + noise).reshape(-1, 1)

    def release(
        self, sums: Sequence[int], reports: int, confidence: float, epsilon: float
    ) -> Answers:
        """The mean number of events, and an interval by the law of the sum of the noise."""
        (total,) = sums
        reach = self._reach(reports, (1 - confidence) / 2)
        low, high = (
            min(max((total + end) / reports, 0.0), float(self.most)) for end in (-reach, reach)
        )
        name, value = Name("mean", "mean", (("most", self.most),)), total / reports
        unit = "events per device"
        note = note_on(low, high, unit=unit, value=value)
        numbers = value, low, high, confidence, epsilon, (total,)
        measured = value, math.sqrt(self.variance / reports)
        return Answers([Release(*numbers, name, unit, note, *measured)])

    def _reach(self, reports: int, share: float) -> float:
        """How far above 0 the noise of so many reports lies with a probability of `share` at most.

        Where its law is too wide to be written down, a bound that holds for it: it is subgaussian.
        """
        spread = self.variance * reports
        if spread > _WIDEST:
            return math.sqrt(2 * float(spread) * math.log(1 / share))
        noise = gaussian_sum(self.variance, reports)
        beyond = np.cumsum(noise.weights[::-1]) * (1 + 2 * noise.error) + noise.missing
        return float(noise.last - int(np.searchsorted(beyond, share, side="right")))

    def delta(self, epsilon: Fraction, devices: int) -> float:
        """A bound on the delta that belongs to epsilon where so many devices report.

        The noise of the sum has a log-concave law, so that numbers that are furthest apart are
        told apart best. Noise beyond what is wide enough is left out, which can only tell more.
        """
        enough = _WIDEST if self.variance >= _SMOOTH else _ENOUGH
        noise = gaussian_sum(self.variance, min(devices, math.ceil(enough / self.variance)))
        return hockey_stick(epsilon, (noise.shifted(self.most), noise))


def _place(variance: Fraction | float) -> int:
    """Where a variance is on the grid."""
    return round(_STEPS * math.log10(max(variance, _LEAST_VARIANCE)))


def _step(place: int) -> Fraction:
    """A variance of the grid, of four digits."""
    return Fraction(f"{10 ** (place / _STEPS):.3e}")
