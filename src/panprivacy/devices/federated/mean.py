"""Mean number of events of a device, each counted up to `most`.

A device stores `d_1, ..., d_most`, where `d_i` is 1 if there were i events or more. An event shifts
them up by one place. The report is their sum, with discrete Gaussian noise that is added under
encryption.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Algorithm 4. The printed version has a sum that is 0 for a device with more
than `most` events, and noise of variance `most sigma**2`, where `most**2 sigma**2` is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self, cast

import numpy as np

from panprivacy.devices.federated.distributions import discrete_gaussian, gaussian_sum, hockey_stick
from panprivacy.devices.federated.kind import Counts, Decryption, Kind
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.rows import entries, row_of
from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_integer
from panprivacy.privacy.coins import Coins, SecretCoins
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Answers, Name, Release

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption, SumEncryption
    from panprivacy.devices.federated.kind import SumDecryption

_MOST: Final = 1_000
_MOST_VARIANCE: Final = 10**8
_LEAST_VARIANCE: Final = Fraction(1, 100)
_SMOOTH: Final = 4
_ENOUGH: Final = 10**6
_WIDEST: Final = 10**10
"""Maximum variances of sums with a computed distribution: of any noise, and of smooth noise."""
_STEPS: Final = 500
"""Grid of the search for a variance: steps per factor of ten."""


class Mean(Kind, frozen=True, kw_only=True, tag="mean"):
    """Mean number of events of a device, each counted up to `most`.

    Guarantee: noise of this variance hides a number of 0 to `most` as `delta` states.
    [tests/unit/test_federated_promise.py, tests/exact/test_products.py]

    Accuracy: the estimate is unbiased before it is clamped to its interval; its standard deviation
    is at most `sqrt(variance / reports)`, and far less if the variance is below 1/10.

    Args:
        most: maximum number of events of a device that count; 1 to 1,000.
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
        """Return the mean with the least noise that keeps a promise, of 500 per factor of ten.

        Raises:
            PlanError: the promise has no delta, which Gaussian noise needs, or needs too much
                noise.
        """
        if not promise.delta:
            message = "a mean needs a delta above 0: its noise is Gaussian"
            raise PlanError(message)
        guess = 2 * math.log(2 / promise.delta) * (most / float(promise.epsilon)) ** 2
        guess /= promise.devices
        widest = _grid_index(_MOST_VARIANCE)
        high = min(_grid_index(guess), widest)

        def keeps_promise(place: int) -> bool:
            return cls(most=most, variance=_step(place)).keeps(promise)

        while not keeps_promise(high):
            if high == widest:
                message = "the promise takes too much noise: plan for fewer events, or promise less"
                raise PlanError(message)
            high = min(high + _STEPS // 10, widest)
        low = _grid_index(_LEAST_VARIANCE)
        while low < high:
            middle = max((low + high) // 2, high - _STEPS // 10)  # the sum of much noise is slow
            low, high = (low, middle) if keeps_promise(middle) else (middle + 1, high)
        return cls(most=most, variance=_step(low))

    @property
    def width(self) -> int:
        """Number of encrypted values of a device."""
        return self.most

    @property
    def answers(self) -> int:
        """Number of encrypted values of a report."""
        return 1

    def initial(self, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the encrypted state without events."""
        return encryption.encrypt([0] * self.most, coins)

    def after_event(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the state after an event: all values are shifted up by one place."""
        return row_of([encryption.encrypt([1], coins)], entries(row, encryption.entry_bytes)[:-1])

    def reported(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the encrypted number of events, up to `most`, with noise."""
        drawn = coins.discrete_gaussian(self.variance, 1)
        try:
            noise = encryption.encrypt(drawn.tolist(), coins)
            terms = [*entries(row, encryption.entry_bytes), noise]
            total = cast("SumEncryption", encryption).add(*terms)
            return encryption.rerandomise(total, coins)
        finally:
            drawn.fill(0)

    def read(self, row: bytes, key: Decryption, processes: int) -> Counts:
        """Return one number for each report, in a range that noise leaves once in 10**28 reports.

        A value outside the range counts as 0, and is found by the same steps: see `readable_bits`.
        """
        noise = discrete_gaussian(self.variance)
        low, high = noise.first, self.most + noise.last
        values = cast("SumDecryption", key).marked_sums(row, low, high, processes)
        return np.where(values > high, 0, values).reshape(-1, 1)

    def noised(self, events: Counts, coins: Coins) -> Counts:
        """Return reports of devices with these numbers of events, without any encryption."""
        noise = coins.discrete_gaussian(self.variance, events.size)
        return (np.minimum(events, self.most) + noise).reshape(-1, 1)

    def release(
        self, sums: Sequence[int], reports: int, confidence: float, epsilon: float
    ) -> Answers:
        """Return the mean number of events, and an interval by the distribution of the noise."""
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
        """Return a bound that the noise of all reports exceeds with probability `share` at most.

        If its distribution is too wide to be computed, the bound uses that the noise is
        subgaussian.
        """
        spread = self.variance * reports
        if spread > _WIDEST:
            return math.sqrt(2 * float(spread) * math.log(1 / share))
        noise = gaussian_sum(self.variance, reports)
        beyond = np.cumsum(noise.weights[::-1]) * (1 + 2 * noise.error) + noise.missing
        return float(noise.last - int(np.searchsorted(beyond, share, side="right")))

    def delta(self, epsilon: Fraction, devices: int) -> float:
        """Return a bound on the delta for an epsilon if this number of devices report.

        The noise of the sum has a log-concave distribution, so numbers that are furthest apart are
        the easiest to distinguish. Noise beyond a sufficient width is left out, which can only
        reveal more.
        """
        enough = _WIDEST if self.variance >= _SMOOTH else _ENOUGH
        noise = gaussian_sum(self.variance, min(devices, math.ceil(enough / self.variance)))
        return hockey_stick(epsilon, (noise.shifted(self.most), noise))


def _grid_index(variance: Fraction | float) -> int:
    """Return the position of a variance on the grid."""
    return round(_STEPS * math.log10(max(variance, _LEAST_VARIANCE)))


def _step(place: int) -> Fraction:
    """Return a variance of the grid, of four digits."""
    return Fraction(f"{10 ** (place / _STEPS):.3e}")
