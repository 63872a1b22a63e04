"""The parts of a program that other code of the package uses, behind `internals`.

A user of a program finds its public names on the program. `internals` has four parts: the memory
(all that an intruder sees), the learning windows, the contributions, and the releases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, NoReturn

from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.contribution import ContributionPart
from panprivacy.statistics.release import Answer, Answers, Name, Release
from panprivacy.tables.planning.learning import LearnedRange, StateRange


class Uncopied:
    """Base of everything with a state: it refuses to be pickled or copied."""

    __slots__ = ()

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        message = (
            f"a {type(self).__name__} cannot be pickled or copied: a plain copy of the state is a "
            "second intrusion; only a sealed checkpoint, which this machine cannot open, is safe"
        )
        raise TypeError(message)


class Resumable(Uncopied, ABC):
    """An object with a state that can resume from an earlier one."""

    __slots__ = ()

    @property
    @abstractmethod
    def _layout(self) -> Any:
        """The layout of its state: a `Header`, or a `Container`."""

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
        """Resume from an earlier state in place of its own; see `Statistic.resume`."""


class Memory(Resumable):
    """The memory of a program: all that an intruder sees, and what writes to it."""

    __slots__ = ()

    @property
    @abstractmethod
    def announced(self) -> int:
        """Number of intrusions announced so far; `guarantee.intrusions` may be."""

    @abstractmethod
    def prepare(self, *columns: Any, **named: Any) -> Any:
        """Check one batch without counting it. The result holds ids: use it at once."""

    @abstractmethod
    def apply(self, *batches: Any) -> None:
        """Count in one pass what `prepare` has checked."""

    @abstractmethod
    def announcing(self) -> AbstractContextManager[None]:
        """Announce an intrusion when the block ends, unless it raises; what can fail does first."""

    @abstractmethod
    def forget(self) -> None:
        """Wipe the state: nothing can be counted, released or seen any more. May be repeated."""


class LearningWindows(ABC):
    """The plan of a program for the next window, after the answers of this one."""

    __slots__ = ()

    @property
    @abstractmethod
    def lasting(self) -> bool:
        """Whether it goes on where a window ends, as long as releases are left; see `Windowed`."""

    @property
    @abstractmethod
    def expects(self) -> tuple[LearnedRange, ...]:
        """The ranges that the statistics that learn are planned for, in order; see `Windowed`."""

    @abstractmethod
    def expect(self, ranges: Sequence[LearnedRange]) -> None:
        """Plan these statistics anew, before they count anything; epsilon stays split as it is.

        Raises:
            PlanError: nothing can be planned for that. Nothing was changed.
            PanPrivacyError: it has made releases or announced intrusions. Nothing was changed.
        """

    @abstractmethod
    def after(
        self, answers: Mapping[Name, Release | None], states: StateRange | None = None
    ) -> tuple[LearnedRange, ...]:
        """Return the ranges to plan for after its answers; unchanged where an answer is lost.

        Args:
            answers: by the names that its own releases give them.
            states: how far from 0 states reach, by the answers of a statistic beside it.
        """

    @abstractmethod
    def reached(self, answers: Mapping[Name, Release | None]) -> StateRange | None:
        """Return how far from 0 states reach; None if no answer says."""

    @abstractmethod
    def shows_range(self, **asked: Any) -> bool:
        """Return whether the answers to this say how far states reach."""


class Contributions(ABC):
    """The contribution of a program for `merge`, in place of an answer."""

    __slots__ = ()

    @abstractmethod
    def check_parts(self, form: Form, **asked: Any) -> None:
        """Raise what `parts` would refuse, without changing anything."""

    @abstractmethod
    def parts(self, form: Form, **asked: Any) -> list[ContributionPart]:
        """Return what `contribute` packs; the budget is spent first."""


class Releasing(ABC):
    """The releases of a program: what they cost, and what they publish."""

    __slots__ = ()

    @property
    @abstractmethod
    def planned(self) -> int:
        """Number of releases that the budget covers."""

    @property
    @abstractmethod
    def made(self) -> int:
        """Number of releases made so far."""

    @property
    @abstractmethod
    def state_epsilon(self) -> Fraction:
        """Loss of the state with all planned looks, in nats; it is charged at the start."""

    @abstractmethod
    def of_releases(self, count: int) -> Fraction:
        """Return the loss of the first `count` releases, in nats, on top of the state."""

    def of_release(self, number: int) -> Fraction:
        """Return the loss of the release of this number, from 1."""
        return self.of_releases(number) - self.of_releases(number - 1)

    @property
    def release_epsilon(self) -> Fraction:
        """Loss of the next release, in nats."""
        return self.of_release(self.made + 1)

    @abstractmethod
    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything."""

    @abstractmethod
    def release(self, **asked: Any) -> Answer:
        """Publish the answer; the budget is spent first."""

    @abstractmethod
    def lost(self, **asked: Any) -> Answers:
        """Return what takes the place of a release that is lost, as `LostReleaseError` says."""

    @abstractmethod
    def unread(self, **asked: Any) -> Answers:
        """Return the answers of a release that is not lost, by name and without numbers."""


class Internals:
    """The four parts of a program.

    Args:
        memory: all that an intruder sees.
        windows: what is planned for the next window.
        contributions: what is handed out for `merge`.
        releasing: the releases.
    """

    __slots__ = ("contributions", "memory", "releasing", "windows")

    def __init__(
        self,
        memory: Memory,
        windows: LearningWindows,
        contributions: Contributions,
        releasing: Releasing,
    ) -> None:
        self.memory, self.windows = memory, windows
        self.contributions, self.releasing = contributions, releasing
