"""Sums of deltas in whole numbers, and their total with each sum cropped at a corner.

A cell has initial discrete Laplace noise of the size of one event, and an update adds its delta.
What all cells count together is unbiased: a cell at the corner itself counts for `q/(1-q)**2` more,
with `q = exp(-1/scale)`, which makes up for the noise that is cut off.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 5, has the idea: sketches are linear, so they can be told at every step. Their
noise is of the size of a user. docs/guarantees/running-cropped.md proves the claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panprivacy.ground.kernels import kernel, read_only
from panprivacy.privacy.coins import Coins
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.protocol import Deltas, Table, with_deltas
from panprivacy.tables.cells.summed import SummedCells


@dataclass(frozen=True, slots=True)
class CroppedCells(SummedCells):
    """A table of sums of deltas, int64.

    Guarantee: an event of `delta` costs `delta / scale` at one look. What cells count together
    changes by at most `reach(delta)` in all, over the steps at which it changes, if no delta is
    below 0. [docs/guarantees/running-cropped.md]

    Args:
        cells: number of cells.
        scale: scale of the initial noise.
        corners: from here on a cell counts for no more; what cells count up to a second corner is
            taken away.
        unit: what 1 counts for.
    """

    corners: tuple[int, ...]
    unit: int

    @property
    def cut(self) -> float:
        """Value of a cell at a corner beyond the corner, so that the mean is right."""
        ratio = -math.expm1(-1 / float(self.scale))
        return (1 - ratio) / ratio**2

    @property
    def spike(self) -> int:
        """The same in units, rounded."""
        return round(self.cut * self.unit)

    def reach(self, delta: int) -> int:
        """Return how much an event may change the total of all cells, over all steps together."""
        return 2 * self.unit * delta + 4 * len(self.corners) * self.spike

    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,  # noqa: ARG002 - nothing is added after a look
        coins: Coins,  # noqa: ARG002 - adding needs no coins
    ) -> None:
        """Add each delta to its cell."""
        for piece, given in with_deltas(slots, deltas):
            changes = np.ones(len(piece) + 1, np.int64)[:-1] if given is None else given
            _add(table, piece, changes)

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the total of all cells, in units, as an array of one number."""
        sums = [_counted(table, corner, self.unit, self.spike) for corner in self.corners]
        total = np.array(sums[:1], np.int64)
        for taken in sums[1:]:
            total -= taken  # modulo 2**64, where the difference fits
        return total

    def variance(self, states: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of a cell's value in units of 1, by the sum of its deltas.

        Args:
            states: float64[n], whole numbers.
        """
        ratio, cut = math.exp(-1 / float(self.scale)), self.cut
        pull = cut * (1 - ratio) / (1 + ratio)
        away = [corner - states for corner in self.corners]
        near = [ratio ** np.abs(one) for one in away]
        if len(self.corners) == 1:
            below = cut * (2 + (pull - 1) * near[0])
            return np.where(away[0] >= 0, below, cut * (1 + pull) * near[0])
        between = (away[0] >= 0) & (away[1] < 0)
        outer = np.where(away[0] >= 0, near[1], near[0])
        inner = np.where(away[0] >= 0, near[0], near[1])
        outside = cut * ((pull - 1) * inner + (pull + 1) * outer)
        return np.where(between, cut * (2 + (pull - 1) * (near[0] + near[1])), outside)


_SLOTS = read_only("int64")


@kernel(f"void(int64[::1], {_SLOTS}, {_SLOTS})")
def _add(table: Table, slots: Slots, deltas: Deltas) -> None:
    """Add each delta to the cell of its slot, if it has one."""
    for row in range(slots.size):
        if slots[row] >= 0:
            table[slots[row]] += deltas[row]


@kernel("int64(int64[::1], int64, int64, int64)")
def _counted(table: Table, corner: int, unit: int, spike: int) -> int:
    """Return the total of the cells: each is cropped at the corner, and counts more there."""
    total = 0
    for cell in range(table.size):
        total += unit * min(table[cell], corner)
        if table[cell] == corner:
            total += spike
    return total
