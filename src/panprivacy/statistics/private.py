"""What every private program can do: a statistic, several of them, groups, windows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.statistics.release import Answer, Answers


class Resumable(Protocol):
    """What has a state, and can go on from an earlier one."""

    @property
    def front(self) -> bytes:
        """Its public parameters: what of its state is the same in every state of its like."""

    @property
    def state_bytes(self) -> int:
        """The size of `state()`, which no stream changes."""

    def state(self) -> bytes:
        """All that survives between two updates; whoever reads it has intruded."""

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Go on from an earlier state in place of its own; see `Statistic.resume`."""


@runtime_checkable
class Private(Resumable, Protocol):
    """What counts events of users, and publishes answers."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user of the stream."""

    @property
    def ledger(self) -> Ledger:
        """The budget it draws on."""

    @property
    def unseen(self) -> Fraction:
        """The loss if nobody ever sees the state."""

    @property
    def state_epsilon(self) -> Fraction:
        """What the state costs with all planned looks."""

    @property
    def release_epsilon(self) -> Fraction:
        """What the next release costs."""

    def of_releases(self, count: int) -> Fraction:
        """What the first so many releases cost, on top of the state."""

    @property
    def releases(self) -> int:
        """How many releases have been made."""

    @property
    def planned(self) -> int:
        """How many releases the budget covers."""

    def update(self, *columns: Any, **named: Any) -> None:
        """Take in one batch of events; an error changes nothing."""

    def prepare(self, *columns: Any, **named: Any) -> Any:
        """Check one batch without counting it; what comes of it holds ids."""

    def apply(self, *batches: Any) -> None:
        """Count what `prepare` has checked, in one pass."""

    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything."""

    def release(self, **asked: Any) -> Answer:
        """Publish the answer; the budget is spent first."""

    def lost(self, **asked: Any) -> Answers:
        """What stands in the place of a release that is lost."""

    def announce_intrusion(self) -> None:
        """Re-randomise the state after somebody has seen it."""

    def announcing(self) -> AbstractContextManager[None]:
        """Announce an intrusion when the block ends, unless it raises; what can fail does first."""

    def forget(self) -> None:
        """Wipe the state. May be repeated."""
