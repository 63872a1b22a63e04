"""What a `BothCount` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.both.plan import BothPlan, plan_both
from panprivacy.statistics.common_sizes import (
    LeftLabel,
    RightLabel,
    check_labels,
    read_share,
)
from panprivacy.statistics.records import Sizes, custom_field, integer, users
from panprivacy.tables.planning.request import Request


class BothSizes(Sizes, frozen=True, tag="both"):
    """The users of two streams: how many appeared in each, in both, and in either."""

    expected: Annotated[
        Users, users("how many users to plan for in either stream, of any ids", "100_000")
    ]
    left: LeftLabel = "left"
    right: RightLabel = "right"
    memory: Annotated[
        int, integer("most bytes of both tables; the plan may use fewer", MOST_BYTES)
    ] = 1 << 20
    cells: Annotated[
        int | None,
        integer("pairs of bits, in place of memory", 4 * MOST_BYTES, example=300_000),
    ] = None
    share: Annotated[
        str,
        custom_field(
            read_share,
            "SHARE",
            "the share of the users of a stream who are in the other one, for which the error is "
            "told",
            "0.3",
        ),
    ] = "0.5"

    def plan(self, request: Request) -> BothPlan:
        """Pairs of hashed bits, of the law that errs least in users of both streams."""
        check_labels(self.left, self.right)
        if request.intrusions:
            message = (
                "no intrusion can be announced to pairs of bits: leave out intrusions=, and begin "
                "a new window after an intrusion"
            )
            raise PlanError(message)
        low, high = self.expected if isinstance(self.expected, tuple) else (self.expected,) * 2
        sides = self.left, self.right
        memory = self.memory
        return plan_both((low, high), memory, self.cells, sides, float(self.share), request)
