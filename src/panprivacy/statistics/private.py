"""What every private program can do: a statistic, several of them, groups, windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, NoReturn

from panprivacy.errors import PlanError
from panprivacy.guarantee import Guarantee, Ledger, PrivacyLoss, shown
from panprivacy.planning.learning import Learned, LearnedBound, Reach
from panprivacy.statistics.contribution import Form, Part
from panprivacy.statistics.release import Answer, Answers, Name, Release


class Resumable(ABC):
    """What has a state, and can go on from an earlier one."""

    __slots__ = ()

    @property
    @abstractmethod
    def _layout(self) -> Any:
        """How its state is written: a `Header`, or a `Container`."""

    @property
    def front(self) -> bytes:
        """Its public parameters: what of its state is the same in every state of its like."""
        return self._layout.front

    @property
    def state_bytes(self) -> int:
        """The size of `state()`, which no stream changes."""
        return self._layout.state_bytes

    @abstractmethod
    def state(self) -> bytes:
        """All that survives between two updates; whoever reads it has intruded."""

    @abstractmethod
    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""

    @abstractmethod
    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Go on from an earlier state in place of its own; see `Statistic.resume`."""

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        message = (
            f"a {type(self).__name__} cannot be pickled or copied: a plain copy of the state is a "
            "second intrusion; only a sealed checkpoint, which this machine cannot open, is safe"
        )
        raise TypeError(message)


class Private(Resumable):
    """What counts events of users, and publishes answers."""

    __slots__ = ()

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised to each user of the stream."""

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """The budget it draws on; shared if it was given one."""

    @property
    def unseen(self) -> Fraction:
        """Epsilon if nobody ever sees the state; see `Windowed`."""
        return self.guarantee.unseen_loss.epsilon

    @property
    @abstractmethod
    def state_epsilon(self) -> Fraction:
        """What the state costs with all planned looks, in nats; it is paid at birth."""

    @property
    @abstractmethod
    def release_epsilon(self) -> Fraction:
        """What the next release costs, in nats."""

    @abstractmethod
    def of_releases(self, count: int) -> Fraction:
        """What the first so many releases cost, on top of the state."""

    @property
    @abstractmethod
    def releases(self) -> int:
        """How many releases have been made."""

    @property
    @abstractmethod
    def announced(self) -> int:
        """How many intrusions have been announced; `guarantee.intrusions` may be."""

    @property
    @abstractmethod
    def lasting(self) -> bool:
        """Whether it goes on where a window ends, as long as releases are left; see `Windowed`."""

    @property
    @abstractmethod
    def planned(self) -> int:
        """How many releases the budget covers."""

    def update(self, *columns: Any, **named: Any) -> None:
        """Take in one batch of events; an error changes nothing."""
        self.apply(self.prepare(*columns, **named))

    @abstractmethod
    def prepare(self, *columns: Any, **named: Any) -> Any:
        """Check one batch without counting it; what comes of it holds ids."""

    @abstractmethod
    def apply(self, *batches: Any) -> None:
        """Count what `prepare` has checked, in one pass."""

    @abstractmethod
    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything."""

    @abstractmethod
    def release(self, **asked: Any) -> Answer:
        """Publish the answer; the budget is spent first."""

    def contribute(self, **asked: Any) -> bytes:
        """Hand out the sums of a release, for `merge` with those of shards of different users.

        Whoever reads them has looked at the state. So an announced intrusion follows at once, if
        one is left; else the state is wiped. The budget is spent as for a release.

        Args:
            asked: what the release is asked, but the confidence.

        Raises:
            PlanError: its sums cannot be merged. Nothing was changed.
            BudgetError: all planned releases have been made. Nothing was changed.
        """
        return b"".join(part.packed() for part in self.parts("sums", **asked))

    def contribute_cells(self, **asked: Any) -> bytes:
        """Hand out the cells, for `merge` with others of the same `key`, whose users may recur.

        As for `contribute`: it is a look.
        """
        return b"".join(part.packed() for part in self.parts("cells", **asked))

    @abstractmethod
    def check_parts(self, form: Form, **asked: Any) -> None:
        """Raise what `parts` would refuse, without changing anything."""

    @abstractmethod
    def parts(self, form: Form, **asked: Any) -> list[Part]:
        """What `contribute` packs."""

    @abstractmethod
    def lost(self, **asked: Any) -> Answers:
        """What stands in the place of a release that is lost, as `LostReleaseError` says."""

    @abstractmethod
    def unread(self, **asked: Any) -> Answers:
        """The answers of a release that is not lost, by name and without numbers."""

    def announce_intrusion(self) -> None:
        """Re-randomise the state after somebody has seen it, so that it may be seen once more.

        Raises:
            BudgetError: no further announced intrusion was planned. Nothing was changed.
        """
        with self.announcing():
            pass

    @abstractmethod
    def announcing(self) -> AbstractContextManager[None]:
        """Announce an intrusion when the block ends, unless it raises; what can fail does first."""

    @abstractmethod
    def forget(self) -> None:
        """Wipe the state: nothing can be counted, released or seen any more. May be repeated."""

    @property
    @abstractmethod
    def expects(self) -> tuple[Learned, ...]:
        """What the statistics that learn are planned for, in order; see `Windowed`."""

    @abstractmethod
    def expect(self, ranges: Sequence[Learned]) -> None:
        """Plan these statistics anew, before they count anything; epsilon stays split as it is.

        Raises:
            PlanError: nothing can be planned for that. Nothing was changed.
        """

    @abstractmethod
    def after(
        self, answers: Mapping[Name, Release | None], states: Reach | None = None
    ) -> tuple[Learned, ...]:
        """What to plan for after its answers; as it is where one is lost.

        Args:
            answers: by the names that its own releases give them.
            states: how far from 0 states reach, by the answers of a statistic beside it.
        """

    @abstractmethod
    def reached(self, answers: Mapping[Name, Release | None]) -> Reach | None:
        """How far from 0 states reach; None if no answer says."""

    @abstractmethod
    def tells_states(self, **asked: Any) -> bool:
        """Whether what it answers then says how far states reach."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} epsilon={shown(self.guarantee.epsilon)}>"


def check_unused(programs: Iterable[Private]) -> None:
    """Refuse what has told something before it is counted with others, or for a window.

    Raises:
        PlanError: one has made releases, or intrusions were announced to it.
    """
    if any(one.releases or one.announced for one in programs):
        message = "a statistic has made releases, or announced intrusions, before: make a new one"
        raise PlanError(message)


def check_maker(factory: object, such_as: str) -> None:
    """Refuse a statistic in place of what makes one."""
    if not callable(factory):
        message = f"give what makes the statistic, as {such_as}, not one itself"
        raise PlanError(message)


def release_cost(program: Private, number: int) -> Fraction:
    """Return what the release of this number costs, from 1."""
    return program.of_releases(number) - program.of_releases(number - 1)


def charged(program: Private, releases: int) -> PrivacyLoss:
    """Return the loss by the state with all planned looks, and by so many releases."""
    epsilon = program.state_epsilon + program.of_releases(releases)
    return PrivacyLoss(epsilon, program.guarantee.delta)


def check_learns(program: Private) -> None:
    """Refuse bounds that windows are to learn where no answer says how far states reach.

    Raises:
        PlanError: none does.
    """
    learned = [one for one in program.expects if isinstance(one, LearnedBound)]
    if learned and not program.tells_states():
        message = (
            "bound=learn follows how far states reach, which no answer here says: count "
            "incidence beside it, for the whole histogram, or say a bound"
        )
        raise PlanError(message)
