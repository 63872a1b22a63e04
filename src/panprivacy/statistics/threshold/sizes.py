"""What a `ThresholdCount` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.statistics.common_sizes import Below, CounterCells, CounterMemory, Universe
from panprivacy.statistics.records import Sizes, flag, integer, learned_bound
from panprivacy.statistics.threshold.hard import MOST_HARD, HardPlan, hard_plan
from panprivacy.statistics.threshold.plan import SoftThreshold, soft_plan
from panprivacy.tables.planning.blocks import MOST_BOUND, default_reach
from panprivacy.tables.planning.learning import LearnedBound, highest
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import cells_within, check_cells, check_memory


class ThresholdSizes(Sizes, frozen=True, tag="threshold"):
    """The number of users in a state of about a threshold or more; from half of it on in part."""

    threshold: Annotated[
        int, integer("the state from which on a user counts in full", MOST_BOUND, example=10)
    ]
    universe: Universe
    bound: Annotated[
        int | LearnedBound | None,
        learned_bound("the largest sum of a user's deltas; others spoil answers; 64 times the "
                      "threshold unless told", MOST_BOUND, example=640),
    ] = None  # fmt: skip
    cells: CounterCells = None
    memory: CounterMemory = None
    hard: Annotated[
        bool,
        flag("whether nobody counts in part: the threshold is exact, and the error larger, at "
             "epsilon 1 by 1.4 times at 10 and twice at 100; the bound is at most 4,095"),
    ] = False  # fmt: skip
    below: Below = None

    def plan(self, request: Request) -> SoftThreshold | HardPlan:
        """One counter for each user, as far as the memory reaches, and a sample beyond that."""
        threshold, universe = self.threshold, self.universe
        bound = self._highest
        if threshold < 2:
            message = "threshold must be at least 2; for who came at all, count distinct users"
            raise PlanError(message)
        if threshold > bound:
            message = f"threshold ({threshold:,}) exceeds the bound ({bound:,}): nobody would count"
            raise PlanError(message)
        check_cells(universe, self.cells)
        check_memory(self.cells, self.memory)
        if self.hard:
            return hard_plan(threshold, bound, universe, self._counters, request, self.below)
        sizes = threshold, bound, universe, self.cells, self.memory
        room = self.bound is not None  # 64 times the threshold is room enough
        return soft_plan(*sizes, request, room=room, below=self.below)

    @property
    def _highest(self) -> int:
        """The bound of the current window."""
        if self.bound is None:
            return default_reach(self.threshold, MOST_HARD if self.hard else MOST_BOUND)
        return highest(self.bound, self.threshold)

    def _counters(self, modulus: int) -> int:
        """Return the number of counters with this number of values."""
        return self.cells or min(self.universe, cells_within(self.memory, modulus))
