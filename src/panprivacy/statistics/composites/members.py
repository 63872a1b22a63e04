"""The parts of several programs that count as one: each part asks the same part of every member."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any, Generic, TypeVar

from panprivacy.errors import LostReleaseError
from panprivacy.privacy.guarantee import Guarantee, Ledger
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.containers import Container, check_all, resume_all
from panprivacy.statistics.contribution import ContributionPart
from panprivacy.statistics.internals import (
    Contributions,
    Internals,
    LearningWindows,
    Memory,
    Releasing,
)
from panprivacy.statistics.private import Private
from panprivacy.statistics.release import Answer, Answers, Name, Release
from panprivacy.tables.ids import shared
from panprivacy.tables.planning.learning import LearnedRange, StateRange

K = TypeVar("K", str, int, str | int)
M = TypeVar("M", bound=Private)


class Members(Generic[K, M]):
    """Several programs by name, what each is asked, and what their answers are called.

    Args:
        programs: by name.
        asked: what each is asked at a release, by name.
    """

    __slots__ = ("asked", "programs")

    def __init__(self, programs: Mapping[K, M], asked: Mapping[K, Mapping[str, Any]]) -> None:
        self.programs: dict[K, M] = dict(programs)
        self.asked: dict[K, Mapping[str, Any]] = dict(asked)

    @property
    def first(self) -> M:
        """The first of them."""
        return next(iter(self.programs.values()))

    @property
    def memories(self) -> list[Memory]:
        """The memory of each, in order."""
        return [one.internals.memory for one in self.programs.values()]

    @property
    def ledger(self) -> Ledger:
        """The budget they share."""
        return self.first.ledger

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all together."""
        return Guarantee.of_all(one.guarantee for one in self.programs.values())

    @property
    def public(self) -> dict[str, Any]:
        """The public parameters beside those of the members."""
        return {"members": [str(name) for name in self.programs], "ledger": self.ledger.total}

    def query(self, name: K, asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what a member is asked, with what all are."""
        return {**self.asked.get(name, {}), **(asked or {})}

    def named(self, name: K, answer: Answer) -> Answer:
        """Return an answer under the name of its member."""
        return answer.under(str(name))

    def named_part(self, name: K, part: ContributionPart) -> ContributionPart:
        """Return a contribution under the name of its member."""
        return part.under(label=str(name))

    def answers_of(
        self, label: K, answers: Mapping[Name, Release | None]
    ) -> Mapping[Name, Release | None]:
        """Return the answers of one member."""
        return {name: found for name, found in answers.items() if name.statistic == str(label)}

    def total(self, loss: Callable[[M], Fraction]) -> Fraction:
        """Return what a user loses by all members."""
        return sum(map(loss, self.programs.values()), Fraction(0))


class JoinedMemory(Memory, Generic[K, M]):
    """The memory of several programs: a public front, and the state of each.

    Args:
        name: of the class of programs, in a state.
        members: the programs.
    """

    __slots__ = ("_name", "members")

    def __init__(self, name: str, members: Members[K, M]) -> None:
        self._name = name
        self.members: Members[K, M] = members

    @property
    def announced(self) -> int:
        """Number of intrusions announced so far; all are announced to all."""
        return self.members.first.internals.memory.announced

    def prepare(self, *columns: Any, **named: Any) -> Sequence[Any]:
        """Check a batch with every member. The result holds ids: use it at once.

        Raises:
            InputError: one of them cannot count it.
        """
        given = [shared(one) for one in columns]
        others = {name: shared(one) for name, one in named.items()}
        return [one.prepare(*given, **others) for one in self.members.memories]

    def apply(self, *batches: Sequence[Any]) -> None:
        """Count a checked batch with every member, in one pass."""
        for place, one in enumerate(self.members.memories):
            present = [of_one for batch in batches if (of_one := batch[place]) is not None]
            if present:
                one.apply(*present)

    @contextmanager
    def announcing(self) -> Iterator[None]:
        """Announce an intrusion to all when the block ends, unless it raises."""
        with ExitStack() as stack:
            for one in self.members.memories:
                stack.enter_context(one.announcing())
            yield

    def state(self) -> bytes:
        """Return exactly what an intruder would get: a public front, and the state of each."""
        return self._layout.packed(self._own)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume from earlier states of the same members; see `Statistic.resume`."""
        own, states = self._layout.parts(state)
        resume_all(self.members.memories, states, released, announced)
        self._resume_own(own)

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        _, states = self._layout.parts(state)
        check_all(self.members.memories, states, released, announced)

    def forget(self) -> None:
        """Wipe all states. May be repeated."""
        for one in self.members.memories:
            one.forget()

    @property
    def _own(self) -> bytes:
        """Return the stored part beside the members."""
        return b""

    def _resume_own(self, own: bytes) -> None:
        """Take over what an earlier state stored beside the members."""

    @property
    def _public(self) -> dict[str, Any]:
        """The public parameters beside those of the members."""
        return self.members.public

    @property
    def _layout(self) -> Container:
        """The layout of the state."""
        return Container(self._name, self._public, len(self._own), self.members.memories)


class JoinedWindows(LearningWindows, Generic[K, M]):
    """The learning windows of several programs.

    Args:
        members: the programs.
    """

    __slots__ = ("members",)

    def __init__(self, members: Members[K, M]) -> None:
        self.members: Members[K, M] = members

    @property
    def lasting(self) -> bool:
        """Whether they go on where a window ends; all do, or none."""
        return self.members.first.internals.windows.lasting

    @property
    def expects(self) -> tuple[LearnedRange, ...]:
        """The ranges that those that learn are planned for, in order."""
        return tuple(expected for _, one in self._each() for expected in one.expects)

    def expect(self, ranges: Sequence[LearnedRange]) -> None:
        """Plan those that learn anew, before anything is counted."""
        rest = iter(ranges)
        for _, one in self._each():
            one.expect(list(itertools.islice(rest, len(one.expects))))

    def after(
        self, answers: Mapping[Name, Release | None], states: StateRange | None = None
    ) -> tuple[LearnedRange, ...]:
        """Return the ranges to plan for after its answers; unchanged where one is lost."""
        reached = self.reached(answers)
        states = states if reached is None else reached
        return tuple(
            expected
            for label, one in self._each()
            for expected in one.after(self.members.answers_of(label, answers), states)
        )

    def reached(self, answers: Mapping[Name, Release | None]) -> StateRange | None:
        """Return how far from 0 states reach, by any of them."""
        found = [
            reach
            for label, one in self._each()
            if (reach := one.reached(self.members.answers_of(label, answers))) is not None
        ]
        return (max(low for low, _ in found), max(high for _, high in found)) if found else None

    def shows_range(self, **asked: Any) -> bool:
        """Return whether the answers of one of them say how far states reach."""
        return any(
            one.shows_range(**self.members.query(label, asked)) for label, one in self._each()
        )

    def _each(self) -> Iterator[tuple[K, LearningWindows]]:
        """Yield the windows of each member, by name."""
        for label, one in self.members.programs.items():
            yield label, one.internals.windows


class JoinedContributions(Contributions, Generic[K, M]):
    """The contributions of several programs.

    Args:
        members: the programs.
    """

    __slots__ = ("members",)

    def __init__(self, members: Members[K, M]) -> None:
        self.members: Members[K, M] = members

    def check_parts(self, form: Form, **asked: Any) -> None:
        """Raise what `parts` would refuse, without changing anything."""
        for name, one in self.members.programs.items():
            one.internals.contributions.check_parts(form, **self.members.query(name, asked))

    def parts(self, form: Form, **asked: Any) -> list[ContributionPart]:
        """Return what each of the members hands out, if all can."""
        self.check_parts(form, **asked)
        return [
            self.members.named_part(name, part)
            for name, one in self.members.programs.items()
            for part in one.internals.contributions.parts(form, **self.members.query(name, asked))
        ]


class JoinedReleasing(Releasing, Generic[K, M]):
    """The releases of several programs, which all release together.

    Args:
        members: the programs.
    """

    __slots__ = ("members",)

    def __init__(self, members: Members[K, M]) -> None:
        self.members: Members[K, M] = members

    @property
    def planned(self) -> int:
        """Number of releases that the budget covers."""
        return self.members.first.internals.releasing.planned

    @property
    def made(self) -> int:
        """Number of releases made so far; all release together."""
        return self.members.first.internals.releasing.made

    @property
    def left(self) -> int:
        """Number of releases that may still be made."""
        return max(self.planned - self.made, 0)

    @property
    def state_epsilon(self) -> Fraction:
        """Loss of the states with all planned looks."""
        return self.members.total(lambda one: one.internals.releasing.state_epsilon)

    def of_releases(self, count: int) -> Fraction:
        """Return what the first `count` releases of all cost a user."""
        return self.members.total(lambda one: one.internals.releasing.of_releases(count))

    def costs(self, number: int) -> Mapping[str, Fraction]:
        """Return what a release of each statistic costs a user, by its number, from 1."""
        return {
            str(label): one.internals.releasing.of_release(number)
            for label, one in self.members.programs.items()
        }

    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything."""
        for name, one in self.members.programs.items():
            one.internals.releasing.check_release(**self.members.query(name, asked))

    def release(self, **asked: Any) -> Answers:
        """Publish the answers of all; see `Together.release`."""
        self.check_release(**asked)
        return Answers(
            self.members.named(name, unless_lost(one, self.members.query(name, asked)))
            for name, one in self.members.programs.items()
        )

    @property
    def stands(self) -> float | None:
        """The answer that stands until it has moved; None where each answer is a new one."""
        return None

    def go_on_from(self, answer: float) -> None:
        """Set the answer that stands, where one does."""

    def check(self, *, confidence: float = 0.95) -> Answers | None:
        """Publish at a moment before the end: a release; None if what stands, stands."""
        return self.release(confidence=confidence)

    def lost(self, **asked: Any) -> Answers:
        """Return what takes the place of answers that are lost."""
        return Answers(
            self.members.named(
                name, one.internals.releasing.lost(**self.members.query(name, asked))
            )
            for name, one in self.members.programs.items()
        )

    def unread(self, **asked: Any) -> Answers:
        """Return the answers of a release that is not lost, by name and without numbers."""
        return Answers(
            self.members.named(
                name, one.internals.releasing.unread(**self.members.query(name, asked))
            )
            for name, one in self.members.programs.items()
        )


class JoinedInternals(Internals, Generic[K, M]):
    """The four parts of several programs that count as one."""

    __slots__ = ()

    memory: JoinedMemory[K, M]
    windows: JoinedWindows[K, M]
    contributions: JoinedContributions[K, M]
    releasing: JoinedReleasing[K, M]


def unless_lost(one: Private, asked: Mapping[str, Any]) -> Answer:
    """Return the answer of a release, or what takes its place if it is lost."""
    try:
        return one.release(**asked)
    except LostReleaseError:
        return one.internals.releasing.lost(**asked)
