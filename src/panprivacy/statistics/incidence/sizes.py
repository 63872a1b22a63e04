"""What an `Incidence` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy._parse import Users
from panprivacy._validate import MOST_BYTES, expected_range
from panprivacy.cells.law import Law
from panprivacy.errors import PlanError
from panprivacy.planning.request import Request
from panprivacy.statistics.common_sizes import Memory, PerhapsUniverse
from panprivacy.statistics.incidence.plan import MOST_BOUND, IncidencePlan, plan_incidence
from panprivacy.statistics.records import Sizes, flag, given_as, users, whole

_MOST_OWN_WEIGHTS = 3_000
"""So many can stand in the front of a state, which says all that is public about it."""


def _law(name: str, given: object) -> Law:
    """A law, or the recipe of one."""
    law = given
    if isinstance(given, str):
        try:
            law = Law.from_recipe(given)
        except PlanError as error:
            message = f"{name}=: {error}; str() of a law writes one, such as flat 7 1/2"
            raise PlanError(message) from None
    if not isinstance(law, Law):
        message = f"{name} must be a Law"
        raise PlanError(message)
    if not law.made_of and law.modulus > _MOST_OWN_WEIGHTS:
        message = f"{name} may have at most {_MOST_OWN_WEIGHTS:,} weights of one's own"
        raise PlanError(message)
    return law


class IncidenceSizes(Sizes, frozen=True, tag="incidence"):
    """How many users are in each state: how many came exactly t times, or at least k times."""

    bound: Annotated[
        int,
        whole("the largest sum of a user's deltas; others spoil answers", MOST_BOUND, example=30),
    ]
    universe: PerhapsUniverse = None
    expected: Annotated[
        Users | None, users("for open-ended ids: the most users that may come", 100_000)
    ] = None
    cells: Annotated[
        int | None,
        whole("counters: one for each user, fewer for a sample; hashed ones two for each expected "
              "user unless told", MOST_BYTES, example=200_000),
    ] = None  # fmt: skip
    memory: Memory = None
    signed: Annotated[bool, flag("whether sums of deltas may be below 0, down to -bound")] = False
    law: Annotated[
        Law | None, given_as(_law, "LAW", "the noise of the counters; the best one unless told")
    ] = None

    def plan(self, request: Request) -> IncidencePlan:
        """A counter for each user, of a universe or a sample of it, or hashed ones."""
        sizes = self.bound, self.universe, self.cells, self._most_users(), self.law
        return plan_incidence(*sizes, request, self.memory, signed=self.signed)

    def _most_users(self) -> int | None:
        """The most users that may come, for open-ended ids."""
        if self.expected is None:
            return None
        if self.universe is not None:
            message = "expected= is for open-ended ids: a universe says how many users there are"
            raise PlanError(message)
        return expected_range(self.expected)[1]
