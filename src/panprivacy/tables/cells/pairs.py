"""Pairs of presence bits of one cell, for two streams: born by a joint law, redrawn one by one.

A cell has two bits. The bit of a stream is redrawn as `B(present)` whenever a user of the cell
appears in that stream; the other bit stays. Bits of a new cell are each `B(absent)`, and both are
ones with probability `both`: they may depend on each other. Two bits with half of epsilon each are
one such law. Another one tells more of users in both streams, as who moves one bit then breaks what
the bits had in common. Every law of any number of states that depends only on the streams in which
users of a cell appeared is one of these: docs/guarantees/both.md proves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.cells.bits import RedrawnBits
from panprivacy.tables.cells.packed import PackedTable

PairFractions = tuple[Fraction, Fraction, Fraction, Fraction]
"""Probabilities of the pairs (0, 0), (1, 0), (0, 1) and (1, 1); the left bit first."""
PAIRS = 4
GRID = 1 << 24
"""Probabilities of a law that is searched for are multiples of one in so many."""


@dataclass(frozen=True, slots=True)
class PairLaw:
    """The law of the two bits of a cell; it is the same for both streams.

    Args:
        absent: probability that the bit of a stream is a 1 where nobody appeared in it.
        present: the same where somebody did; larger.
        both: probability that both bits of a new cell are ones.
    """

    absent: Fraction
    present: Fraction
    both: Fraction

    def __post_init__(self) -> None:
        """Check that these are probabilities, and that no pair of bits rules a stream out."""
        if not 0 < self.absent < self.present < 1 or min(self.laws[0]) <= 0:
            message = "a pair law needs probabilities between 0 and 1, present above absent"
            raise ValueError(message)

    @property
    def laws(self) -> tuple[PairFractions, PairFractions, PairFractions, PairFractions]:
        """The law of a cell where users appeared in no stream, the left, the right, in both."""
        low, high, both = self.absent, self.present, self.both
        new = 1 - 2 * low + both, low - both, low - both, both
        return new, _product(high, low), _product(low, high), _product(high, high)

    @property
    def weights(self) -> tuple[int, ...]:
        """Whole numbers in the ratios of the pairs of bits of a new cell."""
        new = self.laws[0]
        whole = math.lcm(*(one.denominator for one in new))
        return tuple(int(one * whole) for one in new)

    @property
    def text(self) -> str:
        """The three probabilities in hexadecimal multiples of `2**-24`, or as fractions."""
        return " ".join(map(_written, (self.absent, self.present, self.both)))

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of probabilities of a pair of bits, over all pairs of histories."""
        return max(max(one) / min(one) for one in zip(*self.laws, strict=True))


def _written(probability: Fraction) -> str:
    steps = probability * GRID
    return f"{int(steps):x}" if steps.denominator == 1 else str(probability)


def _packed(bits: NDArray[np.uint8]) -> PackedTable:
    """Return bits eight to a byte; the others are wiped."""
    table = np.packbits(bits, bitorder="little")
    wipe(bits)
    return table


def _product(left: Fraction, right: Fraction) -> PairFractions:
    """Return the law of independent bits."""
    return (1 - left) * (1 - right), left * (1 - right), (1 - left) * right, left * right


@dataclass(frozen=True, slots=True)
class PairedBits(RedrawnBits):
    """Two packed tables of bits, one after the other; a user has the same place in both.

    Guarantee: one look at both tables costs at most `ln pair.ratio`, whichever updates of one user
    are left out, in both streams. [tests/exact/test_both.py]

    Args:
        cells: number of cells, of two bits each.
        pair: the law of the bits of a cell.
    """

    cells: int
    pair: PairLaw

    says = "pairs of noisy bits"

    @property
    def nbytes(self) -> int:
        """Bytes of both tables."""
        return 2 * self._half

    @property
    def _half(self) -> int:
        return -(-self.cells // 8)

    def half(self, table: PackedTable, side: int) -> PackedTable:
        """Return the table of one stream, in place."""
        return table[: self._half] if side == 0 else table[self._half :]

    def presence(self, epoch: int) -> Fraction:  # noqa: ARG002 - no intrusion is announced
        """Return the probability that a bit is 1 when its user appears in its stream."""
        return self.pair.present

    def initial(self, coins: Coins) -> PackedTable:
        """Return tables in which nobody has appeared."""
        weights = self.pair.weights
        pairs = coins.categorical(weights, self.cells)
        bits = ((pairs >> side & 1).astype(np.uint8) for side in (0, 1))
        table = np.concatenate([_packed(one) for one in bits])
        wipe(pairs)
        return table

    def fresh_noise(self, coins: Coins) -> PackedTable:  # noqa: ARG002
        """Return noise that changes nothing: no intrusion can be announced."""
        return np.zeros(self.nbytes, np.uint8)

    def is_table(self, table: PackedTable) -> bool:
        """Return whether the bits after the last cell are 0, in both tables."""
        if len(table) != self.nbytes:
            return False
        halves = self.half(table, 0), self.half(table, 1)
        return all(int(half[-1]) >> (8 - -self.cells % 8) == 0 for half in halves)

    def ones(self, table: PackedTable) -> NDArray[np.uint8]:
        """Return the pair of bits of each cell, 0 .. 3: the left bit counts 1, the right one 2."""
        left, right = (
            np.unpackbits(self.half(table, side), count=self.cells, bitorder="little")
            for side in (0, 1)
        )
        right <<= 1
        left |= right
        wipe(right)
        return left

    def pair_counts(self, table: PackedTable, groups: int) -> NDArray[np.int64]:
        """Return how many cells of each of `groups` equal runs show each pair; int64[4 groups]."""
        pairs = self.ones(table)
        runs = pairs.reshape(groups, -1)
        counts = [np.bincount(run, minlength=PAIRS) for run in runs]
        wipe(pairs)
        return np.concatenate(counts).astype(np.int64)
