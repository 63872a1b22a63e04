"""How many events so far, at the end of every step?

A tree of sums, each born with noise and leaving once, with noise of that moment; an answer adds up
those that have left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Unpack

from panprivacy.privacy.guarantee import Guarantee
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.plan import guarantee_of
from panprivacy.statistics.records import Sizes, Whole, flag, integer
from panprivacy.statistics.release import Name
from panprivacy.statistics.running.cases import COUNT_TRIALS, COUNT_WALKS
from panprivacy.statistics.running.stepwise.event_plan import (
    MOST_STEPS,
    EventBound,
    SumsPlan,
    at_birth,
)
from panprivacy.statistics.running.stepwise.nodes import Nodes
from panprivacy.statistics.running.stepwise.statistic import StepwiseMemory, StepwiseSums
from panprivacy.tables.counters.endless import Endless
from panprivacy.tables.counters.running import Sum
from panprivacy.tables.counters.shapes import largest_deviation, mixed_radix
from panprivacy.tables.counters.tree import Tree
from panprivacy.tables.decoders.intervals import Measured, noise_quantile
from panprivacy.tables.ids import Labels, SharedColumn, WholeNumbers, as_column, read_deltas
from panprivacy.tables.planning.request import Request, Split

TOLD_STEPS = 1_000_000
"""Of a count without a horizon."""


@dataclass(frozen=True, slots=True)
class RunningPlan(SumsPlan):
    """The parameters of a `RunningCount`.

    Args:
        horizon: how many steps there are at most, each with an answer; None if nobody knows.
        bound: the most that one event adds.
        signed: whether it may take back as much.
        request: epsilon and what it covers; its releases are the horizon.
        split: all of epsilon is the state's.
        tree: the tree of steps; the state may be seen within a step.
    """

    horizon: int | None
    bound: int
    signed: bool
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
    def table(self) -> Nodes:  # type: ignore[override]
        """The layout of the stored table."""
        return Nodes(self.tree)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee for each event.

        A crash costs once for the noise that both branches share, and once for an event that is
        sent again; a further crash costs only the latter, as shared noise leaves on one branch.
        """
        epsilon = self.request.epsilon
        return guarantee_of(self, crash=2 * epsilon, crash_again=epsilon)

    @property
    def smallest_delta(self) -> int:
        """The least that one event adds: minus the bound, if signed."""
        return -self.bound if self.signed else 0

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
        return last.value, *last.interval(confidence, signed=self.signed), last.measured

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


class RunningSizes(Sizes, frozen=True, tag="running-count"):
    """The number of events so far, at the end of every step; hides one event, not one user."""

    horizon: Annotated[
        int | None,
        integer("how many answers there are at most, one a step; 20 to 30 % more error unless told",
              MOST_STEPS, example=1_000_000),
    ] = None  # fmt: skip
    bound: EventBound = 1
    signed: Annotated[bool, flag("whether an event may take back as much as one adds")] = False

    @property
    def steps(self) -> int:
        """The horizon, or more steps than ever come."""
        return self.horizon or MOST_STEPS

    def plan(self, request: Request) -> RunningPlan:
        """The tree that errs least over all steps; without a horizon one after another."""
        split = at_birth(request)
        tree = (
            Endless(request.epsilon, self.bound, open_steps=True)
            if self.horizon is None
            else mixed_radix(self.horizon, request.epsilon, self.bound, open_steps=True)
        )
        return RunningPlan(self.horizon, self.bound, self.signed, request, split, tree)


_WANTED = "events must be a one-dimensional array or sequence, of anything"


class CheckedEvents(NamedTuple):
    """Events that were checked.

    Args:
        plan: of the statistic that has checked them.
        amount: what they add.
    """

    plan: RunningPlan
    amount: int


class EventMemory(StepwiseMemory[RunningPlan]):
    """The memory of a running count of events: one sum, of whatever came."""

    __slots__ = ()

    def prepare(  # type: ignore[override]
        self,
        users: Labels | SharedColumn,
        deltas: WholeNumbers | SharedColumn | None = None,
        sides: Labels | SharedColumn | str | None = None,  # noqa: ARG002 - both streams count
    ) -> CheckedEvents:
        """Check one batch of events without counting it.

        Args:
            users: one of anything for each event.
            deltas: what each event adds, 0 .. bound, or -bound .. bound if signed; None for 1 each.
            sides: not used.

        Raises:
            InputError: a delta out of range. The message names the row.
            BudgetError: all steps have ended.
        """
        rows = len(as_column(users, _WANTED))
        self.check_steps()
        if deltas is None:
            return CheckedEvents(self.plan, rows)
        read = read_deltas(deltas, rows)
        self.plan.check_deltas(read)
        return CheckedEvents(self.plan, int(read.sum()))

    def apply(self, *batches: CheckedEvents) -> None:  # type: ignore[override]
        """Count what this statistic has checked, or one of the same plan, in the open step."""
        self.check_plans(one.plan for one in batches)
        self.check_steps()
        (sum_of_events,) = self.sums
        sum_of_events.add(sum(one.amount for one in batches))


class RunningCount(StepwiseSums[RunningPlan]):
    """The number of events so far, released at the end of every step, from memory that may be seen.

    >>> import panprivacy as pp
    >>> visits = pp.RunningCount(horizon=24, epsilon=1)
    >>> for hour in range(3):
    ...     visits.update(["ada", "grace", "ada"] * 100)
    ...     answer = visits.release()
    >>> 700 < answer.value < 1_100
    True

    What is hidden is one event, not one user: who comes every day is in many events. So nobody
    looks at ids; there is a row for each event, of anything. A step is the time between two
    releases; there are `horizon` of them, whatever `releases` says. Without a horizon there are as
    many as come, and answers err by 20 to 30 % more.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when one event is added or removed, or has a delta that differs by at most
    the bound. Each
    intrusion that is announced is covered as well, for nothing.
    [tests/contract, docs/guarantees/continual.md]

    Accuracy: unbiased. The standard deviation is at most about `plan.absolute_error()`: for
    epsilon 1, 4 events with 4 steps, 25 with 1,000 and 65 with a million, times the bound.
    [tests/unit/test_running.py, tests/statistical/test_running.py]

    All of epsilon is spent at birth, and releases cost nothing. A step whose release has left is
    never made again after a crash: what was counted since the state was taken is lost. Each crash
    after which an earlier state goes on adds up to `guarantee.crash`, which is `2 epsilon`, for an
    event that it loses, and each further one epsilon. [docs/guarantees/crashes.md]
    """

    __slots__ = ()

    entry = CatalogueEntry(RunningSizes, trials=COUNT_TRIALS, walks=COUNT_WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            horizon: Whole | None = None,
            bound: Whole = 1,
            signed: bool = False,
            **arguments: Unpack[Arguments],
        ) -> None: ...

    _memory = EventMemory
