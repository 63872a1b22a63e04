"""The parts of a program for each of some declared groups."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.privacy.guarantee import Account, Guarantee, Ledger
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.composites.members import (
    JoinedContributions,
    JoinedInternals,
    JoinedMemory,
    JoinedReleasing,
    JoinedWindows,
    Members,
)
from panprivacy.statistics.contribution import ContributionPart
from panprivacy.statistics.private import Private
from panprivacy.statistics.release import Answer, Answers, Label, Name, Release
from panprivacy.tables.ids import (
    Labels,
    WholeNumbers,
    as_column,
    decoded,
    first_null,
    gatherable,
    rows_by_code,
)
from panprivacy.tables.planning.learning import LearnedRange, StateRange

S = TypeVar("S", bound=Private)

_WANTED = " must be in a one-dimensional array or sequence"
_WANTED_GROUPS = "groups must be all texts, or all whole numbers, as they were declared"


class GroupMembers(Members[Label, S]):
    """The program of each group; all are planned alike.

    Args:
        programs: by label.
        labels: what a column of labels is compared with.
        ledger: the budget they share.
        per_user: in how many groups one user may appear.
        share: epsilon of each.
        ignore_others: leave out events of undeclared groups, and of none; else they are an error.
    """

    __slots__ = ("_ledger", "account", "ignore_others", "labels", "per_user", "share")

    account: Account
    """The part of the ledger that is theirs; opened once the tables are there."""

    def __init__(
        self,
        programs: Mapping[Label, S],
        labels: pa.Array,
        ledger: Ledger,
        per_user: int,
        *,
        share: Fraction,
        ignore_others: bool,
    ) -> None:
        super().__init__(programs, {})
        self.labels, self._ledger = labels, ledger
        self.per_user, self.share, self.ignore_others = per_user, share, ignore_others

    @property
    def ledger(self) -> Ledger:
        """The budget; shared if it was given one."""
        return self._ledger

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of each user who appears in at most `per_user` groups."""
        return self.first.guarantee.in_groups(self.per_user)

    @property
    def public(self) -> dict[str, Any]:
        """The public parameters; labels are given by a hash, which keeps the front short."""
        labels = json.dumps(tuple(self.programs)).encode()
        return {
            "groups": len(self.programs),
            "labels": hashlib.sha256(labels).hexdigest(),
            "ledger": self.ledger.total,
            "per_user": self.per_user,
        }

    def named(self, name: Label, answer: Answer) -> Answer:
        """Return an answer under its group; the statistic has its name."""
        return answer.under(group=name)

    def named_part(self, name: Label, part: ContributionPart) -> ContributionPart:
        """Return the contribution of a group."""
        return part.under(group=name, per_user=self.per_user)

    def answers_of(
        self, label: Label, answers: Mapping[Name, Release | None]
    ) -> Mapping[Name, Release | None]:
        """Return the answers of one group."""
        return {name: found for name, found in answers.items() if name.group == label}

    def total(self, loss: Callable[[S], Fraction]) -> Fraction:
        """Return what a user of `per_user` groups loses; all groups are alike."""
        return self.per_user * loss(self.first)

    def spend(self, cost: Fraction) -> None:
        """Charge a loss to the ledger."""
        if cost:
            self.account.spend(cost)


class GroupedMemory(JoinedMemory[Label, S]):
    """The memory of the programs of all groups."""

    __slots__ = ()

    members: GroupMembers[S]

    def prepare(
        self,
        users: Labels,
        groups: Labels,
        deltas: WholeNumbers | None = None,
        sides: Labels | None = None,
    ) -> list[Any | None]:
        """Check one batch of events without counting it.

        Args:
            users: user ids, one for each event, as for the statistic.
            groups: the label of each event: a NumPy array, Arrow array, pandas or Polars series,
                or sequence of texts or whole numbers.
            deltas: one whole number for each event; None for 1 each.
            sides: which of two streams each event is of, for statistics of two.

        Returns:
            What `apply` takes: a batch for each group, or None.

        Raises:
            InputError: as for the statistic; or an undeclared group, unless these are ignored. The
                message names the row, never the id or the group.
        """
        ids = gatherable(as_column(users, "user ids" + _WANTED))
        changes = None if deltas is None else as_column(deltas, "deltas" + _WANTED)
        streams = None if sides is None else as_column(sides, "sides" + _WANTED)
        codes = self._codes(groups, len(ids))
        for name, one in (("delta", changes), ("side", streams)):
            if one is not None and len(one) != len(ids):
                message = (
                    f"there must be one {name} for each id: {len(ids):,} ids, {len(one):,} {name}s"
                )
                raise InputError(message)
        return list(self._prepared(ids, codes, changes, streams))

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume from an earlier state of the same groups and plan; see `Statistic.resume`."""
        super().resume(state, released=released, announced=announced)
        releasing = self.members.first.internals.releasing
        self.members.spend(self.members.per_user * releasing.of_releases(releasing.made))

    def _codes(self, groups: Labels, rows: int) -> NDArray[np.int32]:
        """The place of each row's group; that of undeclared ones is after all others."""
        column = as_column(groups, _WANTED_GROUPS)
        if len(column) != rows:
            message = f"there must be one group for each id: {rows:,} ids, {len(column):,} groups"
            raise InputError(message)
        places = pc.index_in(
            _as_labels(column, self.members.labels.type), value_set=self.members.labels
        )
        if places.null_count and not self.members.ignore_others:
            row = first_null(places)
            missing = not column[row].is_valid
            message = "there is no group" if missing else "the group was not declared"
            message += "; declare all groups=, or say ignore_others=True"
            raise InputError(message, row=row + 1)
        return np.ascontiguousarray(places.fill_null(len(self.members.labels)))

    def _prepared(
        self,
        ids: pa.ChunkedArray,
        codes: NDArray[np.int32],
        *columns: pa.ChunkedArray | None,
    ) -> Iterator[Any | None]:
        """Return the prepared batch of the statistic of each group."""
        order, ends = rows_by_code(codes, len(self.members.labels) + 1)
        start = 0
        for statistic, end in zip(self.members.memories, ends[:-1], strict=True):
            rows, start = order[start:end], end
            if not len(rows):
                yield None
                continue
            try:
                places = pa.array(rows)
                chosen = [None if one is None else one.take(places) for one in columns]
                yield statistic.prepare(ids.take(places), *chosen)
            except InputError as error:
                row = None if error.row is None else int(rows[error.row - 1]) + 1
                raise InputError(error.reason, row=row) from None


