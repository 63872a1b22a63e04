"""What a `HeavyHitterCount` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy._validate import MOST_BYTES, positive_integer
from panprivacy.errors import PlanError
from panprivacy.planning.request import Request
from panprivacy.statistics.common_sizes import Memory
from panprivacy.statistics.heavy.plan import (
    LEAST_INDEPENDENCE,
    MOST_INDEPENDENCE,
    MOST_K,
    MOST_TOTAL,
    HeavyPlan,
    plan_heavy,
)
from panprivacy.statistics.records import Sizes, given_as, whole


def _independence(name: str, given: object) -> int:
    """Of how many users the cells are independent."""
    chosen = positive_integer(MOST_INDEPENDENCE, **{name: given})
    if chosen < LEAST_INDEPENDENCE:
        message = (
            f"independence must be at least {LEAST_INDEPENDENCE}: with less, how often users share "
            "cells varies too much"
        )
        raise PlanError(message)
    return chosen


class HeavySizes(Sizes, frozen=True, tag="heavy-hitters"):
    """The number of users that hold at least 1/k of a public total."""

    k: Annotated[int, whole("who holds at least 1/k of the total counts", MOST_K, example=10_000)]
    total: Annotated[
        int, whole("what all deltas add up to, which is public", MOST_TOTAL, example=10_000_000)
    ]
    cells: Annotated[
        int | None,
        whole(
            "counters, at least 2k; those of the smallest error unless told",
            MOST_BYTES,
            example=320_000,
        ),
    ] = None
    memory: Memory = None
    resolution: Annotated[
        int | None,
        whole("what each delta is rounded to a multiple of, at random; the finest unless told",
              MOST_TOTAL, example=4),
    ] = None  # fmt: skip
    independence: Annotated[
        int, given_as(_independence, "N", "the cells of so many users are independent, 4 to 64")
    ] = LEAST_INDEPENDENCE

    def plan(self, request: Request) -> HeavyPlan:
        """Several times k counters, whatever the number of users."""
        sizes = self.k, self.total, self.cells, self.resolution
        return plan_heavy(*sizes, request, self.memory, self.independence)
