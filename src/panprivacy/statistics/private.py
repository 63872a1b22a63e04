"""What every private program can do: a statistic, several of them, groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Guarantee, Ledger, PrivacyLoss, format_rounded_up
from panprivacy.statistics.internals import Internals, Resumable, Uncopied
from panprivacy.statistics.release import Answer
from panprivacy.tables.planning.learning import LearnedBound


class Private(Uncopied, ABC):
    """A program that counts events of users, and publishes answers.

    These are its public names. What the rest of the package uses of it is in `internals`.
    """

    __slots__ = ("internals",)

    internals: Internals
    """The parts that the rest of the package uses: memory, windows, contributions, releasing."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The privacy guarantee to each user of the stream."""

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """The budget it draws on; shared if it was given one."""

    @property
    def releases(self) -> int:
        """Number of releases made so far."""
        return self.internals.releasing.made

    def update(self, *columns: Any, **named: Any) -> None:
        """Take in one batch of events; an error changes nothing."""
        memory = self.internals.memory
        memory.apply(memory.prepare(*columns, **named))

    def release(self, **asked: Any) -> Answer:
        """Publish the answer; the budget is spent first."""
        return self.internals.releasing.release(**asked)

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
        parts = self.internals.contributions.parts("sums", **asked)
        return b"".join(part.packed() for part in parts)

    def contribute_cells(self, **asked: Any) -> bytes:
        """Hand out the cells, for `merge` with others of the same `key`, whose users may recur.

        As for `contribute`: it is a look.
        """
        parts = self.internals.contributions.parts("cells", **asked)
        return b"".join(part.packed() for part in parts)

    def announce_intrusion(self) -> None:
        """Re-randomise the state after somebody has seen it, so that it may be seen once more.

        Raises:
            BudgetError: no further announced intrusion was planned. Nothing was changed.
        """
        with self.internals.memory.announcing():
            pass

    def state(self) -> bytes:
        """Return exactly what an intruder would get; reading it changes nothing.

        Whoever reads it has intruded: only one unannounced look is covered. Announce this one
        before the state may be seen again.
        """
        return self.internals.memory.state()

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume from an earlier state of the same plan, in place of its own.

        An old state beside a newer one is a second look, so only a sealed checkpoint may keep one
        (docs/threat-model.md). What the releases and intrusions of that state cost is spent here.

        Args:
            state: what `state()` returned. Wipe it afterwards if it can be wiped.
            released: how many releases have left in all, if some did after the state was taken.
            announced: how many intrusions have been announced in all, if some were after the
                state was taken: it is re-randomised for each that it does not know.

        Raises:
            InputError: it is damaged, or of another statistic, plan or version. Nothing changed.
            PlanError: more releases or announcements have been made than were planned.
            PanPrivacyError: this one has made releases or announced intrusions of its own.
        """
        self.internals.memory.resume(state, released=released, announced=announced)

    def forget(self) -> None:
        """Wipe the state: nothing can be counted, released or seen any more. May be repeated."""
        self.internals.memory.forget()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} epsilon={format_rounded_up(self.guarantee.epsilon)}>"


Stateful = Private | Resumable
"""Everything whose state a checkpoint may hold."""


def memory_of(one: Stateful) -> Resumable:
    """Return what writes and reads the state."""
    return one.internals.memory if isinstance(one, Private) else one


def check_unused(programs: Iterable[Private]) -> None:
    """Refuse what has told something before it is counted with others, or for a window.

    Raises:
        PlanError: one has made releases, or intrusions were announced to it.
    """
    if any(one.releases or one.internals.memory.announced for one in programs):
        message = "a statistic has made releases, or announced intrusions, before: make a new one"
        raise PlanError(message)


def check_maker(factory: object, such_as: str, *given: str, by_name: Sequence[str] = ()) -> None:
    """Refuse a statistic in place of what makes one, and what takes other arguments.

    Args:
        factory: what was given.
        such_as: an example of a right one.
        given: what it is called with, in order.
        by_name: what it is called with by name.

    Raises:
        PlanError: it is none.
    """
    if not callable(factory):
        message = f"give what makes the statistic, as {such_as}, not one itself"
        raise PlanError(message)
    try:
        signature(factory).bind(*given, **dict.fromkeys(by_name))
    except TypeError:
        takes = ", ".join((*given, *(f"{name}=" for name in by_name))) or "nothing"
        message = f"what makes the statistic is given {takes}: write it as {such_as}"
        raise PlanError(message) from None
    except ValueError:  # a builtin without a signature
        return


def charged(program: Private, releases: int) -> PrivacyLoss:
    """Return the loss by the state with all planned looks, and by so many releases."""
    releasing = program.internals.releasing
    epsilon = releasing.state_epsilon + releasing.of_releases(releases)
    return PrivacyLoss(epsilon, program.guarantee.delta)


def check_learns(program: Private) -> None:
    """Refuse bounds that windows are to learn where no answer says how far states reach.

    Raises:
        PlanError: none does.
    """
    windows = program.internals.windows
    learned = [one for one in windows.expects if isinstance(one, LearnedBound)]
    if learned and not windows.shows_range():
        message = (
            "bound=learn follows how far states reach, which no answer here says: count "
            "incidence beside it, for the whole histogram, or say a bound"
        )
        raise PlanError(message)
