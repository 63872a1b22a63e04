"""What a `HeavyHitterCount` is told."""

from __future__ import annotations

import math
from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.ground.validation import MOST_BYTES, positive_integer
from panprivacy.statistics.common_sizes import Below, CounterMemory
from panprivacy.statistics.heavy.plan import HeavyPlan, SlopedHeavyPlan
from panprivacy.statistics.records import Sizes, custom_field, integer
from panprivacy.statistics.soft.block_plans import best_plan, refused
from panprivacy.statistics.soft.sloped_plans import Search
from panprivacy.tables.planning.blocks import MOST_ANNOUNCED, count_range
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import cells_within

MOST_K, MOST_TOTAL = 1 << 15, 1 << 60

LEAST_INDEPENDENCE, MOST_INDEPENDENCE = 4, 64
"""With 4, pairs of users that share cells are as many as if all cells were independent, and vary
as much; with 2, ids in a row may all share cells or none."""

_UNITS, _UNITS_OF_A_USER = 1 << 20, 1 << 8
"""A total is counted in at least so many units, or so many times k, if it has as many."""

_LEAST_THRESHOLD = 0.95
"""A threshold that is a multiple of the resolution may be so much of what it should be."""

_DEVIATIONS = 6
"""By so many standard deviations of the rounding a counter may exceed the total."""

CELLS_OF_A_USER = tuple(2 << power for power in range(10))
"""Times k: with more the noise of empty cells grows, with fewer what collisions add."""


def _independence(name: str, given: object) -> int:
    """Return the number of users whose cells are independent."""
    chosen = positive_integer(MOST_INDEPENDENCE, **{name: given})
    if chosen < LEAST_INDEPENDENCE:
        message = (
            f"independence must be at least {LEAST_INDEPENDENCE}: with less, how often users share "
            "cells varies too much"
        )
        raise PlanError(message)
    return chosen


def check_heavy(k: int, total: int, cells: int | None) -> None:
    """Refuse what leaves nothing to tell.

    Raises:
        PlanError: too small a total, or too few cells.
    """
    if total < 2 * k:
        message = f"total ({total:,}) must be at least 2 k ({2 * k:,}), or users of 1 would count"
        raise PlanError(message)
    if cells is not None and cells < 2 * k:
        message = f"cells ({cells:,}) must be at least 2 k ({2 * k:,}): users who share one add up"
        raise PlanError(message)


Independence = Annotated[
    int, custom_field(_independence, "N", "the cells of so many users are independent, 4 to 64")
]


class HeavySizes(Sizes, frozen=True, tag="heavy-hitters"):
    """The number of users that hold at least 1/k of a public total."""

    k: Annotated[int, integer("who holds at least 1/k of the total counts", MOST_K, example=20_000)]
    total: Annotated[
        int,
        integer("what all deltas add up to, which is public", MOST_TOTAL, example=10_000_000),
    ]
    cells: Annotated[
        int | None,
        integer(
            "counters, at least 2k; unless told, as many as make the largest error smallest",
            MOST_BYTES,
            example=640_000,
        ),
    ] = None
    memory: CounterMemory = None
    resolution: Annotated[
        int | None,
        integer("what each delta is rounded to a multiple of, at random; the finest unless told",
              MOST_TOTAL, example=4),
    ] = None  # fmt: skip
    independence: Independence = LEAST_INDEPENDENCE
    below: Below = None

    def plan(self, request: Request) -> HeavyPlan | SlopedHeavyPlan:
        """Several times k counters, whatever the number of users."""
        k, total = self.k, self.total
        check_heavy(k, total, self.cells)
        if request.intrusions and self.below:
            message = "below= goes with no announced intrusion: make a fresh one after each"
            raise PlanError(message)
        if request.intrusions > MOST_ANNOUNCED:
            raise refused(self, request, "a count of heavy hitters")
        unit, block = self._units()
        units = -(-total // unit)
        reach = units + (_DEVIATIONS * math.isqrt(units) if unit > 1 else 0)
        plain = best_plan(
            lambda cells, chosen, split: HeavyPlan(
                k, total, cells, self.independence, request, split, unit, self.below, chosen
            ),
            request,
            block,
            reach,
            cells=self.cells,
            memory=self.memory,
            wanted=[times * k for times in CELLS_OF_A_USER],
            fewest=2 * k,
            moved=count_range,
        )
        if not self.below:  # room costs 8 to 35 % of the error: it has to be asked for
            return plain
        search = Search(
            lambda slope, cells, split: SlopedHeavyPlan(
                k, total, cells, self.independence, request, split, unit, slope
            ),
            self._counters,
            block,
            reach,
            plain,
        )
        return search.with_room(-(-self.below // unit))

    def _counters(self, modulus: int) -> list[int]:
        """Return the largest number of counters with this number of values."""
        if self.cells is not None:
            return [self.cells]
        fitting = cells_within(self.memory, modulus)
        wanted = {min(times * self.k, fitting) for times in CELLS_OF_A_USER}
        return sorted(size for size in wanted if size >= 2 * self.k)

    def _units(self) -> tuple[int, int]:
        """Return the unit of rounding of deltas, and how many units are half of 1/k of the total.

        Raises:
            PlanError: they are none, or so few that rounding moves the thresholds.
        """
        k, total = self.k, self.total
        unit = self.resolution or -(-total // max(_UNITS, _UNITS_OF_A_USER * k))
        block = total // (2 * k * unit)
        if not block:
            least = 2 * k * unit
            message = f"total ({total:,}) must be at least 2 k times the resolution ({least:,})"
            raise PlanError(message)
        if unit > 1 and block * unit < _LEAST_THRESHOLD * total / (2 * k):
            message = (
                f"a resolution of {unit:,} moves the thresholds; take one that divides total/2k"
            )
            raise PlanError(message)
        return unit, block
