"""What a `CroppedSum` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy._parse import Users
from panprivacy.errors import PlanError
from panprivacy.planning.blocks import MOST_BOUND, best_plan, check_intrusions, default_reach
from panprivacy.planning.request import Request
from panprivacy.planning.universe import check_cells
from panprivacy.statistics.common_sizes import Counters, Memory, PerhapsUniverse
from panprivacy.statistics.cropped.levels_plan import plan_levels
from panprivacy.statistics.cropped.plan import MOST_SHARING, CroppedPlan
from panprivacy.statistics.records import Sizes, users, whole

_CELLS_PER_USER = tuple(4 << power for power in range(9))
"""Of hashed cells: with more the noise of empty cells grows, with fewer what collisions hide."""


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
        tau, universe, expected = self.tau, self.universe, self.expected
        if isinstance(expected, tuple):
            self._check_range()
        sharing = 1 if universe else MOST_SHARING
        bound = self.bound or default_reach(tau, MOST_BOUND // sharing)
        if tau > bound:
            message = (
                f"tau ({tau:,}) exceeds the bound ({bound:,}): no state would be cropped there"
            )
            raise PlanError(message)
        check_intrusions(request, "a cropped sum", "a fresh one")
        if isinstance(expected, tuple):
            return plan_levels(tau, bound, expected, request, self.memory)
        self._check_users()
        hashed = [times * (expected or 1) for times in _CELLS_PER_USER]
        return best_plan(
            lambda cells, chosen, split: CroppedPlan(
                tau, bound, universe, cells, expected, chosen, request, split
            ),
            request,
            tau,
            sharing * bound,
            cells=self.cells,
            memory=self.memory,
            wanted=[universe] if universe else hashed,
            fewest=2 * (expected or 1) if universe is None else 1,
        )

    def _check_range(self) -> None:
        """Refuse what levels have no use for."""
        if self.universe is not None:
            message = "a universe says how many users there are: leave out expected="
            raise PlanError(message)
        if self.cells is not None:
            message = "a range of expected users is planned by memory=, not by cells="
            raise PlanError(message)

    def _check_users(self) -> None:
        """Refuse sizes that do not say how many users there are, or contradict each other."""
        cells, expected = self.cells, self.expected
        if (self.universe is None) == (expected is None):
            message = (
                "say either universe= (how many users there could be) or, for open-ended ids, "
                "expected= (the most that may come)"
            )
            raise PlanError(message)
        check_cells(self.universe, cells)
        if isinstance(expected, int) and cells is not None and cells < 2 * expected:
            message = (
                f"cells ({cells:,}) must be at least twice the {expected:,} users expected, "
                "because those who share one hide each other"
            )
            raise PlanError(message)
