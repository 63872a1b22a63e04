"""What a plan says of a statistic: everything that programs ask, they ask here.

A plan is what becomes of sizes and a request: which cells there are, who maps to which, how
epsilon is spent, how a release is read, and what all of it is called. It is public, and frozen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

from panprivacy.privacy.guarantee import (
    Guarantee,
    format_rounded_up,
    unseen_count,
)
from panprivacy.statistics.aggregation import Aggregation
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.notes import format_number, percent
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.release import Name
from panprivacy.statistics.slicing import Slicing, with_fields
from panprivacy.tables.addressing import Addressing, Hashed
from panprivacy.tables.cells.protocol import Cells, Deltas
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.planning.universe import address_in, key_bytes_in

P = TypeVar("P", bound="Plan")


class Plan(ABC):
    """The public parameters of a statistic, and what it says about itself.

    A subclass is a frozen dataclass whose fields have the names of the sizes that it settles.
    """

    __slots__ = ()

    request: Request
    split: Split
    proofs: ClassVar[tuple[str, ...]]
    """The pages of docs/guarantees that prove its guarantee, beside those of all statistics."""

    checks: ClassVar[tuple[str, ...]]
    """The tests that check it, beside the contract."""

    limits: ClassVar[tuple[float, float]] = (0.25, 0.2)
    """The `relative_error` from which on answers are noise, and the one that would do."""

    hides: ClassVar[str] = "user"
    """What its guarantee hides: one "user" with all they do, or one "event"."""
    reads_ids: ClassVar[bool] = True
    """Whether it matters whose an event is."""

    reads_values: ClassVar[bool] = False
    """Whether the column of users holds the value of each event in their place."""

    conditions: ClassVar[tuple[str, ...]] = ()
    """What its guarantee rests on beside that, each as half a sentence."""

    needs_deltas: ClassVar[bool] = False
    """Whether it makes no sense where every event counts 1."""

    @property
    @abstractmethod
    def table(self) -> Cells:
        """The table's cells."""

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key; a table with a cell for each possible user needs none."""
        return key_bytes_in(self.numbered, self.table.cells)

    def address(self, key: bytes) -> Addressing:
        """Return the addressing of a user's cell: an own one, that of a sample, or a hashed one."""
        if self.numbered is None:
            return Hashed(self.table.cells, key)
        return address_in(self.numbered, self.table.cells, key)

    def at(self, release: Fraction) -> Self:
        """The plan of the same cells with another epsilon of each release."""
        return with_release(self, release)

    @property
    @abstractmethod
    def slicing(self) -> Slicing:
        """The slices of its table among shards.

        Raises:
            PlanError: it has none.
        """

    def check_deltas(self, deltas: Deltas) -> None:
        """Raise `InputError` for a delta beyond the bound: no two states should be so far apart."""
        bound: int | None = getattr(self, "bound", None)
        if bound is not None:
            refuse_beyond(deltas, bound, signed=getattr(self, "signed", False))

    @property
    def range_of_states(self) -> tuple[int, int] | None:
        """The lowest and the highest state that is told right; None where there are no states."""
        bound: int | None = getattr(self, "bound", None)
        if bound is None:
            return None
        return (-bound if getattr(self, "signed", False) else 0), bound

    @abstractmethod
    def reading(self, query: Any, epoch: int) -> Reading:
        """Return the reading of a release after `epoch` announced intrusions.

        Raises:
            PlanError: the query cannot be answered.
        """

    @property
    def aggregation(self) -> Aggregation:
        """The contributions of several tables, as one; it refuses unless a plan has its own."""
        return Aggregation(self)

    @property
    def counted(self) -> tuple[Fraction, Fraction] | None:
        """The smallest and largest probability that a cell is included in the released count.

        Over all states of its users, before an announced intrusion; None where nobody has looked
        into that, or a release is something else.
        """
        return None

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee to each user of the stream, or for each event."""
        return guarantee_of(self)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks beside its predicted errors, as sentences."""
        return ()

    @property
    @abstractmethod
    def question(self) -> str:
        """The question that it answers, in words."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """The unit of answers, such as "users"."""

    @property
    @abstractmethod
    def measure(self) -> str:
        """The quantity that relative errors refer to, in words."""

    @abstractmethod
    def names(self, query: Any) -> tuple[Name, ...]:
        """Return the names of the answers to a query."""

    def answered(self, query: Any) -> tuple[Name, ...]:
        """The name of each answer of a release that is not lost, in order."""
        return self.names(query)

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest answer that is planned for, in the unit of answers."""

    @property
    def error_points(self) -> tuple[float, ...]:
        """The low, middle and high end of a range of answers, where errors are told; else none."""
        return ()

    @abstractmethod
    def absolute_error(self) -> float:
        """The predicted standard deviation, in the unit of answers, where it is largest."""

    @abstractmethod
    def absolute_margin(self, confidence: float, truth: float | None = None) -> float:
        """Return the bound on the error of an answer at this probability, in the unit of answers.

        Args:
            confidence: how often it strays by no more.
            truth: the answer; None for where it strays farthest.
        """

    def relative_error(self, truth: float | None = None) -> float:  # noqa: ARG002
        """The standard deviation as a share of `measure`.

        Args:
            truth: the answer; None for where it is largest.
        """
        return self.absolute_error() / self.largest

    def relative_margin(self, confidence: float, truth: float | None = None) -> float:  # noqa: ARG002
        """The margin as a share of `measure`.

        Args:
            confidence: how often an answer strays by no more.
            truth: the answer; None for where it is largest.
        """
        return self.absolute_margin(confidence) / self.largest

    def __str__(self) -> str:
        """Return its privacy loss and the errors of its answers, for people."""
        errors = " / ".join(map(percent, margins(self, 0.95)))
        kept = f"; 95 % of answers are within {errors} of {self.measure}"
        where = ", at " + " / ".join(format_number(one, self.unit) for one in self.error_points)
        releases = self.request.releases
        return (
            f"{self.question}: {self.table.nbytes:,} bytes at epsilon "
            f"{format_rounded_up(self.request.epsilon)} for {releases:,} "
            f"release{'s' * (releases > 1)}{kept}{where * bool(self.error_points)}"
        )

    @property
    def numbered(self) -> int | None:
        """The number of possible users, whose ids are their numbers; None for any ids."""
        return getattr(self, "universe", None)


