"""Several private programs over one stream, as one: they count, release and go on together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Guarantee, Ledger
from panprivacy.statistics.composites.members import (
    JoinedContributions,
    JoinedInternals,
    JoinedMemory,
    JoinedReleasing,
    JoinedWindows,
    Members,
)
from panprivacy.statistics.private import Private, check_learns, check_unused
from panprivacy.statistics.release import Answers
from panprivacy.statistics.statistic import Statistic

K = TypeVar("K", str, int, str | int)
M = TypeVar("M", bound=Private)


class Together(Private, Generic[K, M]):
    """Several private programs whose losses add up, under one ledger.

    >>> import panprivacy as pp
    >>> ledger = pp.Ledger(1)
    >>> several = pp.Together(
    ...     {
    ...         "visitors": pp.DistinctCount(epsilon=0.5, ledger=ledger),
    ...         "visits": pp.CroppedSum(tau=10, expected=(100, 10_000), epsilon=0.5, ledger=ledger),
    ...     }
    ... )
    >>> several.update(["ada", "grace", "ada"])
    >>> sorted(name.statistic for name in several.release())
    ['visitors', 'visits']

    Guarantee: the joint law of all states at any one time and all releases changes by a factor of
    at most `e**epsilon`, the sum of those of the members, when all or some updates of one user are
    added or removed. [tests/exact/test_products.py, docs/guarantees/ledger.md]

    Args:
        members: by name, with one ledger, and as many planned releases each.
        asked: what each is asked at a release, by name; nothing for those that are left out.

    Raises:
        PlanError: no members, one that has made releases, several ledgers, different numbers of
            planned releases or announced intrusions, or answers of one name.
    """

    __slots__ = ()

    internals: JoinedInternals[K, M]
    """The parts that the rest of the package uses: memory, windows, contributions, releasing."""

    def __init__(
        self, members: Mapping[K, M], asked: Mapping[K, Mapping[str, Any]] | None = None
    ) -> None:
        if not isinstance(members, Mapping):
            message = (
                'give statistics by name, such as Together({"visitors": DistinctCount(...)}), not '
                f"a {type(members).__name__}"
            )
            raise PlanError(message)
        self._join(Members(members, asked or {}))

    def _join(self, members: Members[K, M]) -> None:
        """Make the parts, and refuse members that cannot go together."""
        self.internals = self._parts_of(members)
        self._check_members()

    def _parts_of(self, members: Members[K, M]) -> JoinedInternals[K, M]:
        """Return the parts of some members."""
        return JoinedInternals(
            JoinedMemory(type(self).__name__, members),
            JoinedWindows(members),
            JoinedContributions(members),
            JoinedReleasing(members),
        )

    def _check_members(self) -> None:
        """Refuse what cannot count, be seen and release together."""
        each = list(self.members.values())
        if not each:
            message = "name at least one statistic"
            raise PlanError(message)
        if not all(isinstance(one, Private) for one in {type(one): one for one in each}.values()):
            message = "only statistics, and groups of them, go together; put windows around them"
            raise PlanError(message)
        if len({id(one) for one in each}) < len(each):
            message = "one statistic is there twice: make one for each name"
            raise PlanError(message)
        check_unused(each)
        Guarantee.of_all(one.guarantee for one in each)
        if not self._joint.asked.keys() <= self.members.keys():
            message = "asked= names a statistic that is not there"
            raise PlanError(message)
        if (
            len({(one.internals.releasing.planned, one.internals.windows.lasting) for one in each})
            > 1
        ):
            message = "statistics that release together need the same number of releases="
            raise PlanError(message)
        if len({one.guarantee.intrusions for one in each}) > 1:
            message = "statistics that are seen together need the same number of intrusions="
            raise PlanError(message)
        self._check_spending()

    def _check_spending(self) -> None:
        """Refuse members that do not share a ledger, or whose answers could not be told apart."""
        if any(one.ledger is not self.ledger for one in self.members.values()):
            message = (
                "statistics of one stream need one ledger: make ledger = pp.Ledger(2), and each "
                "statistic with ledger=ledger and a part of the 2 as epsilon="
            )
            raise PlanError(message)
        if len(self.members) > 1:
            self._check_names()
        check_learns(self)

    def _check_names(self) -> None:
        """Refuse members of which two answers would have one name."""
        joined = self._joint
        lost = {
            name: one.internals.releasing.lost(**joined.query(name))
            for name, one in self.members.items()
        }
        found = {name for label, one in lost.items() for name in joined.named(label, one).answers()}
        if len(found) < sum(len(one.answers()) for one in lost.values()):
            message = "answers would have one name: put statistics side by side, groups around them"
            raise PlanError(message)

    @property
    def _joint(self) -> Members[K, M]:
        return self.internals.memory.members

    @property
    def statistics(self) -> Mapping[str, Statistic[Any, Any]]:
        """The statistics, by name; of groups, those in one of them."""
        named = {str(name): one for name, one in self.members.items()}
        return cast("Mapping[str, Statistic[Any, Any]]", named)

    @property
    def members(self) -> Mapping[K, M]:
        """The members, by name."""
        return self._joint.programs

    @property
    def ledger(self) -> Ledger:
        """The budget they share."""
        return self._joint.ledger

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all together."""
        return self._joint.guarantee

    def release(self, **asked: Any) -> Answers:
        """Publish the answers of all.

        Args:
            asked: of every member, such as `confidence`, beside what each is asked.

        Returns:
            The answers by name; None for those of a release that is lost, as `LostReleaseError`
            says, because the others are paid for as well.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
        """
        return self.internals.releasing.release(**asked)
