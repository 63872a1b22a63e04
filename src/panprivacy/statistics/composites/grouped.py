"""The same questions for each group: visitors by page, crashes by version, callers by district.

One table for each group that was declared beforehand. A table that appeared with its first event
would tell that somebody is in that group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, TypeVar, cast

import pyarrow as pa

from panprivacy.errors import PlanError
from panprivacy.ground.validation import MOST_BYTES, positive_fraction, positive_integer, truth
from panprivacy.privacy.guarantee import Epsilon, Ledger
from panprivacy.statistics.arguments import instance
from panprivacy.statistics.composites.groups import GroupedInternals, GroupMembers
from panprivacy.statistics.composites.members import Members
from panprivacy.statistics.composites.together import Together
from panprivacy.statistics.private import Private, check_maker
from panprivacy.statistics.release import Label
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.useful import sharing
from panprivacy.tables.ids import Labels, WholeNumbers

S = TypeVar("S", bound=Private)

_MOST_GROUPS = 65_535


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

    __slots__ = ()

    internals: GroupedInternals[S]

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
        check_maker(factory, "lambda epsilon: DistinctCount(epsilon=epsilon, ...)", "epsilon")
        total = positive_fraction(epsilon=epsilon)
        labels, column = _declared(groups)
        most = _most_groups(per_user, len(labels))
        ignored = truth(ignore_others=ignore_others)
        budgeted = instance(Ledger, ledger=ledger) or Ledger(total)
        budgeted.check(total)
        share = total / most
        with sharing(total):
            first = factory(share)
            made: object = first
            if not isinstance(made, Private):
                message = f"the factory must make a statistic, and made a {type(first).__name__}"
                raise PlanError(message)
            _check_room(first, len(labels))
            others = {label: factory(share) for label in labels[1:]}
        programs = {labels[0]: first, **others}
        self._join(
            GroupMembers(programs, column, budgeted, most, share=share, ignore_others=ignored)
        )
        if most > 1 and first.guarantee.adjacency == "event":
            message = "an event is in one group, so per_user must be 1"
            raise PlanError(message)
        self._joint.account = budgeted.open(total)
        self._joint.account.spend(self.internals.releasing.state_epsilon)

    def _parts_of(self, members: Members[Label, S]) -> GroupedInternals[S]:
        """Return the parts of some groups."""
        return GroupedInternals.of(type(self).__name__, cast("GroupMembers[S]", members))

    @property
    def _joint(self) -> GroupMembers[S]:
        return self.internals.memory.members

    def _check_spending(self) -> None:
        """Refuse a factory that does not spend what it is given, or not on equal tables."""
        each, joined = list(self.members.values()), self._joint
        share = joined.share
        if joined.first.guarantee.groups is not None:
            message = "groups cannot be within groups: declare a group for each pair"
            raise PlanError(message)
        if len({one.internals.memory.front for one in each}) > 1:
            message = "the factory must plan the same statistic for each group"
            raise PlanError(message)
        if any({one.guarantee.epsilon, one.ledger.total} != {share} for one in each):
            message = f"the factory must give its epsilon, {float(share):g}, to a ledger of its own"
            raise PlanError(message)

    @property
    def statistics(self) -> Mapping[str, Statistic[Any, Any]]:
        """The statistics of one of the groups; all groups have equal ones."""
        first: Any = self._joint.first
        return first.statistics if isinstance(first, Together) else {first.entry.name: first}

    @property
    def groups(self) -> tuple[Label, ...]:
        """The labels."""
        return tuple(self.members)

    def update(
        self,
        users: Labels,
        groups: Labels,
        deltas: WholeNumbers | None = None,
        sides: Labels | None = None,
    ) -> None:
        """Take in one batch of events; an error changes nothing.

        Args:
            users: user ids, one for each event, as for the statistic.
            groups: the label of each event: a NumPy array, Arrow array, pandas or Polars series,
                or sequence of texts or whole numbers.
            deltas: one whole number for each event; None for 1 each.
            sides: which of two streams each event is of, for statistics of two.

        Raises:
            InputError: as for the statistic; or an undeclared group, unless these are ignored. The
                message names the row, never the id or the group.
        """
        super().update(users, groups, deltas, sides)

    def __repr__(self) -> str:
        return f"<Grouped of {len(self.members):,} groups, each {self._joint.first!r}>"


def _most_groups(per_user: int, groups: int) -> int:
    """Read in how many groups one user may appear: at most in all there are."""
    most = positive_integer(per_user=per_user)
    if most > groups:
        there = "there is 1 group" if groups == 1 else f"there are {groups:,} groups"
        message = f"per_user must be at most {groups:,}, as {there}"
        raise PlanError(message)
    return most


def _check_room(first: object, groups: int) -> None:
    """Refuse what is too large for all groups, before there are more programs than the first."""
    each = first.internals.memory.state_bytes if isinstance(first, Private) else 0
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
