"""How many events so far, at the end of every step?

A tree of sums, each born with noise and leaving once, with noise of that moment; an answer adds up
those that have left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Whole
from panprivacy.statistics.running.cases import TRIALS, WALKS
from panprivacy.statistics.running.plan import RunningPlan
from panprivacy.statistics.running.sizes import RunningSizes
from panprivacy.statistics.running.stepwise import Stepwise, StepwiseMemory
from panprivacy.tables.ids import Labels, WholeNumbers, as_column, read_deltas

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
        users: Labels,
        deltas: WholeNumbers | None = None,
        sides: Labels | str | None = None,  # noqa: ARG002 - events of both streams count
    ) -> CheckedEvents:
        """Check one batch of events without counting it.

        Args:
            users: one of anything for each event.
            deltas: what each event adds, 0 .. bound; None for 1 each.
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


class RunningCount(Stepwise[RunningPlan]):
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
    at most `e**epsilon` when one event is added, removed or has another delta of 0 .. bound. Each
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

    entry = CatalogueEntry(RunningSizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self, *, horizon: Whole | None = None, bound: Whole = 1, **arguments: Unpack[Arguments]
        ) -> None: ...

    _memory = EventMemory