def guarantee_of(
    planned: Plan,
    *,
    unseen: Fraction | None = None,
    crash: Fraction = Fraction(0),
    crash_again: Fraction | None = None,
) -> Guarantee:
    """Return the guarantee of a plan.

    Args:
        planned: the plan.
        unseen: the loss if nobody ever sees the state; None for that of its releases.
        crash: the loss that each crash adds at most, to what the crash loses. A table of users has
            paid for both branches of its life. [docs/guarantees/crashes.md]
        crash_again: the same of each crash but the first, if no intrusion is announced; None for
            `crash`.
    """
    asked = planned.request
    return Guarantee(
        asked.epsilon,
        asked.intrusions,
        adjacency=planned.hides,
        conditions=planned.conditions,
        unseen=loss_unseen(planned) if unseen is None else unseen,
        crash=crash,
        crash_again=crash_again,
    )


def loss_unseen(planned: Plan) -> Fraction:
    """Return the loss if nobody ever sees the state."""
    asked, budget = planned.request, planned.split.budget
    loss = budget.unseen(releases=asked.releases, intrusions=asked.intrusions)
    if planned.counted is None or asked.releases > 1 or asked.intrusions:
        return loss
    sets = planned.counted, *getattr(planned, "also_counted", ())
    return min(loss, max(unseen_count(*one, budget.release) for one in sets))


def with_release(planned: P, release: Fraction, moved: float = 1) -> P:
    """Return the plan of the same cells with another epsilon of each release.

    Args:
        planned: the plan.
        release: its epsilon.
        moved: how far a user moves its sums.
    """
    return with_fields(planned, split=planned.split.at(release, moved))


def smallest_error(planned: Plan) -> float:
    """Return the relative error of a plan; of one for a range, that of its best end or middle."""
    return min(planned.relative_error(truth) for truth in planned.error_points or (None,))


def margins(planned: Plan, confidence: float) -> list[float]:
    """Return the relative margins at the answers where errors are shown, or that of all answers.

    Args:
        planned: the plan.
        confidence: how often an answer strays by no more.
    """
    return [planned.relative_margin(confidence, truth) for truth in planned.error_points or (None,)]


def users_beyond(planned: Plan, states: UserStates) -> int:
    """Return the number of users in a state that the plan rules out."""
    if planned.range_of_states is None:
        return 0
    low, high = planned.range_of_states
    return int(((states > high) | (states < low)).sum())
