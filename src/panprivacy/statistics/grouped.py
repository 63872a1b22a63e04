"""The same question for each group: visitors by page, crashes by version, callers by district.

One table for each group that was declared beforehand. A table that appeared with its first event
would tell that somebody is in that group.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panprivacy._kernels import kernel, read_only
from panprivacy._validate import positive_fraction, truth, whole_number
from panprivacy.errors import InputError, PlanError
from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.ids import as_column, first_null, gatherable
from panprivacy.statistics.plans import instance
from panprivacy.statistics.resuming import Container, check_all, resume_all
from panprivacy.statistics.table import Batch, Statistic, unless_lost

S = TypeVar("S", bound=Statistic[Any])
Label = str | int

_MOST_GROUPS = 65_535
_WANTED = " must be in a one-dimensional array or sequence"
_WANTED_GROUPS = "groups must be all texts, or all whole numbers, as they were declared"


class Grouped(Generic[S]):
    """One statistic for each of some declared groups.

    >>> from functools import partial
    >>> import panprivacy as pp
    >>> distinct = partial(pp.DistinctCount, expected=(100, 100_000))
    >>> pages = pp.Grouped(lambda epsilon: distinct(epsilon=epsilon), ["home", "help"],
    ...                    epsilon=1, per_user=2)
    >>> pages.update(["ada", "grace", "ada"], ["home", "home", "help"])
    >>> sorted(pages.release())
    ['help', 'home']

    Guarantee: the joint law of all tables at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, who appears in
    at most `per_user` groups; of a user in n groups, by `e**(n * epsilon / per_user)`.
    [tests/exact/test_groups.py]

    Accuracy: that of each statistic at `epsilon / per_user`.

    Args:
        factory: makes the statistic of one group; is given its epsilon, `epsilon / per_user`.
        groups: the labels, texts or whole numbers.
        epsilon: total loss of a user, in nats.
        per_user: in how many groups one user may appear.
        ignore_others: leave out events of undeclared groups, and of none; else they are an error.
        ledger: budget shared with other statistics of the same stream.

    Raises:
        PlanError: an argument out of range, or statistics of another epsilon or of several plans.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ("_account", "_guarantee", "_ignore_others", "_ledger", "_per_user", "_set",
                 "_statistics")  # fmt: skip

    def __init__(
        self,
        factory: Callable[[Fraction], S],
        groups: Sequence[Label],
        *,
        epsilon: object,
        per_user: int = 1,
        ignore_others: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        total = positive_fraction(epsilon=epsilon)
        labels, self._set = _declared(groups)
        self._per_user = whole_number(1, len(labels), per_user=per_user)
        self._ignore_others = truth(ignore_others=ignore_others)
        self._ledger = instance(Ledger, ledger=ledger) or Ledger(total)
        self._ledger.check(total)
        share = total / self._per_user
        self._statistics = {label: factory(share) for label in labels}
        _check_alike(list(self._statistics.values()), share)
        request = self._first.plan.request
        self._guarantee = Guarantee(total, request.intrusions, self._per_user)
        self._account = self._ledger.open(total)
        self._account.spend(self._per_user * request.looks * self.plan.split.budget.state)

    @property
    def plan(self) -> Any:
        """The plan of the statistic of each group."""
        return self._first.plan

    @property
    def groups(self) -> tuple[Label, ...]:
        """The labels."""
        return tuple(self._statistics)

    @property
    def ledger(self) -> Ledger:
        """The budget; shared if it was given one."""
        return self._ledger

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user who appears in at most `per_user` groups."""
        return self._guarantee

    @property
    def unseen(self) -> Fraction:
        """The loss if nobody ever sees the state; see `Windowed`."""
        return self._per_user * self._first.unseen

    @property
    def releases(self) -> int:
        """How many releases each group has made."""
        return self._first.releases

    @property
    def release_epsilon(self) -> Fraction:
        """What a release of all groups costs a user of `per_user` groups, in nats."""
        return self._per_user * self._first.release_epsilon

    @property
    def state_bytes(self) -> int:
        """The size of `state()`, which no stream changes."""
        return self._container.state_bytes

    def update(self, users: object, groups: object, deltas: object = None) -> None:
        """Take in one batch of events; an error changes nothing.

        Args:
            users: user ids, one for each event, as for the statistic.
            groups: the label of each event: a NumPy array, Arrow array, pandas or Polars series,
                or sequence of texts or whole numbers.
            deltas: one whole number for each event; None for 1 each.

        Raises:
            InputError: as for the statistic; or an undeclared group, unless these are ignored. The
                message names the row, never the id or the group.
        """
        self.apply(self.prepare(users, groups, deltas))

    def prepare(self, users: object, groups: object, deltas: object = None) -> list[Batch | None]:
        """Check one batch of events without counting it.

        Args:
            users: as for `update`.
            groups: as for `update`.
            deltas: as for `update`.

        Returns:
            What `apply` takes: a batch for each group, or None.

        Raises:
            InputError: as for `update`.
        """
        ids = gatherable(as_column(users, "user ids" + _WANTED))
        changes = None if deltas is None else as_column(deltas, "deltas" + _WANTED)
        codes = self._codes(groups, len(ids))
        if changes is not None and len(changes) != len(ids):
            message = (
                f"there must be one delta for each id: {len(ids):,} ids, {len(changes):,} deltas"
            )
            raise InputError(message)
        return list(self._prepared(ids, codes, changes))

    def apply(self, *batches: Sequence[Batch | None]) -> None:
        """Count what `prepare` has checked, in one pass."""
        for place, statistic in enumerate(self._statistics.values()):
            present = [of_group for batch in batches if (of_group := batch[place]) is not None]
            if present:
                statistic.apply(*present)

    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything."""
        for statistic in self._statistics.values():
            statistic.check_release(**asked)

    def release(self, **asked: Any) -> dict[Label, Any]:
        """Publish the answer of each group.

        Args:
            asked: what the statistic's `release` takes.

        Returns:
            The releases by label; None for a group whose release is lost, as `LostReleaseError`
            says, because the others are paid for as well.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
        """
        self.check_release(**asked)
        self._account.spend(self.release_epsilon)
        return {label: unless_lost(one.release, **asked) for label, one in self._statistics.items()}

    def announce_intrusion(self) -> None:
        """Re-randomise all tables after somebody has seen them; see `Statistic`."""
        for statistic in self._statistics.values():
            statistic.announce_intrusion()

    def state(self) -> bytes:
        """Exactly what an intruder would get: a public front, and the state of each group."""
        return self._container.packed()

    def resume(self, state: bytes, *, released: int = 0) -> None:
        """Go on from an earlier state of the same groups and plan; see `Statistic.resume`."""
        states, counts = self._parts(state, released)
        resume_all(list(self._statistics.values()), states, counts)
        for _ in range(self.releases):
            self._account.spend(self.release_epsilon)

    def check_state(self, state: bytes, *, released: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        states, counts = self._parts(state, released)
        check_all(list(self._statistics.values()), states, counts)

    def forget(self) -> None:
        """Wipe all tables. May be repeated."""
        for statistic in self._statistics.values():
            statistic.forget()

    @property
    def _first(self) -> S:
        """A statistic; all have the same plan."""
        return next(iter(self._statistics.values()))

    def _parts(self, state: bytes, released: int) -> tuple[list[bytes], list[int]]:
        """The state of each group, and how many releases each has made."""
        return self._container.parts(state)[1], [released] * len(self._statistics)

    @property
    def _container(self) -> Container:
        """The layout of the state; labels are told by a hash, which keeps the front short."""
        labels = json.dumps(self.groups).encode()
        public = {
            "groups": len(self._statistics),
            "labels": hashlib.sha256(labels).hexdigest(),
            "ledger": self._ledger.total,
            "per_user": self._per_user,
        }
        return Container("Grouped", public, 0, list(self._statistics.values()))

    def __repr__(self) -> str:
        return f"<Grouped of {len(self._statistics):,} groups, each {self._first!r}>"

    def _codes(self, groups: object, rows: int) -> NDArray[np.int32]:
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
        self, ids: pa.ChunkedArray, codes: NDArray[np.int32], deltas: pa.ChunkedArray | None
    ) -> Iterator[Batch | None]:
        """What the statistic of each group is to count."""
        order, ends = np.empty(len(codes), np.int64), np.zeros(len(self._set) + 1, np.int64)
        _sort_rows(codes, order, ends)
        start = 0
        for statistic, end in zip(self._statistics.values(), ends[:-1], strict=True):
            rows, start = order[start:end], end
            if not len(rows):
                yield None
                continue
            try:
                chosen = None if deltas is None else deltas.take(pa.array(rows))
                yield statistic.prepare(ids.take(pa.array(rows)), chosen)
            except InputError as error:
                row = None if error.row is None else int(rows[error.row - 1]) + 1
                raise InputError(error.reason, row=row) from None

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        message = "a Grouped cannot be pickled or copied: a plain copy is a second intrusion"
        raise TypeError(message)


@kernel(f"void({read_only('int32')}, int64[::1], int64[::1])")
def _sort_rows(codes: NDArray[np.int32], order: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Order rows by their code, and find where the rows of each code end; `ends` comes as zeros."""
    for row in range(codes.size):
        ends[codes[row]] += 1
    total = 0
    for code in range(ends.size):
        count = ends[code]
        ends[code] = total
        total += count
    for row in range(codes.size):
        code = codes[row]
        order[ends[code]] = row
        ends[code] += 1


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
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numbers = pa.types.is_integer(column.type)
    if numbers == pa.types.is_integer(kind) or pa.types.is_null(column.type):
        with suppress(pa.ArrowException):  # what it says quotes a group
            return column.cast(kind)
    raise InputError(_WANTED_GROUPS)


def _check_alike(statistics: Sequence[Statistic[Any]], share: Fraction) -> None:
    """Refuse a factory that does not spend what it is given, or not on equal tables."""
    plan = statistics[0].plan
    if any(one.plan != plan for one in statistics):
        message = "the factory must plan the same statistic for each group"
        raise PlanError(message)
    if plan.request.epsilon != share or any(one.ledger.total != share for one in statistics):
        message = f"the factory must give the epsilon of {float(share):g} to a ledger of its own"
        raise PlanError(message)
