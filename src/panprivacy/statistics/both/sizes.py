"""What a `BothCount` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.both.plan import BothPlan, plan_both
from panprivacy.statistics.inner.sizes import stream_label
from panprivacy.statistics.records import Sizes, custom_field, integer, users
from panprivacy.tables.planning.request import Request


def _share(name: str, value: object) -> str:
    """Return a share as it is written, so that equal sizes are equal."""
    try:
        share = float(str(value))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        message = f"{name} must be a number from 0 to 1"
        raise PlanError(message)
    return f"{share:g}"


class BothSizes(Sizes, frozen=True, tag="both"):
    """The users of two streams: how many appeared in each, in both, and in either."""

    expected: Annotated[
        Users, users("how many users to plan for in either stream, of any ids", "100_000")
    ]
    left: Annotated[
        str,
        custom_field(stream_label, "WORD", "what the column of sides calls one stream", "left"),
    ] = "left"
    right: Annotated[
        str,
        custom_field(
            stream_label, "WORD", "what the column of sides calls the other stream", "right"
        ),
    ] = "right"
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
            _share,
            "SHARE",
            "the share of the users of a stream who are in the other one, for which the error is "
            "told",
            "0.3",
        ),
    ] = "0.5"

    def plan(self, request: Request) -> BothPlan:
        """Pairs of hashed bits, of the law that errs least in users of both streams."""
        if self.left == self.right:
            message = "left and right must be different words: they tell two streams apart"
            raise PlanError(message)
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
