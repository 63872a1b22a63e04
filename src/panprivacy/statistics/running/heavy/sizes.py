"""What a `RunningHeavyHitters` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.common_sizes import CounterMemory
from panprivacy.statistics.heavy.sizes import (
    CELLS_OF_A_USER,
    LEAST_INDEPENDENCE,
    MOST_K,
    MOST_TOTAL,
    Independence,
    check_heavy,
)
from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.running.heavy.plan import RunningHeavyPlan
from panprivacy.statistics.running.plan import at_birth
from panprivacy.statistics.running.sizes import Horizon
from panprivacy.statistics.running.sketch import (
    MOST_BOUND,
    best_sketch,
    cells_of,
    ways_to_spend,
)
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import check_memory


class RunningHeavySizes(Sizes, frozen=True, tag="running-heavy-hitters"):
    """The number of users with at least 1/k of a public total by now, at every step.

    Hides one event.
    """

    k: Annotated[int, integer("who holds at least 1/k of the total counts", MOST_K, example=1_000)]
    total: Annotated[
        int,
        integer("what all deltas will add up to, which is public", MOST_TOTAL, example=10_000_000),
    ]
    horizon: Horizon
    bound: Annotated[int, integer("the most that one event adds", MOST_BOUND, example=1)] = 1
    cells: Annotated[
        int | None,
        integer(
            "cells, at least 2k; unless told, as many as make the largest error smallest",
            MOST_BYTES,
            example=32_000,
        ),
    ] = None
    memory: CounterMemory = None
    independence: Independence = LEAST_INDEPENDENCE

    def plan(self, request: Request) -> RunningHeavyPlan:
        """Several times k cells, whatever the number of users; and a tree of steps."""
        check_heavy(self.k, self.total, self.cells)
        check_memory(self.cells, self.memory)
        split, ways = at_birth(request), ways_to_spend(request, "a running count of heavy hitters")
        fitting, fewest = cells_of(self.memory), 2 * self.k
        if fitting < fewest:
            message = f"memory must be larger: {fewest:,} cells of 8 bytes are needed at least"
            raise PlanError(message)
        wanted = sorted({min(times * self.k, fitting) for times in CELLS_OF_A_USER})
        k, total, independence = self.k, self.total, self.independence
        steps = self.horizon, self.bound
        return best_sketch(
            RunningHeavyPlan(k, total, cells, independence, request, split, *steps, spent)
            for cells in ([self.cells] if self.cells else wanted)
            for spent in ways
        )
