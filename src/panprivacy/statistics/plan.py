"""What a plan says of a statistic: everything that programs ask, they ask here.

A plan is what becomes of sizes and a request: which cells there are, who maps to which, how
epsilon is spent, how a release is read, and what all of it is called. It is public, and frozen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import (
    DAY_SECONDS,
    Guarantee,
    PrivacyLoss,
    format_rounded_up,
    unseen_count,
)
from panprivacy.statistics.contribution import Form
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.notes import format_number, percent
from panprivacy.statistics.release import Answer, Name, Release
from panprivacy.tables.addressing import Addressing, Dealt, Hashed
from panprivacy.tables.cells.protocol import Cells, Deltas, Table
from panprivacy.tables.planning.learning import StateRange
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.planning.universe import address_in, key_bytes_in
from panprivacy.tables.slices import Slice

UserStates = NDArray[np.int64]
"""The sums of the deltas of users."""

MOST_MADE_UP = 10_000_000
"""Users of a throw-away state."""


class Reading(Protocol):
    """The reading of one release, from the table to the answer."""

    @property
    def scales(self) -> Sequence[Fraction]:
        """The scale of the discrete Laplace noise on each sum, or one scale for all."""

    @property
    def size(self) -> int:
        """The number of sums of one table."""

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """Return the sums of the table to which noise is added."""

    def answer(self, counts: NDArray[np.int64], confidence: float) -> Answer:
        """Return the answer of noised sums: a function of them and of the plan alone."""


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

    bounded: ClassVar[bool] = True
    """Whether a release costs no more than its epsilon whatever two values a user's cell has."""

    limits: ClassVar[tuple[float, float]] = (0.25, 0.2)
    """The `relative_error` from which on answers are noise, and the one that would do."""

    hides: ClassVar[str] = "user"
    """What its guarantee hides: one "user" with all they do, or one "event"."""
    reads_ids: ClassVar[bool] = True
    """Whether it matters whose an event is."""

    conditions: ClassVar[tuple[str, ...]] = ()
    """What its guarantee rests on beside that, each as half a sentence."""

    needs_deltas: ClassVar[bool] = False
    """Whether it makes no sense where every event counts 1."""

    @property
    def sides(self) -> tuple[str, str] | None:
        """The labels of the two streams in a column; None if there is one stream."""
        return None

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

    @property
    def runs(self) -> int:
        """The number of equal runs of cells: levels, or tables."""
        return 1

    def at(self, release: Fraction) -> Self:
        """The plan of the same cells with another epsilon of each release."""
        return self._at(release, 1)

    def _at(self, release: Fraction, moved: float) -> Self:
        plan: Any = self
        return replace(plan, split=self.split.at(release, moved))

    @property
    def readable(self) -> bool:
        """Whether a release can be read of as many users as are planned for."""
        return True

    def sliced(self, slice_: Slice) -> Self:
        """The plan of as many cells as a slice has, of each run.

        Raises:
            PlanError: its cells cannot be dealt to so many shards.
        """
        plan: Any = self
        return self._with_cells(slice_, cells=self.runs * cells_of(slice_, plan.cells // self.runs))

    def _with_cells(self, slice_: Slice, **cells: int) -> Self:
        """The same with other cells; of a universe, for the users of that slice alone."""
        plan: Any = self
        users = {} if self.numbered is None else {"universe": slice_.share(self.numbered)}
        return replace(plan, **cells, **users)

    def cells_in(self, slice_: Slice | None) -> Cells:
        """The cells of a slice, which are those of the table but fewer; None for all of them."""
        if slice_ is None:
            return self.table
        own: Any = self.sliced(slice_)
        table: Any = self.table
        return replace(table, cells=own.cells)

    def address_in(self, slice_: Slice | None, key: bytes) -> Addressing:
        """Return the addressing of the cells of a slice; None for the complete table."""
        if slice_ is None:
            return self.address(key)
        within = self.sliced(slice_).address(key)
        return within if self.numbered is None else Dealt(self.numbered, slice_.shards, within)

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

    def shows_range(self, query: Any) -> bool:  # noqa: ARG002
        """Whether answers to this say how far states reach."""
        return False

    def reached(self, answers: Mapping[Name, Release | None], epoch: int) -> StateRange | None:  # noqa: ARG002
        """Return the largest distance of states from 0, by the answers; None if unknown."""
        return None

    @abstractmethod
    def reading(self, query: Any, epoch: int) -> Reading:
        """Return the reading of a release after `epoch` announced intrusions.

        Raises:
            PlanError: the query cannot be answered.
        """

    def joint_reading(self, query: Any, epoch: int, tables: int) -> Reading:  # noqa: ARG002
        """Return the reading of sums of several tables of disjoint users, each with its own key.

        Raises:
            PlanError: no answer about all of them follows.
        """
        message = "it cannot be merged: let each shard release, and add up their answers"
        raise PlanError(message)

    reads_separately: ClassVar[bool] = False
    """Whether the sums of several tables leave side by side, and are not added up."""

    def summed(self, query: Any, epoch: int, tables: int) -> Reading:  # noqa: ARG002
        """Return the reading of the cell-wise sum of tables of one key.

        Raises:
            PlanError: nothing follows from their sum.
        """
        message = "its cells cannot be added up: merge sums, of shards of different users"
        raise PlanError(message)

    def merged(self, form: Form, query: Any, epoch: int, tables: int) -> Reading:
        """Return the reading of contributions of a form.

        Raises:
            PlanError: no answer follows from them.
        """
        join = self.joint_reading if form == "sums" else self.summed
        return join(query, epoch, tables)

    publishes_cells: ClassVar[bool] = False
    """Whether the sums of a release are its cells, each by itself."""

    def reading_of_slices(self, query: Any, epoch: int, slices: int) -> Reading:  # noqa: ARG002
        """Return the reading of the sums of all slices of one table: as those of the table.

        Raises:
            PlanError: the query cannot be answered.
        """
        return self.reading(query, epoch)

    def additional_loss(self, form: Form) -> Fraction:
        """Return the bound on a user's loss in each additional shard, for contributions of a form.

        Their cells are one cell once they are added up, so that where a release costs the same for
        any two values of a cell, that of the merged answer costs no more then. The other releases
        that the shard may make leave by themselves.
        """
        asked, budget = self.request, self.split.budget
        if form == "sums" or not self.bounded:
            return asked.epsilon
        return budget.of_state(asked.intrusions) + budget.of_releases(asked.releases - 1)

    def merged_error(self, form: Form, epoch: int, tables: int) -> float:
        """Return the ratio of the error of their answer to that of one table of all users.

        Raises:
            PlanError: no answer follows from them.
        """
        self.merged(form, None, epoch, tables)
        raise NotImplementedError

    @property
    def counted(self) -> tuple[Fraction, Fraction] | None:
        """The smallest and largest probability that a cell is included in the released count.

        Over all states of its users, before an announced intrusion; None where nobody has looked
        into that, or a release is something else.
        """
        return None

    @property
    def growth(self) -> float | None:
        """The factor by which each announced intrusion multiplies the error of modular counters.

        None for other cells: there the predicted errors say all.
        """
        return None

    @property
    def caution(self) -> str | None:
        """The caution before an intrusion into modular counters is announced; else None."""
        if self.growth is None:
            return None
        return (
            "each announced intrusion adds noise to every counter, and makes the error about "
            f"{self.growth:.2g} times larger: a fresh table errs less, such as a new window"
        )

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee to each user of the stream, or for each event."""
        asked = self.request
        return Guarantee(
            asked.epsilon,
            asked.intrusions,
            adjacency=self.hides,
            conditions=self.conditions,
            unseen=self.unseen,
            crash=self.crash,
            crash_again=self.crash_again,
        )

    @property
    def year(self) -> PrivacyLoss:
        """The loss over a year of daily windows, one of them seen; of an event it is that of one.

        `guarantee.year` has it for windows of other lengths.
        """
        return self.guarantee.year(DAY_SECONDS)[1]

    @property
    def crash(self) -> Fraction:
        """The loss that each crash adds at most, to what the crash loses.

        A table of users has paid for both branches of its life. [docs/guarantees/crashes.md]
        """
        return Fraction(0)

    @property
    def crash_again(self) -> Fraction | None:
        """The same of each crash but the first, if no intrusion is announced; None for `crash`."""
        return None

    @property
    def unseen(self) -> Fraction:
        """The loss if nobody ever sees the state."""
        asked, budget = self.request, self.split.budget
        loss = budget.unseen(releases=asked.releases, intrusions=asked.intrusions)
        if self.counted is None or asked.releases > 1 or asked.intrusions:
            return loss
        return min(loss, unseen_count(*self.counted, budget.release))

    @property
    def searched_law(self) -> str:
        """The parameters of a law that was found by a search; empty for a law from formulas.

        It stands in the front of a state, so another machine whose search ends elsewhere refuses
        the state, and does not misread it.
        """
        return ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks beside its predicted errors, as sentences."""
        return ()

    @property
    def caveat(self) -> str | None:
        """The caveat of each of its answers; None if there is none."""
        return None

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

    def single(self, query: Any) -> bool:
        """Whether a release that is asked this has one answer."""
        return len(self.names(query)) == 1

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

    @abstractmethod
    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:
        """The exact answer, from exact states.

        Args:
            name: of the answer.
            states: of the users that came; where there are two streams, in each of them.
            last: delta of each of them.
        """

    def beyond(self, states: UserStates) -> int:
        """Return the number of users in a state that the plan rules out."""
        if self.range_of_states is None:
            return 0
        low, high = self.range_of_states
        return int(((states > high) | (states < low)).sum())

    def facts(self, states: UserStates) -> list[str]:  # noqa: ARG002
        """Return the additional facts beside the truth of a demonstration."""
        return []

    @abstractmethod
    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:
        """The states of made-up users, as many as released answers say, for a picture."""

    @property
    def numbered(self) -> int | None:
        """The number of possible users, whose ids are their numbers; None for any ids."""
        return getattr(self, "universe", None)

    def picture_values(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of cells in a picture."""
        return cells

    def drawn_groups(self) -> int:
        """Return the number of runs of cells in a picture."""
        return 1


def least_error(planned: Plan) -> float:
    """Return the relative error of a plan; of one for a range, that of its best end or middle."""
    return min(planned.relative_error(truth) for truth in planned.error_points or (None,))


def margins(planned: Plan, confidence: float) -> list[float]:
    """Return the relative margins at the answers where errors are shown, or that of all answers.

    Args:
        planned: the plan.
        confidence: how often an answer strays by no more.
    """
    return [planned.relative_margin(confidence, truth) for truth in planned.error_points or (None,)]


def cells_of(slice_: Slice, cells: int) -> int:
    """Return the number of cells in a slice, out of `cells`.

    Raises:
        PlanError: some slice would have none.
    """
    if cells < slice_.shards:
        message = (
            f"{slice_.shards:,} shards are too many for {cells:,} cells, or as many of each level: "
            "take fewer shards, or plan for more users or memory"
        )
        raise PlanError(message)
    return slice_.share(cells)
