"""What a `RunningDistinct` is told."""

from __future__ import annotations

from typing import Annotated, ClassVar

from panprivacy.ground.parsing import Users
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.records import Sizes, integer, users
from panprivacy.statistics.running.distinct.plan import RunningDistinctPlan, plan_running_distinct
from panprivacy.statistics.running.sizes import Horizon
from panprivacy.tables.planning.request import Request


class RunningDistinctSizes(Sizes, frozen=True, tag="running-distinct"):
    """The number of different users so far, at the end of every step; hides one event."""

    most_memory: ClassVar[int] = 1 << 16

    horizon: Horizon
    expected: Annotated[
        Users,
        users(
            "how many users to plan for; the count stays private outside of the range", "1000:1e9"
        ),
    ] = (1_000, 1_000_000_000)
    memory: Annotated[int, integer("most bytes of bits; the plan may use fewer", MOST_BYTES)] = (
        1 << 16
    )

    def plan(self, request: Request) -> RunningDistinctPlan:
        """Levels of bits, and a tree of steps for each."""
        low, high = self.expected if isinstance(self.expected, tuple) else (self.expected,) * 2
        return plan_running_distinct((low, high), self.memory, self.horizon, request)
