"""Whole numbers that deltas are added to: cells of `FrequencyMoment` and `InnerProduct`.

A cell has initial discrete Laplace noise, and an update adds its delta, or takes it away where the
user's sign is negative. The table is linear, so inserts and deletes just work. Unlike counters
modulo M it is private only while the states of users stay within the bound that its scale is for:
noise of infinite support hides a shift of a given length, and no longer one.

An announced intrusion adds fresh noise to every cell.

Reference: N. Alon, Y. Matias, M. Szegedy, "The space complexity of approximating the frequency
moments", 1999, with one cell a user; noise on a sketch as in D. Mir, S. Muthukrishnan, A. Nikolov,
R. Wright, "Pan-private algorithms via statistics on sketches", section 3.
docs/guarantees/moments.md proves the claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.ground.kernels import kernel, read_only
from panprivacy.privacy.coins import Coins
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.protocol import Deltas, Table, with_deltas
from panprivacy.tables.cells.summed import SummedCells


@dataclass(frozen=True, slots=True)
class AdditiveCells(SummedCells):
    """A table of sums of deltas, int64, to which two slots lead each: one adds, one takes away.

    Guarantee: a user whose states move the cells by at most `move` in all costs `move / scale` at
    one look, and `2 move / later` more at each that is announced. [tests/exact/test_moments.py]

    Args:
        cells: number of cells.
        scale: scale of the initial noise.
        later: of the noise that an announced intrusion adds.
        clip: a release sums the squares of what is cut to ± this; 0 to publish each cell.
    """

    later: Fraction
    clip: int = 0

    def fresh_noise(self, coins: Coins) -> Table:
        """Return noise for every cell."""
        return coins.discrete_laplace(self.later, self.cells)

    def rerandomise(self, table: Table, noise: Table) -> None:
        """Add the noise to every cell."""
        table += noise

    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,  # noqa: ARG002 - later noise is the same whatever came before
        coins: Coins,  # noqa: ARG002 - adding needs no coins
    ) -> None:
        """Add each delta to its cell, with the user's sign."""
        for piece, given in with_deltas(slots, deltas):
            changes = np.ones(len(piece), np.int64) if given is None else given
            _add(table, piece, changes)

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return a copy of each cell; or the sum of squares of clipped cells, as one number."""
        if not self.clip:
            return table.copy()
        return np.array([_clipped_product(table, table, self.clip)])


@dataclass(frozen=True, slots=True)
class PairedCells(AdditiveCells):
    """Two such tables of equal size, one after the other; a user has the same place in both.

    Guarantee: as for `AdditiveCells`; `move` is what a user moves both tables by, together.
    """

    def half(self, table: Table, side: int) -> Table:
        """Return the table of one side, in place."""
        middle = self.cells // 2
        return table[:middle] if side == 0 else table[middle:]

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return a copy of each cell; or of clipped ones the sums of products, and of squares."""
        if not self.clip:
            return table.copy()
        one, other = self.half(table, 0), self.half(table, 1)
        pairs = (one, other), (one, one), (other, other)
        return np.array([_clipped_product(*pair, self.clip) for pair in pairs])


_SLOTS = read_only("int64")


@kernel(f"void(int64[::1], {_SLOTS}, {_SLOTS})")
def _add(table: Table, slots: Slots, deltas: Deltas) -> None:
    """Add each delta to the cell of its slot: an odd one takes it away."""
    for row in range(slots.size):
        slot = slots[row]
        table[slot >> 1] += -deltas[row] if slot & 1 else deltas[row]


@kernel("int64(int64[::1], int64[::1], int64)")
def _clipped_product(one: Table, other: Table, clip: int) -> int:
    """Return the sum of the products of two tables, cell by cell, each cut to ±clip."""
    total = 0
    for cell in range(one.size):
        total += min(max(one[cell], -clip), clip) * min(max(other[cell], -clip), clip)
    return total
