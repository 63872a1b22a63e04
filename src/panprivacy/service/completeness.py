"""Completeness of windows: whether one was counted from its start to its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime


class Completeness:
    """The set of incomplete windows whose answers are not published yet.

    Args:
        broken: returns when the process was last seen to stand still or its clock to be set,
            in seconds since 1970.
        since: the time at which counting of the current window started.
    """

    def __init__(self, broken: Callable[[], float], since: datetime) -> None:
        self._broken, self._broken_last = broken, broken()
        self._since = since
        self._incomplete: set[datetime] = set()

    def begin(self, now: datetime) -> None:
        """Start counting: a window that began before `now` is not complete."""
        self._since = now

    def note_what_broke(self, began: datetime) -> None:
        """Mark windows in which the process stood still, or its clock was set, incomplete.

        These are the current one, whatever the clock shows now, and all that began before then.

        Args:
            began: the start of the current window.
        """
        broken = self._broken()
        if broken != self._broken_last:
            self._broken_last = broken
            self._since = datetime.fromtimestamp(broken, UTC)
            self._incomplete.add(began)

    def end(self, began: datetime) -> None:
        """Record that a window has ended; it is incomplete if it began before the intake."""
        if began < self._since:
            self._incomplete.add(began)

    def spoil(self, began: datetime) -> None:
        """Record that some events of a window were not counted."""
        self._incomplete.add(began)

    def holds(self, began: datetime) -> bool:
        """Return whether a window is complete, as far as is known."""
        return began not in self._incomplete

    def leave(self, began: datetime) -> bool:
        """Return whether a window is complete, and forget it: its answers are published."""
        complete = self.holds(began)
        self._incomplete.discard(began)
        return complete
