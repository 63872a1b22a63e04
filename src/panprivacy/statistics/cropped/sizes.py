"""What a `CroppedSum` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy._parse import Users
from panprivacy.errors import PlanError
from panprivacy.planning.blocks import MOST_BOUND
from panprivacy.planning.request import Request
from panprivacy.statistics.common_sizes import Counters, Memory, PerhapsUniverse
from panprivacy.statistics.cropped.levels_plan import plan_cropped_levels
from panprivacy.statistics.cropped.plan import CroppedPlan, default_bound, plan_cropped
from panprivacy.statistics.records import Sizes, users, whole


class CroppedSizes(Sizes, frozen=True, tag="cropped-sum"):
    """The sum of what users did, of nobody more than tau."""

    tau: Annotated[int, whole("the most that a user counts for", MOST_BOUND, example=10)]
    bound: Annotated[
        int | None,
        whole("the largest sum of a user's deltas; others spoil answers; 64 tau unless told",
              MOST_BOUND, example=640),
    ] = None  # fmt: skip
    universe: PerhapsUniverse = None
    expected: Annotated[
        Users | None,
        users("for open-ended ids, the most users that may come; or a range of users that count "
              "for tau each, for an error that is a share of the sum", 100_000),
    ] = None  # fmt: skip
    cells: Counters = None
    memory: Memory = None

    def plan(self, request: Request) -> CroppedPlan:
        """A counter for each user, or hashed ones, or levels of them for a range of users."""
        if isinstance(self.expected, tuple):
            self._check_range()
            reach = self.bound or default_bound(self.tau, None)
            sizes = self.tau, reach, self.expected
            return plan_cropped_levels(*sizes, request, self.memory)
        sizes_of_users = self.universe, self.cells, self.expected
        return plan_cropped(self.tau, self.bound, *sizes_of_users, request, self.memory)

    def _check_range(self) -> None:
        """Refuse what levels have no use for."""
        if self.universe is not None:
            message = "a universe says how many users there are: leave out expected="
            raise PlanError(message)
        if self.cells is not None:
            message = "a range of expected users is planned by memory=, not by cells="
            raise PlanError(message)
