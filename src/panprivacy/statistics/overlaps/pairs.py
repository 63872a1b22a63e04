"""How two bits of a cell that depend on each other tell whether the cell is empty.

It has the interface of `occupancy.BitNoise`, whose bits are independent. The law of the pairs of
bits is linear in the probabilities that the cell is empty in each set of tables, as it is there.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PairFloats = tuple[float, float, float, float]

CLASSES = np.array([[0, 0, 0, 1], [0, 0, 1, -1], [0, 1, 0, -1], [1, -1, -1, 1]], float)
"""Takes the probabilities that a cell is empty in no stream (1), the left, the right and in both to
those that it has users in no stream, the left alone, the right alone and in both."""


@dataclass(frozen=True, slots=True)
class PairNoise:
    """The law of the two bits of a cell.

    Args:
        laws: probabilities of the pairs 00, 10, 01 and 11, the bit of table 0 first, of a cell with
            users of no table, of table 0 alone, of table 1 alone and of both.
    """

    laws: tuple[PairFloats, PairFloats, PairFloats, PairFloats]

    @property
    def absent(self) -> tuple[float, float]:
        """Of each table, the probability that a cell without a user is a 1."""
        new = self.laws[0]
        return new[1] + new[3], new[2] + new[3]

    @property
    def present(self) -> tuple[float, float]:
        """Of each table, the probability that a cell with one user or more is a 1."""
        full = self.laws[3]
        return full[1] + full[3], full[2] + full[3]

    @property
    def spread(self) -> float:
        """The largest variance of a debiased bit, given whether its cell is empty."""
        pairs = zip(self.absent, self.present, strict=True)
        return max(max(a * (1 - a), p * (1 - p)) / (p - a) ** 2 for a, p in pairs)

    def law(self, empty: Floats) -> Floats:
        """Return the probability of each pair of bits.

        Args:
            empty: the probability that a cell is empty in each set of tables; float64[..., 4].
        """
        return empty @ _matrices(self).law.T

    def debias(self, shares: Floats) -> Floats:
        """Return the unbiased estimate of those probabilities, from shares of pairs."""
        return shares @ _matrices(self).debias.T

    def squares(self, shares: Floats) -> Floats:
        """Return the mean of the square of what a cell adds to each."""
        return shares @ (_matrices(self).debias ** 2).T

    def influence(self, weights: Floats) -> Floats:
        """Return what each pair of bits adds to a weighted sum of the estimates.

        Args:
            weights: of the probability of each set of tables; float64[..., 4].
        """
        return weights @ _matrices(self).debias


class _Matrices(NamedTuple):
    """From sets of tables to pairs of bits, and back."""

    law: Floats
    debias: Floats


@functools.lru_cache(maxsize=64)
def _matrices(noise: PairNoise) -> _Matrices:
    law = np.array(noise.laws).T @ CLASSES
    return _Matrices(law, np.linalg.inv(law))
