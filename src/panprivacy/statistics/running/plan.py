"""The plan of a `RunningCount`: which tree of steps, and that all of epsilon is paid at birth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.plan import Plan, UserStates
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.running.nodes import Nodes
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.counters.endless import Endless
from panprivacy.tables.counters.running import Sum
from panprivacy.tables.counters.shapes import largest_deviation
from panprivacy.tables.counters.tree import Tree
from panprivacy.tables.decoders.intervals import Measured, noise_quantile
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.slices import Slice

TOLD_STEPS = 1_000_000
"""Of a count without a horizon."""


@dataclass(frozen=True, slots=True, init=False)
class AtBirth(Budget):
    """All of epsilon is paid at birth; releases and announced intrusions cost nothing more.

    Args:
        epsilon: for one event.
    """

    def __init__(self, epsilon: Fraction) -> None:
        object.__setattr__(self, "state", epsilon)
        object.__setattr__(self, "release", Fraction(0))

    def of_state(self, intrusions: int) -> Fraction:  # noqa: ARG002
        """Return the privacy loss of the state, whatever the number of announced intrusions."""
        return self.state

    def unseen(self, *, releases: int, intrusions: int) -> Fraction:  # noqa: ARG002
        """Return the privacy loss of releases whose state is never seen: equal to that with it."""
        return self.state


class EventPlan(Plan):
    """The description of plans of running counts, which hide one event."""

    __slots__ = ()

    bound: int
    """The most that one event adds; what has none checks deltas in its own way."""

    hides = "event"
    conditions = ("what is hidden is one event, not all events of a user",)
    range_of_states = None

    def check_deltas(self, deltas: Deltas) -> None:
        """Raise `InputError` for a delta that is not hidden, or takes something back."""
        refuse_deltas(
            (deltas < 0) | (deltas > self.bound),
            f"delta must be 0 to {self.bound:,}, as the bound says: for more, plan with bound=",
        )

    def sliced(self, slice_: Slice) -> NoReturn:  # noqa: ARG002
        """Refuse: a running count has no slices, as each step adds its own output noise."""
        message = "a running count cannot be divided among shards: count it on one machine"
        raise PlanError(message)

    def reading(self, query: object, epoch: int) -> NoReturn:  # noqa: ARG002
        """Refuse: the output depends on the step, so there is no sum to merge with others."""
        message = "a running count is released as a whole: call release()"
        raise PlanError(message)


def at_birth(request: Request) -> Split:
    """All of epsilon for the state; the noise of releases is not known yet.

    Raises:
        PlanError: epsilon comes with a budget.
    """
    if request.budget is not None:
        message = "a running count pays for all at birth: leave out budget="
        raise PlanError(message)
    return Split(AtBirth(request.epsilon), 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class RunningPlan(EventPlan):
    """The parameters of a `RunningCount`.

    Args:
        horizon: how many steps there are at most, each with an answer; None if nobody knows.
        bound: the most that one event adds.
        request: epsilon and what it covers; its releases are the horizon.
        split: all of epsilon is the state's.
        tree: the tree of steps; the state may be seen within a step.
    """

    horizon: int | None
    bound: int
    request: Request
    split: Split
    tree: Tree | Endless

    proofs = ("running",)
    checks = ("unit/test_running", "statistical/test_running")
    reads_ids = False
    measure = "a count of one event a step"
    unit = "events"
    limits = (math.inf, math.inf)  # how many events come in a step is not known
    key_bytes = 0

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        steps = "step" if self.horizon is None else f"of up to {self.horizon:,} steps"
        return f"how many events so far, at the end of each {steps}?"

    @property
    def table(self) -> Any:  # a table of sums, into which no user is mapped
        """The layout of the stored table."""
        return Nodes(self.tree)

    @property
    def crash(self) -> Fraction:
        """Once for the noise that both branches share, and once for an event that is sent again."""
        return 2 * self.request.epsilon

    @property
    def crash_again(self) -> Fraction:
        """Once for an event that is sent again: shared noise leaves on one branch only."""
        return self.request.epsilon

    def address(self, key: bytes) -> Any:  # noqa: ARG002
        """Nobody has a cell."""
        return None

    def estimate(
        self,
        sums: Sequence[Sum],
        epoch: int,  # noqa: ARG002 - what noise was added is known of each sum
        confidence: float,
    ) -> tuple[float, float, float, Measured]:
        """The answer, both ends of its interval, and the estimate before it is cut."""
        (last,) = sums
        return last.value, *last.interval(confidence), last.measured

    def names(self, query: object) -> tuple[Name, ...]:  # noqa: ARG002
        """The one answer."""
        return (Name("", "running_count"),)

    @property
    def largest(self) -> float:
        """One event a step; of as many steps as errors are told for."""
        return float(self.horizon or TOLD_STEPS)

    def absolute_error(self) -> float:
        """The largest standard deviation of all steps, in events, without intrusions.

        Where nobody knows how many there are, it is that of the first million.
        """
        if isinstance(self.tree, Endless):
            return self.tree.largest_deviation(TOLD_STEPS)
        return largest_deviation(self.tree)

    @property
    def remarks(self) -> tuple[str, ...]:
        """For how many steps errors are told."""
        if self.horizon is not None:
            return ()
        return (f"errors are those of the first {TOLD_STEPS:,} steps: say horizon= if it is known",)

    def absolute_margin(self, confidence: float, truth: float | None = None) -> float:  # noqa: ARG002
        """Return the bound on the error of an answer at this probability, at the worst step."""
        return noise_quantile(confidence, 1.0) * self.absolute_error()

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The sum of all deltas."""
        return float(states.sum())

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:  # noqa: ARG002
        """Nobody: it tells of no user."""
        return np.zeros(0, np.int64)
