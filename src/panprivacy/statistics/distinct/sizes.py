"""What a `DistinctCount` is told."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.distinct.net_plan import MOST_BOUND, plan_net_distinct
from panprivacy.statistics.distinct.plan import LevelledPlan, plan_distinct
from panprivacy.statistics.distinct.strict_plan import plan_strict_distinct
from panprivacy.statistics.records import Sizes, flag, flag_or, integer, learned_users
from panprivacy.tables.planning.request import Request

STRICT = "strict"


class DistinctSizes(Sizes, frozen=True, tag="distinct"):
    """The number of different users that appeared, or are left, in a fixed and small memory."""

    most_memory: ClassVar[int] = 1 << 16

    expected: Annotated[
        Users,
        learned_users(
            "how many users to plan for; the count stays private outside of the range", "1000:1e9"
        ),
    ] = (1_000, 1_000_000_000)
    memory: Annotated[
        int, integer("most bytes of the table; the plan may use fewer", MOST_BYTES)
    ] = 1 << 16
    deletions: Annotated[
        bool | Literal["strict"],
        flag_or(
            STRICT,
            "count users whose deltas do not add up to 0, in place of all that appeared; strict: "
            "nobody enters twice, or leaves without having entered, so a bit does for a counter",
        ),
    ] = False
    bound: Annotated[
        int | None,
        integer(
            "with deletions=true: the largest sum of a user's deltas; others are missed",
            MOST_BOUND,
            example=100,
        ),
    ] = None
    signed: Annotated[bool, flag("with deletions=true: whether such sums may be below 0")] = False

    def plan(self, request: Request) -> LevelledPlan:
        """Presence bits, or with deletions counters, or parities."""
        low, high = self.expected if isinstance(self.expected, tuple) else (self.expected,) * 2
        if self.deletions is True:
            if self.bound is None:
                message = "deletions needs bound=: the largest sum of a user's deltas; "
                message += f"or say {STRICT}, if a user is in or out"
                raise PlanError(message)
            sizes = (low, high), self.memory, self.bound, request
            return plan_net_distinct(*sizes, signed=self.signed)
        if self.bound is not None or self.signed:
            message = "bound= and signed= are for deletions=True"
            strict = "; in a strict stream a user is in or out"
            raise PlanError(message + (strict if self.deletions else ""))
        plan = plan_strict_distinct if self.deletions else plan_distinct
        return plan((low, high), self.memory, request)
