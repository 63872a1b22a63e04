"""What a `ThresholdCount` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.planning.blocks import (
    MOST_BOUND,
    check_intrusions,
    count_range,
    default_reach,
)
from panprivacy.planning.request import Request
from panprivacy.planning.universe import check_cells
from panprivacy.statistics.block_plans import best_plan
from panprivacy.statistics.common_sizes import Counters, Memory, Universe
from panprivacy.statistics.records import Sizes, whole
from panprivacy.statistics.threshold.plan import ThresholdPlan


class ThresholdSizes(Sizes, frozen=True, tag="threshold"):
    """The number of users in a state of about a threshold or more; from half of it on in part."""

    threshold: Annotated[
        int, whole("the state from which on a user counts in full", MOST_BOUND, example=10)
    ]
    universe: Universe
    bound: Annotated[
        int | None,
        whole("the largest sum of a user's deltas; others spoil answers; 64 times the threshold "
              "unless told", MOST_BOUND, example=640),
    ] = None  # fmt: skip
    cells: Counters = None
    memory: Memory = None

    def plan(self, request: Request) -> ThresholdPlan:
        """One counter for each user, as far as the memory reaches, and a sample beyond that."""
        threshold, universe = self.threshold, self.universe
        bound = self.bound or default_reach(threshold)
        if threshold < 2:
            message = "threshold must be at least 2; for who came at all, count distinct users"
            raise PlanError(message)
        if threshold > bound:
            message = f"threshold ({threshold:,}) exceeds the bound ({bound:,}): nobody would count"
            raise PlanError(message)
        check_cells(universe, self.cells)
        check_intrusions(request, "a threshold", "a fresh count")
        return best_plan(
            lambda cells, chosen, split: ThresholdPlan(
                threshold, bound, universe, cells, chosen, request, split
            ),
            request,
            threshold // 2,
            bound,
            cells=self.cells,
            memory=self.memory,
            wanted=[universe],
            moved=count_range,
            room=self.bound is not None,  # 64 times the threshold is room enough
        )
