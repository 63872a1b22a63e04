"""What a `ThresholdCount` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.planning.blocks import MOST_BOUND
from panprivacy.planning.request import Request
from panprivacy.statistics.common_sizes import Counters, Memory, Universe
from panprivacy.statistics.records import Sizes, whole
from panprivacy.statistics.threshold.plan import ThresholdPlan, plan_threshold


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
        sizes = self.threshold, self.bound, self.universe, self.cells
        return plan_threshold(*sizes, request, self.memory)
