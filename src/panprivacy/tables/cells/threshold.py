"""Counters that count states above a soft threshold: cells of a `HeavyHitterCount`.

Deltas are rounded at random to multiples of a resolution, so that the counters stay small. With a
block law, two counts of cells, one of them shifted by a block, add up to what is affine in a soft
threshold that rises over the second block. docs/guarantees/heavy.md proves the claims.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 3. Where we differ: one table in place of two, so a look costs half as
much, and no factor of 2 between two cropped sums whose difference is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.ground.kernels import kernel, read_only
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.modular import COUNTERS, BlockCells, ModularCells
from panprivacy.tables.cells.protocol import Deltas, Table, with_deltas

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class RoundedCells(ModularCells):
    """Counters of rounded deltas, of which a release looks at the blocks.

    Guarantee: as for `ModularCells`, given any outcome of the rounding.
    [tests/exact/test_heavy.py]

    Args:
        block: the length of a block, in units of the resolution.
        resolution: what a delta is rounded to multiples of.
    """

    block: int
    resolution: int

    def update(
        self, table: Table, slots: Iterable[Slots], deltas: Deltas | None, epoch: int, coins: Coins
    ) -> None:
        """Add each delta to its cell, in units of the resolution, rounded by fresh coins."""
        for piece, given in with_deltas(slots, deltas):
            changes = np.ones(len(piece), np.int64) if given is None else given
            rounded = rounded_to(changes, self.resolution, coins)
            ModularCells.update(self, table, [piece], rounded, epoch, coins)
            wipe(rounded)


@dataclass(frozen=True, slots=True)
class ThresholdCells(RoundedCells, BlockCells):
    """The same; a release counts those outside of the high values twice.

    Once as they are, and once with the high values shifted by a block. After an announced
    intrusion the high value is 0, and the cells that are in neither set count once.
    """

    def _marks(self, epoch: int) -> NDArray[np.uint8]:
        """Return the number of times that a cell of each value counts, 0 to 2."""
        outside = BlockCells._marks(self, epoch)  # noqa: SLF001 - of its own base class
        return outside + np.roll(outside, self.block) - np.uint8(min(epoch, 1))


@dataclass(frozen=True, slots=True)
class SlopedCells(RoundedCells):
    """The same; a release publishes one sum of what the block of each counter scores.

    No intrusion is announced to them: noise that is added twice is no longer made of blocks.

    Args:
        scores: int64[blocks], of the counters in each block.
    """

    scores: NDArray[np.int64] = field(compare=False)

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the sum of the scores of all cells, which are one group."""
        return np.array([_scored(table, self.scores, self.block)], np.int64)


def rounded_to(deltas: Deltas, resolution: int, coins: Coins) -> Deltas:
    """Return each delta over the resolution, rounded up with probability of its fraction.

    Returns int64[rows]. A uniform number is compared to the fraction, one binary digit of both at a
    time. After each the half of the rows whose digits differ are decided, so two coins are enough
    for most rows.
    """
    whole, left = np.divmod(deltas, resolution)
    undecided = np.flatnonzero(left)
    rows = len(undecided)
    while rows:
        digits = coins.bernoulli(_HALF, rows)
        rows = _compare(digits, undecided, left, resolution, whole)
        wipe(digits)
    wipe(left, undecided)
    return whole


@kernel("int64(uint8[::1], int64[::1], int64[::1], int64, int64[::1])")
def _compare(
    digits: NDArray[np.uint8],
    undecided: NDArray[np.int64],
    left: Deltas,
    resolution: int,
    whole: Deltas,
) -> int:
    """Compare the next digit of each undecided row; how many rows are still undecided.

    `left / resolution` is the rest of a fraction; rows and rests are changed in place.
    """
    kept = 0
    for place in range(digits.size):
        row = undecided[place]
        doubled = 2 * left[row]
        digit = 1 if doubled >= resolution else 0
        left[row] = doubled - digit * resolution
        if digits[place] < digit:
            whole[row] += 1
        elif digits[place] == digit and left[row] > 0:
            undecided[kept] = row
            kept += 1
    return kept


@kernel(*(f"int64({kind}[::1], {read_only('int64')}, int64)" for kind in COUNTERS))
def _scored(table: Table, scores: NDArray[np.int64], block: int) -> int:
    """Return the sum over cells of what the blocks of their values score."""
    total = 0
    for cell in range(table.size):
        total += scores[np.int64(table[cell]) // block]
    return total
