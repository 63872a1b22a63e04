"""Reports of bits, each kept or redrawn under encryption, and estimates from their sums.

A bit that is 1 is reported as 1 with probability `present`, one that is 0 with probability
`absent`. To get there without opening it, a device keeps its ciphertext with probability
`present - absent`, and else replaces it by a fresh one of a coin, which is 1 with probability
`absent / (1 - present + absent)` (Feldman et al. 2025, Observation 5, where the two add up to 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.federated.distributions import Distribution, binomial
from panprivacy.devices.federated.promise import Range
from panprivacy.devices.federated.rows import entries, selected
from panprivacy.privacy.coins import Coins, SecretCoins

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption


_ENOUGH: Final = 10**5
"""Variance of the sum of others from which on they need not be counted."""


class Reporting(NamedTuple):
    """The law of the report of a bit.

    Args:
        present: the probability that a 1 is reported as 1.
        absent: the probability that a 0 is, which is smaller.
    """

    present: Fraction
    absent: Fraction

    @property
    def keep_probability(self) -> Fraction:
        """The probability that a bit is reported as it is."""
        return self.present - self.absent

    @property
    def fresh(self) -> Fraction:
        """The probability that one that is not is 1."""
        return self.absent / (1 - self.keep_probability)

    def others(self, devices: int, ones: Range) -> Distribution:
        """Return the law of the contribution of other devices to a sum, except those in a range.

        The adversary is given the reports of those in the range, and of the devices beyond the
        number that is enough in practice; this can only help the adversary.
        """
        fewest, most = ones
        enough = math.ceil(_ENOUGH / (self.absent * (1 - self.absent)))
        zeros = devices - 1 - most
        return binomial(min(fewest, enough), self.present) + binomial(
            min(zeros, enough), self.absent
        )

    def encrypted(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Report encrypted bits: as many coins and encryptions whatever they are."""
        size = encryption.entry_bytes
        bits = entries(row, size)
        kept = coins.bernoulli(self.keep_probability, len(bits))
        fresh = coins.bernoulli(self.fresh, len(bits))
        try:
            drawn = entries(encryption.encrypt(fresh.tolist(), coins), size)
            return encryption.rerandomise(selected(kept.tolist(), drawn, bits), coins)
        finally:
            kept.fill(0)
            fresh.fill(0)

    def plain(self, bits: NDArray[np.bool_], coins: Coins) -> NDArray[np.int64]:
        """Report bits that are not encrypted, by the same law."""
        kept = coins.bernoulli(self.keep_probability, bits.size).reshape(bits.shape)
        fresh = coins.bernoulli(self.fresh, bits.size).reshape(bits.shape)
        return np.where(kept, bits, fresh).astype(np.int64)

    def estimate(self, ones: int, reports: int, confidence: float) -> tuple[float, float, float]:
        """Return the estimated number of bits that were 1, and both ends of an interval.

        The estimate has no bias, so it can be below 0, and a release cuts it. The interval has
        every number of bits under which at least, and at most, the reported number of ones has a
        probability above `(1 - confidence) / 2`: its coverage is at least the confidence.
        """
        share = (1 - confidence) / 2
        value = (ones - reports * self.absent) / self.keep_probability
        low = _first(reports, lambda bits: self._sum(bits, reports).above(ones) > share)
        lacking = _first(
            reports, lambda lacks: self._sum(reports - lacks, reports).below(ones) > share
        )
        return float(value), float(low), float(reports - lacking)

    def measured(self, ones: int, reports: int) -> tuple[float, float]:
        """Return the estimate before it is cut, and its standard error at the estimate."""
        value = float((ones - reports * self.absent) / self.keep_probability)
        bits = min(max(value, 0.0), float(reports))
        present, absent = (float(one * (1 - one)) for one in (self.present, self.absent))
        variance = bits * present + (reports - bits) * absent
        return value, math.sqrt(variance) / float(self.keep_probability)

    def _sum(self, bits: int, reports: int) -> Distribution:
        """Return the law of the number of reported ones, for a number of bits that are 1."""
        return binomial(bits, self.present) + binomial(reports - bits, self.absent)


def _first(most: int, holds: Callable[[int], bool]) -> int:
    """Return the least number from 0 that holds, as do all above it; `most` if none below does."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
