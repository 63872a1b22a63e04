"""Reports of bits, each kept or drawn anew under encryption, and what their sums tell.

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

from panprivacy.coins import Coins, SecretCoins
from panprivacy.federated.distributions import Distribution, binomial
from panprivacy.federated.promise import Range
from panprivacy.federated.rows import entries, selected

if TYPE_CHECKING:
    from panprivacy.federated.elgamal import Encryption


_ENOUGH: Final = 10**5
"""A variance of the sum of others, beyond which they need not be counted."""


class Reporting(NamedTuple):
    """How bits are reported.

    Args:
        present: the probability that a 1 is reported as 1.
        absent: the probability that a 0 is, which is smaller.
    """

    present: Fraction
    absent: Fraction

    @property
    def kept(self) -> Fraction:
        """The probability that a bit is reported as it is."""
        return self.present - self.absent

    @property
    def fresh(self) -> Fraction:
        """The probability that one that is not is 1."""
        return self.absent / (1 - self.kept)

    def others(self, devices: int, ones: Range) -> Distribution:
        """What other devices add to a sum, less those that one range leaves open.

        Of these the adversary is told what they report, and of so many devices that the sum hides
        all that is promised in practice; to be told can only help him.
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
        kept = coins.bernoulli(self.kept, len(bits))
        fresh = coins.bernoulli(self.fresh, len(bits))
        try:
            drawn = entries(encryption.encrypt(fresh.tolist(), coins), size)
            return encryption.rerandomise(selected(kept.tolist(), drawn, bits), coins)
        finally:
            kept.fill(0)
            fresh.fill(0)

    def plain(self, bits: NDArray[np.bool_], coins: Coins) -> NDArray[np.int64]:
        """Report bits that are not encrypted, by the same law."""
        kept = coins.bernoulli(self.kept, bits.size).reshape(bits.shape)
        fresh = coins.bernoulli(self.fresh, bits.size).reshape(bits.shape)
        return np.where(kept, bits, fresh).astype(np.int64)

    def estimate(self, ones: int, reports: int, confidence: float) -> tuple[float, float, float]:
        """How many bits were 1, and both ends of an interval.

        The estimate has no bias, so it can be below 0, and a release cuts it. The interval has
        every number of bits for which so many reported ones, or so few, have a probability above
        `(1 - confidence) / 2`: it holds the truth at least as often as it says.
        """
        share = (1 - confidence) / 2
        value = (ones - reports * self.absent) / self.kept
        low = _first(reports, lambda bits: self._sum(bits, reports).above(ones) > share)
        lacking = _first(
            reports, lambda lacks: self._sum(reports - lacks, reports).below(ones) > share
        )
        return float(value), float(low), float(reports - lacking)

    def measured(self, ones: int, reports: int) -> tuple[float, float]:
        """The estimate before it is cut, and its standard error where the truth is as estimated."""
        value = float((ones - reports * self.absent) / self.kept)
        bits = min(max(value, 0.0), float(reports))
        present, absent = (float(one * (1 - one)) for one in (self.present, self.absent))
        variance = bits * present + (reports - bits) * absent
        return value, math.sqrt(variance) / float(self.kept)

    def _sum(self, bits: int, reports: int) -> Distribution:
        """The law of the number of reported ones, if so many bits are 1."""
        return binomial(bits, self.present) + binomial(reports - bits, self.absent)


def _first(most: int, holds: Callable[[int], bool]) -> int:
    """The smallest number from 0 that holds, as all above it do; `most` if none below it does."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
