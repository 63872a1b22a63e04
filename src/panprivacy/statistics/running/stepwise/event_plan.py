"""The base of plans of running statistics: they hide one event, and pay all of epsilon at birth."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, NoReturn

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import integer
from panprivacy.statistics.running.stepwise.nodes import SteppedTable
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.counters.running import Sum
from panprivacy.tables.decoders.intervals import Measured
from panprivacy.tables.planning.request import Request, Split

MOST_STEPS = 1_000_000_000
MOST_BOUND = 1 << 20

Horizon = Annotated[
    int,
    integer("how many answers there are at most, one a step", MOST_STEPS, example=1_000_000),
]

EventBound = Annotated[int, integer("the most that one event adds", MOST_BOUND, example=1)]


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

    @property
    @abstractmethod
    def table(self) -> SteppedTable:  # type: ignore[override]
        """The layout of the stored table, whose noise depends on the step."""

    @property
    def smallest_delta(self) -> int:
        """The least that one event adds."""
        return 0

    def check_deltas(self, deltas: Deltas) -> None:
        """Raise `InputError` for a delta that is not hidden, or takes back what may not be."""
        least = self.smallest_delta
        refuse_deltas(
            (deltas < least) | (deltas > self.bound),
            f"delta must be {least:,} to {self.bound:,}, as the bound says: for more, plan with "
            "bound=",
        )

    @property
    def slicing(self) -> NoReturn:
        """Refuse: a running count has no slices, as each step adds its own output noise."""
        message = "a running count cannot be divided among shards: count it on one machine"
        raise PlanError(message)

    def reading(self, query: object, epoch: int) -> NoReturn:  # noqa: ARG002
        """Refuse: the output depends on the step, so there is no sum to merge with others."""
        message = "a running count is released as a whole: call release()"
        raise PlanError(message)


class SumsPlan(EventPlan):
    """The description of plans whose one answer follows from the sums of the table."""

    __slots__ = ()

    @abstractmethod
    def estimate(
        self, sums: Sequence[Sum], epoch: int, confidence: float
    ) -> tuple[float, float, float, Measured]:
        """Return the answer, both ends of its interval, and the estimate before it is cut.

        Args:
            sums: of the table, as they have left.
            epoch: how many intrusions were announced.
            confidence: how often the interval is to cover the truth.
        """


def at_birth(request: Request) -> Split:
    """All of epsilon for the state; the noise of releases is not known yet.

    Raises:
        PlanError: epsilon comes with a budget.
    """
    if request.budget is not None:
        message = "a running count pays for all at birth: leave out budget="
        raise PlanError(message)
    return Split(AtBirth(request.epsilon), 1.0, 0.0)
