"""What a `DistinctCount` is told."""

from __future__ import annotations

from typing import Annotated, ClassVar

from panprivacy._parse import Users
from panprivacy._validate import MOST_BYTES
from panprivacy.errors import PlanError
from panprivacy.planning.request import Request
from panprivacy.statistics.distinct.net_plan import MOST_BOUND, plan_net_distinct
from panprivacy.statistics.distinct.plan import LevelledPlan, plan_distinct
from panprivacy.statistics.records import Sizes, flag, learned_users, whole


class DistinctSizes(Sizes, frozen=True, tag="distinct"):
    """The number of different users that appeared, or are left, in a fixed and small memory."""

    most_memory: ClassVar[int] = 1 << 16

    expected: Annotated[
        Users,
        learned_users(
            "how many users to plan for; the count stays private outside of the range", "1000:1e9"
        ),
    ] = (1_000, 1_000_000_000)
    memory: Annotated[int, whole("most bytes of the table; the plan may use fewer", MOST_BYTES)] = (
        1 << 16
    )
    deletions: Annotated[
        bool, flag("count users whose deltas do not add up to 0, in place of all that appeared")
    ] = False
    bound: Annotated[
        int | None,
        whole(
            "with deletions: the largest sum of a user's deltas; others are missed",
            MOST_BOUND,
            example=100,
        ),
    ] = None
    signed: Annotated[bool, flag("with deletions: whether such sums may be below 0")] = False

    def plan(self, request: Request) -> LevelledPlan:
        """Presence bits, or with deletions counters."""
        low, high = self.expected if isinstance(self.expected, tuple) else (self.expected,) * 2
        if self.deletions:
            if self.bound is None:
                message = "deletions needs bound=: the largest sum of a user's deltas"
                raise PlanError(message)
            sizes = (low, high), self.memory, self.bound, request
            return plan_net_distinct(*sizes, signed=self.signed)
        if self.bound is not None or self.signed:
            message = "bound= and signed= are for deletions=True"
            raise PlanError(message)
        return plan_distinct((low, high), self.memory, request)
