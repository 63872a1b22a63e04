"""What a `RunningCroppedSum` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.statistics.common_sizes import CounterCells, CounterMemory, PerhapsUniverse
from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.running.cropped.plan import RunningCroppedPlan
from panprivacy.statistics.running.plan import at_birth
from panprivacy.statistics.running.sizes import Horizon
from panprivacy.statistics.running.sketch import (
    MOST_BOUND,
    MOST_CORNER,
    best_sketch,
    cells_of,
    ways_to_spend,
)
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import check_cells, check_memory

_MOST_USERS = 1 << 40
_CELLS_PER_USER = tuple(4 << power for power in range(7))
"""Of hashed cells: with more the noise of empty cells grows, with fewer what collisions hide."""


class RunningCroppedSizes(Sizes, frozen=True, tag="running-cropped-sum"):
    """The sum of what users did so far, of nobody more than tau, at every step; hides one event."""

    tau: Annotated[int, integer("the most that a user counts for", MOST_CORNER, example=10)]
    horizon: Horizon
    bound: Annotated[int, integer("the most that one event adds", MOST_BOUND, example=1)] = 1
    universe: PerhapsUniverse = None
    expected: Annotated[
        int | None,
        integer("for open-ended ids, the most users that may come", _MOST_USERS, example=100_000),
    ] = None
    cells: CounterCells = None
    memory: CounterMemory = None

    def plan(self, request: Request) -> RunningCroppedPlan:
        """A cell for each user, or of a sample, or hashed ones; and a tree of steps."""
        split, ways = at_birth(request), ways_to_spend(request, "a running cropped sum")
        tau, universe, expected = self.tau, self.universe, self.expected
        steps = self.horizon, self.bound
        return best_sketch(
            RunningCroppedPlan(tau, universe, cells, expected, request, split, *steps, spent)
            for cells in self._cells()
            for spent in ways
        )

    def _cells(self) -> list[int]:
        """Return the largest number of cells.

        Raises:
            PlanError: sizes do not say how many users there are, or contradict each other.
        """
        universe, expected, cells = self.universe, self.expected, self.cells
        if (universe is None) == (expected is None):
            message = (
                "say either universe= (how many users there could be) or, for open-ended ids, "
                "expected= (the most that may come)"
            )
            raise PlanError(message)
        check_cells(universe, cells)
        check_memory(cells, self.memory)
        fitting = cells_of(self.memory)
        fewest = 1 if universe else 2 * (expected or 1)
        if (cells or fitting) < fewest:
            message = (
                f"{'memory' if cells is None else 'cells'} must be larger: {fewest:,} cells of 8 "
                "bytes are needed at least, because users who share one hide each other"
            )
            raise PlanError(message)
        if cells is not None:
            return [cells]
        wanted = [universe] if universe else [times * (expected or 1) for times in _CELLS_PER_USER]
        return sorted({min(one, fitting) for one in wanted})
