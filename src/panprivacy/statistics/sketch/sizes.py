"""What an `OverlapSketch` is told."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, cast

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.common_sizes import PerhapsUniverse, read_share
from panprivacy.statistics.records import Sizes, custom_field, integer, users
from panprivacy.statistics.sketch.plan import OverlapPlan, plan_hashed, plan_universe
from panprivacy.statistics.sketch.publication import Covers
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import check_memory

_COVERS = "seizure", "publication"


def _covers(name: str, value: object) -> Covers:
    if value not in _COVERS:
        message = f"{name} must be seizure or publication"
        raise PlanError(message)
    return cast("Covers", value)


class OverlapSizes(Sizes, frozen=True, tag="overlap"):
    """The users of a window, as a noisy table that is published and compared with others."""

    most_memory: ClassVar[int] = 1 << 20
    published: ClassVar[bool] = True

    expected: Annotated[
        Users | None,
        users("how many users to plan for in each window, of any ids", "100_000"),
    ] = None
    universe: PerhapsUniverse = None
    cells: Annotated[
        int | None,
        integer("with universe=: bits, one for each user, fewer for a sample", 8 * MOST_BYTES,
                example=500_000),
    ] = None  # fmt: skip
    memory: Annotated[
        int | None,
        integer("most bytes of the table; the plan may use fewer", MOST_BYTES, example=65_536),
    ] = None
    covers: Annotated[
        Literal["seizure", "publication"],
        custom_field(
            _covers,
            "WHAT",
            "what epsilon covers: seizure, the published table and one look at the state before; "
            "or publication, the table of a window whose state nobody sees",
            "publication",
        ),
    ] = "seizure"
    share: Annotated[
        str,
        custom_field(
            read_share,
            "SHARE",
            "the share of users who come back, for which the error of the return rate is told",
            "0.3",
        ),
    ] = "0.5"

    def plan(self, request: Request) -> OverlapPlan:
        """Hashed bits for an expected number of users, or one bit for each user of a universe."""
        check_memory(self.cells, self.memory)
        self._check_request(request)
        told = self.covers, float(self.share), request
        if self.universe is not None and self.expected is None:
            return plan_universe(self.universe, self.cells, self.memory, *told)
        if self.expected is None or self.universe is not None or self.cells is not None:
            message = (
                "overlap needs expected=, the number of users of a window; or universe=, with "
                "cells= where a sample of it will do"
            )
            raise PlanError(message)
        low, high = self.expected if isinstance(self.expected, tuple) else (self.expected,) * 2
        return plan_hashed((low, high), self.memory or self.most_memory, *told)

    def _check_request(self, request: Request) -> None:
        """Refuse what a table that is published once cannot be asked."""
        if request.intrusions:
            message = (
                "no intrusion can be announced to a table that is published: leave out "
                "intrusions=, and begin a new window after an intrusion"
            )
            raise PlanError(message)
        if request.budget is not None:
            message = "how bits are published follows from epsilon alone: leave out budget="
            raise PlanError(message)
