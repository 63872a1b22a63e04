"""Hadamard response: short reports, however many values there are.

Values lie in B blocks, and a value has a row of a Hadamard matrix for itself in its block. Its set
is the half of the block's b columns in which the row has a +1. The report is one of B b numbers:
with probability `keep` one of the set, else any.

Reference: J. Acharya, Z. Sun, H. Zhang, "Hadamard response: estimating distributions privately,
efficiently, and with little communication", 2019.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.papers.local.frequencies import Spread
from panprivacy.papers.local.randomiser import (
    Randomiser,
    Reports,
    Values,
    keep_probability,
    keep_ratio,
    read_reports,
)
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe


@dataclass(frozen=True, init=False)
class HadamardResponse(Randomiser):
    """A number that is more often in the set of the value than elsewhere.

    >>> from panprivacy import local
    >>> pages = local.HadamardResponse(1_000, epsilon=1)
    >>> pages.bits
    10
    >>> reports = pages.randomise([7] * 10_000)
    >>> 9_000 < pages.estimate(reports).of(7).value <= 10_000
    True

    Its variance is that of `UnaryEncoding` at small epsilon, up to twice that at large ones; its
    reports have about as many bits as the number of values has digits in base two.

    Guarantee: as for each `Randomiser`. [tests/exact/test_local.py]

    Args:
        values: number of values, 2 to 2**20.
        epsilon: the loss of a report, in nats.

    Raises:
        PlanError: an argument out of range.
    """

    @property
    def blocks(self) -> int:
        """B, a power of two: the one with the smallest variance."""
        return _best_blocks(self.values, self.epsilon)

    @property
    def columns(self) -> int:
        """b, of each block: a power of two above the number of its rows."""
        return _columns(self.values, self.blocks)

    @property
    def outcomes(self) -> int:
        """Number of possible reports, `B b`."""
        return self.blocks * self.columns

    @property
    def keep(self) -> Fraction:
        """Probability that the report is in the set of the value in any case."""
        return keep_probability(self.epsilon, self.outcomes, self.columns // 2)

    @property
    def ratio(self) -> Fraction:
        """The probability of a report in the set of the value over that of another one."""
        return keep_ratio(self.keep, self.outcomes, self.columns // 2)

    @property
    def bits(self) -> int:
        """The length of a number below the number of reports."""
        return (self.outcomes - 1).bit_length()

    @property
    def variance(self) -> float:
        """The most over all that users may hold; the same where blocks are of one size."""
        return _variance(self.values, self.blocks, float(self.keep))

    def _draw(self, values: Values, coins: Coins) -> Reports:
        reports = coins.categorical([1] * self.outcomes, len(values))
        keeping = coins.bernoulli(self.keep, len(values))
        chosen = self._into_set(reports, values)
        np.copyto(reports, chosen, where=keeping.view(bool))
        wipe(keeping, chosen)
        return reports

    def _into_set(self, uniform: Reports, values: Values) -> Reports:
        """Return a uniform number of each value's set; the row's lowest bit mends a wrong sign."""
        block, row = values % self.blocks, values // self.blocks + 1
        column = uniform.astype(np.int64) & (self.columns - 1)
        wrong = np.bitwise_count(column & row) & 1
        column ^= wrong * (row & -row)
        return (block * self.columns + column).astype(np.uint32)

    def _scores(self, reports: Reports) -> NDArray[np.int64]:
        return read_reports(reports, self.outcomes)

    def _spread(self, scores: NDArray[np.int64], users: int) -> Spread:  # noqa: ARG002
        """Return the estimates: a report adds a sign to each value of its block, 0 to others.

        Signs of other values cancel out on average, so the mean is `keep` for the value held.
        The squares add up to the number of reports in the block.
        """
        keep, value = float(self.keep), np.arange(self.values)
        signed = scores.reshape(self.blocks, self.columns).astype(np.float64)
        _transform(signed)
        block, row = value % self.blocks, value // self.blocks + 1
        unit = np.ones(self.values)
        squares = signed[block, 0] / keep**2
        return Spread(signed[block, row] / keep, squares, -unit, 2 * unit / keep)


def _columns(values: int, blocks: int) -> int:
    """Return a power of two above the rows of a block."""
    return 1 << (-(-values // blocks)).bit_length()


def _variance(values: int, blocks: int, keep: float) -> float:
    rows = -(-values // blocks)
    return (rows * keep + values * (1 - keep) / blocks) / (values * keep**2) - 1 / values


@functools.lru_cache(maxsize=1024)
def _best_blocks(values: int, epsilon: Fraction) -> int:
    """Return the power of two with the smallest variance; a block has two values or more."""

    def variance(blocks: int) -> float:
        columns = _columns(values, blocks)
        keep = float(keep_probability(epsilon, blocks * columns, columns // 2))
        return _variance(values, blocks, keep)

    powers = (1 << power for power in range(max((values // 2).bit_length(), 1)))
    return min(powers, key=variance)


def _transform(signed: NDArray[np.float64]) -> None:
    """Apply the Walsh-Hadamard transform to each row, in place."""
    half = 1
    while half < signed.shape[1]:
        pairs = signed.reshape(len(signed), -1, 2, half)
        first, second = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        pairs[:, :, 0], pairs[:, :, 1] = first + second, first - second
        half *= 2