class GroupedWindows(JoinedWindows[Label, S]):
    """The learning windows of groups: all are planned alike."""

    __slots__ = ()

    @property
    def expects(self) -> tuple[LearnedRange, ...]:
        """The ranges that those that learn are planned for; all groups are alike."""
        return self.members.first.internals.windows.expects

    def expect(self, ranges: Sequence[LearnedRange]) -> None:
        """Plan those that learn anew, in all groups alike, before anything is counted."""
        for _, one in self._each():
            one.expect(ranges)

    def after(
        self, answers: Mapping[Name, Release | None], states: StateRange | None = None
    ) -> tuple[LearnedRange, ...]:
        """Return the ranges to plan for after its answers: those that hold all groups."""
        each = [
            one.after(self.members.answers_of(label, answers), states)
            for label, one in self._each()
        ]
        return tuple(
            functools.reduce(LearnedRange.together, ranges) for ranges in zip(*each, strict=True)
        )


class GroupedContributions(JoinedContributions[Label, S]):
    """The contributions of groups, which are charged to the ledger of all."""

    __slots__ = ("_releasing",)

    members: GroupMembers[S]

    def __init__(self, releasing: GroupedReleasing[S]) -> None:
        super().__init__(releasing.members)
        self._releasing = releasing

    def parts(self, form: Form, **asked: Any) -> list[ContributionPart]:
        """Return what the program of each group hands out."""
        self.check_parts(form, **asked)
        self.members.spend(self._releasing.release_epsilon)
        return super().parts(form, **asked)


class GroupedReleasing(JoinedReleasing[Label, S]):
    """The releases of groups, which are charged to the ledger of all."""

    __slots__ = ()

    members: GroupMembers[S]

    def costs(self, number: int) -> Mapping[str, Fraction]:
        """Return what a release of each statistic costs a user of `per_user` groups."""
        one: Any = self.members.first
        inner = one.internals.releasing
        known = isinstance(inner, JoinedReleasing)
        costs = inner.costs(number) if known else {one.entry.name: inner.of_release(number)}
        return {label: self.members.per_user * cost for label, cost in costs.items()}

    def release(self, **asked: Any) -> Answers:
        """Publish the answers of each group; see `Together.release`."""
        self.check_release(**asked)
        self.members.spend(self.release_epsilon)
        return super().release(**asked)


class GroupedInternals(JoinedInternals[Label, S]):
    """The four parts of groups."""

    __slots__ = ()

    memory: GroupedMemory[S]

    @classmethod
    def of(cls, name: str, members: GroupMembers[S]) -> GroupedInternals[S]:
        """Return the parts of some groups."""
        releasing = GroupedReleasing(members)
        return cls(
            GroupedMemory(name, members),
            GroupedWindows(members),
            GroupedContributions(releasing),
            releasing,
        )


def _as_labels(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column in the type of the declared labels."""
    column = decoded(column)
    numbers = pa.types.is_integer(column.type)
    if isinstance(column.type, pa.BaseExtensionType):  # its bytes are no text
        raise InputError(_WANTED_GROUPS)
    if numbers == pa.types.is_integer(kind) or pa.types.is_null(column.type):
        with suppress(pa.ArrowException):  # what it says quotes a group
            return column.cast(kind)
    raise InputError(_WANTED_GROUPS)
