"""The same questions for each group: visitors by page, crashes by version, callers by district.

One table for each group that was declared beforehand. A table that appeared with its first event
would tell that somebody is in that group.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panprivacy._validate import MOST_BYTES, positive_fraction, truth, whole_number
from panprivacy.errors import InputError, PlanError
from panprivacy.guarantee import Epsilon, Guarantee, Ledger
from panprivacy.ids import (
    Labels,
    WholeNumbers,
    as_column,
    decoded,
    first_null,
    gatherable,
    rows_by_code,
)
from panprivacy.planning.learning import Learned, Reach
from panprivacy.statistics.arguments import instance
from panprivacy.statistics.contribution import Form, Part
from panprivacy.statistics.private import Private, check_maker
from panprivacy.statistics.release import Answer, Answers, Label, Name, Release
from panprivacy.statistics.together import Together

S = TypeVar("S", bound=Private)

_MOST_GROUPS = 65_535
_WANTED = " must be in a one-dimensional array or sequence"
_WANTED_GROUPS = "groups must be all texts, or all whole numbers, as they were declared"


class Grouped(Together[Label, S]):
    """One private program for each of some declared groups.

    >>> from functools import partial
    >>> import panprivacy as pp
    >>> distinct = partial(pp.DistinctCount, expected=(100, 100_000))
    >>> pages = pp.Grouped(lambda epsilon: distinct(epsilon=epsilon), ["home", "help"],
    ...                    epsilon=1, per_user=2)
    >>> pages.update(["ada", "grace", "ada"], ["home", "home", "help"])
    >>> home = pages.release(confidence=1 - 1e-9).where(group="home").only()
    >>> home.low <= 2 <= home.high
    True

    Guarantee: the joint law of all tables at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, who appears in
    at most `per_user` groups; of a user in n groups, by `e**(n * epsilon / per_user)`.
    [tests/exact/test_groups.py]

    Accuracy: that of each program at `epsilon / per_user`.

    Args:
        factory: makes the program of one group; is given its epsilon, `epsilon / per_user`.
        groups: the labels, texts or whole numbers.
        epsilon: total loss of a user, in nats.
        per_user: in how many groups one user may appear.
        ignore_others: leave out events of undeclared groups, and of none; else they are an error.
        ledger: budget shared with other statistics of the same stream.

    Raises:
        PlanError: an argument out of range, or programs of another epsilon or of several plans.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ("_account", "_ignore_others", "_ledger", "_per_user", "_set", "_total")

    def __init__(
        self,
        factory: Callable[[Fraction], S],
        groups: Sequence[Label],
        *,
        epsilon: Epsilon,
        per_user: int = 1,
        ignore_others: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        check_maker(factory, "lambda epsilon: DistinctCount(epsilon=epsilon, ...)")
        self._total = positive_fraction(epsilon=epsilon)
        labels, self._set = _declared(groups)
        self._per_user = whole_number(1, len(labels), per_user=per_user)
        self._ignore_others = truth(ignore_others=ignore_others)
        self._ledger = instance(Ledger, ledger=ledger) or Ledger(self._total)
        self._ledger.check(self._total)
        share = self._total / self._per_user
        first = factory(share)
        _check_room(first, len(labels))
        others = {label: factory(share) for label in labels[1:]}
        super().__init__({labels[0]: first, **others})
        if self._per_user > 1 and self._first.guarantee.adjacency == "event":
            message = "an event is in one group, so per_user must be 1"
            raise PlanError(message)
        self._account = self._ledger.open(self._total)
        self._account.spend(self.state_epsilon)

    def _check_spending(self) -> None:
        """Refuse a factory that does not spend what it is given, or not on equal tables."""
        each, share = list(self._members.values()), self._total / self._per_user
        if self._first.guarantee.groups is not None:
            message = "groups cannot be within groups: declare a group for each pair"
            raise PlanError(message)
        if len({one.front for one in each}) > 1:
            message = "the factory must plan the same statistic for each group"
            raise PlanError(message)
        if any({one.guarantee.epsilon, one.ledger.total} != {share} for one in each):
            message = f"the factory must give its epsilon, {float(share):g}, to a ledger of its own"
            raise PlanError(message)

    @property
    def statistics(self) -> Mapping[str, Any]:
        """What counts in one of the groups; all are alike."""
        first: Any = self._first
        return first.statistics if isinstance(first, Together) else {first.name: first}

    def release_costs(self, number: int) -> Mapping[str, Fraction]:
        """What a release of each statistic costs a user of `per_user` groups."""
        costs = super().release_costs(number)
        return {label: self._per_user * cost for label, cost in costs.items()}

    @property
    def groups(self) -> tuple[Label, ...]:
        """The labels."""
        return tuple(self._members)

    @property
    def ledger(self) -> Ledger:
        """The budget; shared if it was given one."""
        return self._ledger

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user who appears in at most `per_user` groups."""
        return self._first.guarantee.in_groups(self._per_user)

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

    def release(self, **asked: Any) -> Answers:
        """Publish the answers of each group; see `Together.release`."""
        self.check_release(**asked)
        if cost := self.release_epsilon:
            self._account.spend(cost)
        return super().release(**asked)

    def parts(self, form: Form, **asked: Any) -> list[Part]:
        """What the program of each group hands out."""
        self.check_parts(form, **asked)
        if cost := self.release_epsilon:
            self._account.spend(cost)
        return super().parts(form, **asked)

    def _named_part(self, name: Label, part: Part) -> Part:
        """A contribution of a group."""
        return part.under(group=name, per_user=self._per_user)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Go on from an earlier state of the same groups and plan; see `Statistic.resume`."""
        super().resume(state, released=released, announced=announced)
        if cost := self.of_releases(self.releases):
            self._account.spend(cost)

    @property
    def expects(self) -> tuple[Learned, ...]:
        """What those that learn are planned for; all groups are alike."""
        return self._first.expects

    def expect(self, ranges: Sequence[Learned]) -> None:
        """Plan those that learn anew, in all groups alike, before anything is counted."""
        for one in self._members.values():
            one.expect(ranges)

    def after(
        self, answers: Mapping[Name, Release | None], states: Reach | None = None
    ) -> tuple[Learned, ...]:
        """What to plan for after its answers: what holds all groups."""
        each = [
            one.after(self._answers_of(label, answers), states)
            for label, one in self._members.items()
        ]
        return tuple(
            functools.reduce(Learned.together, ranges) for ranges in zip(*each, strict=True)
        )

    def _answers_of(
        self, label: Label, answers: Mapping[Name, Release | None]
    ) -> Mapping[Name, Release | None]:
        """Those of one group."""
        return {name: found for name, found in answers.items() if name.group == label}

    def _named(self, name: Label, answer: Answer) -> Answer:
        """An answer under its group; the statistic has its name."""
        return answer.under(group=name)

    def _sum(self, loss: Callable[[S], Fraction]) -> Fraction:
        """What a user of `per_user` groups loses; all groups are alike."""
        return self._per_user * loss(self._first)

    @property
    def _public(self) -> dict[str, Any]:
        """Labels are told by a hash, which keeps the front short."""
        labels = json.dumps(self.groups).encode()
        return {
            "groups": len(self._members),
            "labels": hashlib.sha256(labels).hexdigest(),
            "ledger": self._ledger.total,
            "per_user": self._per_user,
        }

    def __repr__(self) -> str:
        return f"<Grouped of {len(self._members):,} groups, each {self._first!r}>"

    def _codes(self, groups: Labels, rows: int) -> NDArray[np.int32]:
        """The place of each row's group; that of undeclared ones is after all others."""
        column = as_column(groups, _WANTED_GROUPS)
        if len(column) != rows:
            message = f"there must be one group for each id: {rows:,} ids, {len(column):,} groups"
            raise InputError(message)
        places = pc.index_in(_as_labels(column, self._set.type), value_set=self._set)
        if places.null_count and not self._ignore_others:
            row = first_null(places)
            missing = not column[row].is_valid
            message = "there is no group" if missing else "the group was not declared"
            message += "; declare all groups=, or say ignore_others=True"
            raise InputError(message, row=row + 1)
        return np.ascontiguousarray(places.fill_null(len(self._set)))

    def _prepared(
        self,
        ids: pa.ChunkedArray,
        codes: NDArray[np.int32],
        *columns: pa.ChunkedArray | None,
    ) -> Iterator[Any | None]:
        """What the statistic of each group is to count."""
        order, ends = rows_by_code(codes, len(self._set) + 1)
        start = 0
        for statistic, end in zip(self._members.values(), ends[:-1], strict=True):
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


def _check_room(first: object, groups: int) -> None:
    """Refuse what is too large for all groups, before there are more programs than the first."""
    each = first.state_bytes if isinstance(first, Private) else 0
    if groups * each > MOST_BYTES:
        message = (
            f"{groups:,} states of {each / 1e6:,.0f} MB take {groups * each / 1e9:,.0f} GB, at "
            f"most {MOST_BYTES / 1e9:,.0f} GB may be: declare fewer groups, or plan smaller tables"
        )
        raise PlanError(message)


def _declared(groups: Sequence[Label]) -> tuple[list[Label], pa.Array]:
    """The labels, and what a column of them is compared with."""
    labels = [] if isinstance(groups, str) or not isinstance(groups, Iterable) else list(groups)
    numbers = [one for one in labels if isinstance(one, int) and not isinstance(one, bool)]
    texts = [one for one in labels if isinstance(one, str)]
    if not 1 <= len(labels) <= _MOST_GROUPS or max(len(set(numbers)), len(set(texts))) < len(
        labels
    ):
        message = f"groups must be 1 to {_MOST_GROUPS:,} different labels, all texts or all numbers"
        raise PlanError(message)
    if numbers and all(-(1 << 63) <= one < 1 << 63 for one in numbers):
        return labels, pa.array(numbers, pa.int64())
    with suppress(UnicodeEncodeError):
        if texts:
            return labels, pa.array([one.encode() for one in texts], pa.large_binary())
    message = "groups must be whole numbers of 64 bits, or texts that UTF-8 can write"
    raise PlanError(message)


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
