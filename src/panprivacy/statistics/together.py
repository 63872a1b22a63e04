"""Several private programs over one stream, as one: they count, release and go on together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any, Generic, TypeVar

from panprivacy.errors import LostReleaseError, PlanError
from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.planning.learning import Learned, Reach
from panprivacy.statistics.containers import Container, check_all, resume_all
from panprivacy.statistics.contribution import Form, Part
from panprivacy.statistics.private import Private, check_learns, check_unused, release_cost
from panprivacy.statistics.release import Answer, Answers, Name, Release

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

    __slots__ = ("_asked", "_members")

    def __init__(
        self, members: Mapping[K, M], asked: Mapping[K, Mapping[str, Any]] | None = None
    ) -> None:
        self._members: dict[K, M] = dict(members)
        self._asked: dict[K, Mapping[str, Any]] = dict(asked or {})
        self._check_members()

    def _check_members(self) -> None:
        """Refuse what cannot count, be seen and release together."""
        each = list(self._members.values())
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
        if not self._asked.keys() <= self._members.keys():
            message = "asked= names a statistic that is not there"
            raise PlanError(message)
        if len({(one.planned, one.lasting) for one in each}) > 1:
            message = "statistics that release together need the same number of releases="
            raise PlanError(message)
        if len({one.guarantee.intrusions for one in each}) > 1:
            message = "statistics that are seen together need the same number of intrusions="
            raise PlanError(message)
        self._check_spending()

    def _check_spending(self) -> None:
        """Refuse members that do not share a ledger, or whose answers could not be told apart."""
        if any(one.ledger is not self.ledger for one in self._members.values()):
            message = "statistics of one stream need one ledger: make each with ledger="
            raise PlanError(message)
        lost = {name: one.lost(**self._asks(name)) for name, one in self._members.items()}
        found = {name for label, one in lost.items() for name in self._named(label, one).answers()}
        if len(found) < sum(len(one.answers()) for one in lost.values()):
            message = "answers would have one name: put statistics side by side, groups around them"
            raise PlanError(message)
        check_learns(self)

    @property
    def statistics(self) -> Mapping[str, Any]:
        """What counts, by name; of groups, in one of them."""
        return {str(name): one for name, one in self._members.items()}

    @property
    def members(self) -> Mapping[K, M]:
        """What counts, by name."""
        return self._members

    @property
    def ledger(self) -> Ledger:
        """The budget they share."""
        return self._first.ledger

    @property
    def guarantee(self) -> Guarantee:
        """Of all together."""
        return Guarantee.of_all(one.guarantee for one in self._members.values())

    @property
    def state_epsilon(self) -> Fraction:
        """What the states cost with all planned looks."""
        return self._sum(lambda one: one.state_epsilon)

    @property
    def release_epsilon(self) -> Fraction:
        """What the next release of all costs a user."""
        return self._sum(lambda one: one.release_epsilon)

    def of_releases(self, count: int) -> Fraction:
        """What the first so many releases of all cost a user."""
        return self._sum(lambda one: one.of_releases(count))

    def release_costs(self, number: int) -> Mapping[str, Fraction]:
        """What a release of each statistic costs a user, by its number, from 1."""
        return {label: release_cost(one, number) for label, one in self.statistics.items()}

    @property
    def releases(self) -> int:
        """How many releases have been made; all release together."""
        return self._first.releases

    @property
    def announced(self) -> int:
        """How many intrusions have been announced; all are announced to all."""
        return self._first.announced

    @property
    def lasting(self) -> bool:
        """Whether they go on where a window ends; all do, or none."""
        return self._first.lasting

    @property
    def planned(self) -> int:
        """How many releases the budget covers."""
        return self._first.planned

    @property
    def left(self) -> int:
        """How many releases may still be made."""
        return max(self.planned - self.releases, 0)

    def prepare(self, *columns: Any, **named: Any) -> Sequence[Any]:
        """Have every member check a batch; what comes of it holds ids: use it at once.

        Raises:
            InputError: one of them cannot count it.
        """
        given = [list(one) if isinstance(one, Iterator) else one for one in columns]
        return [one.prepare(*given, **named) for one in self._members.values()]

    def apply(self, *batches: Sequence[Any]) -> None:
        """Have every member count what `prepare` has checked, in one pass."""
        for place, one in enumerate(self._members.values()):
            present = [of_one for batch in batches if (of_one := batch[place]) is not None]
            if present:
                one.apply(*present)

    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything."""
        for name, one in self._members.items():
            one.check_release(**self._asks(name, asked))

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
        self.check_release(**asked)
        return Answers(
            self._named(name, unless_lost(one, self._asks(name, asked)))
            for name, one in self._members.items()
        )

    @property
    def stands(self) -> float | None:
        """The answer that stands until it has moved; None where each answer is a new one."""
        return None

    def go_on_from(self, answer: float) -> None:
        """Know which answer stands, where one does."""

    def check(self, *, confidence: float = 0.95) -> Answers | None:
        """What is published at a moment before the end: a release; None if what stands, stands."""
        return self.release(confidence=confidence)

    def check_parts(self, form: Form, **asked: Any) -> None:
        """Raise what `parts` would refuse, without changing anything."""
        for name, one in self._members.items():
            one.check_parts(form, **self._asks(name, asked))

    def parts(self, form: Form, **asked: Any) -> list[Part]:
        """What each of the members hands out, if all can."""
        self.check_parts(form, **asked)
        return [
            self._named_part(name, part)
            for name, one in self._members.items()
            for part in one.parts(form, **self._asks(name, asked))
        ]

    def _named_part(self, name: K, part: Part) -> Part:
        """A contribution under the name of its member."""
        return part.under(label=str(name))

    def lost(self, **asked: Any) -> Answers:
        """What stands in the place of answers that are lost."""
        return Answers(
            self._named(name, one.lost(**self._asks(name, asked)))
            for name, one in self._members.items()
        )

    def unread(self, **asked: Any) -> Answers:
        """The answers of a release that is not lost, by name and without numbers."""
        return Answers(
            self._named(name, one.unread(**self._asks(name, asked)))
            for name, one in self._members.items()
        )

    def _named(self, name: K, answer: Answer) -> Answer:
        """An answer under the name of its member."""
        return answer.under(str(name))

    @contextmanager
    def announcing(self) -> Iterator[None]:
        """Announce an intrusion to all when the block ends, unless it raises."""
        with ExitStack() as stack:
            for one in self._members.values():
                stack.enter_context(one.announcing())
            yield

    def state(self) -> bytes:
        """Exactly what an intruder would get: a public front, and the state of each."""
        return self._layout.packed(self._own)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Go on from earlier states of the same members; see `Statistic.resume`."""
        own, states = self._layout.parts(state)
        resume_all(list(self._members.values()), states, released, announced)
        self._resume_own(own)

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        _, states = self._layout.parts(state)
        check_all(list(self._members.values()), states, released, announced)

    def forget(self) -> None:
        """Wipe all states. May be repeated."""
        for one in self._members.values():
            one.forget()

    @property
    def expects(self) -> tuple[Learned, ...]:
        """What those that learn are planned for, in order."""
        return tuple(expected for one in self._members.values() for expected in one.expects)

    def expect(self, ranges: Sequence[Learned]) -> None:
        """Plan those that learn anew, before anything is counted."""
        rest = iter(ranges)
        for one in self._members.values():
            one.expect(list(itertools.islice(rest, len(one.expects))))

    def after(
        self, answers: Mapping[Name, Release | None], states: Reach | None = None
    ) -> tuple[Learned, ...]:
        """What to plan for after its answers; as it is where one is lost."""
        reached = self.reached(answers)
        states = states if reached is None else reached
        return tuple(
            expected
            for label, one in self._members.items()
            for expected in one.after(self._answers_of(label, answers), states)
        )

    def reached(self, answers: Mapping[Name, Release | None]) -> Reach | None:
        """How far from 0 states reach, by any of them."""
        found = [
            reach
            for label, one in self._members.items()
            if (reach := one.reached(self._answers_of(label, answers))) is not None
        ]
        return (max(low for low, _ in found), max(high for _, high in found)) if found else None

    def tells_states(self, **asked: Any) -> bool:
        """Whether what one of them answers says how far states reach."""
        return any(
            one.tells_states(**self._asks(label, asked)) for label, one in self._members.items()
        )

    def _answers_of(
        self, label: K, answers: Mapping[Name, Release | None]
    ) -> Mapping[Name, Release | None]:
        """Those of one member."""
        return {name: found for name, found in answers.items() if name.statistic == str(label)}

    def _asks(self, name: K, asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What a member is asked, with what all are."""
        return {**self._asked.get(name, {}), **(asked or {})}

    @property
    def _first(self) -> M:
        return next(iter(self._members.values()))

    def _sum(self, loss: Callable[[M], Fraction]) -> Fraction:
        return sum(map(loss, self._members.values()), Fraction(0))

    @property
    def _own(self) -> bytes:
        """What is kept beside the members."""
        return b""

    def _resume_own(self, own: bytes) -> None:
        """Take over what an earlier state kept beside the members."""

    @property
    def _public(self) -> dict[str, Any]:
        """The public parameters beside those of the members."""
        return {"members": [str(name) for name in self._members], "ledger": self.ledger.total}

    @property
    def _layout(self) -> Container:
        """The layout of the state."""
        members = list(self._members.values())
        return Container(type(self).__name__, self._public, len(self._own), members)


def unless_lost(one: Private, asked: Mapping[str, Any]) -> Answer:
    """What a release gives, or what stands in its place if it is lost."""
    try:
        return one.release(**asked)
    except LostReleaseError:
        return one.lost(**asked)
