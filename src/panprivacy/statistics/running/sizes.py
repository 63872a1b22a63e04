"""What a `RunningCount` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.running.plan import RunningPlan, at_birth
from panprivacy.tables.counters.endless import Endless
from panprivacy.tables.counters.shapes import mixed_radix
from panprivacy.tables.planning.request import Request

_MOST_STEPS = 1_000_000_000
_MOST_BOUND = 1 << 20

Horizon = Annotated[
    int,
    integer("how many answers there are at most, one a step", _MOST_STEPS, example=1_000_000),
]


class RunningSizes(Sizes, frozen=True, tag="running-count"):
    """The number of events so far, at the end of every step; hides one event, not one user."""

    horizon: Annotated[
        int | None,
        integer("how many answers there are at most, one a step; 20 to 30 % more error unless told",
              _MOST_STEPS, example=1_000_000),
    ] = None  # fmt: skip
    bound: Annotated[int, integer("the most that one event adds", _MOST_BOUND, example=1)] = 1

    @property
    def steps(self) -> int:
        """The horizon, or more steps than ever come."""
        return self.horizon or _MOST_STEPS

    def plan(self, request: Request) -> RunningPlan:
        """The tree that errs least over all steps; without a horizon one after another."""
        split = at_birth(request)
        tree = (
            Endless(request.epsilon, self.bound, open_steps=True)
            if self.horizon is None
            else mixed_radix(self.horizon, request.epsilon, self.bound, open_steps=True)
        )
        return RunningPlan(self.horizon, self.bound, request, split, tree)
