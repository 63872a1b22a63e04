"""Which windows of a stream were counted from their start to their end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime


class Completeness:
    """Knows of windows that they are not complete, until their answers have left.

    Args:
        broken: asked when it was noticed last that the process stood still or its clock was set,
            in seconds since 1970.
        since: when the current window began to be counted.
    """

    def __init__(self, broken: Callable[[], float], since: datetime) -> None:
        self._broken, self._broken_last = broken, broken()
        self._since = since
        self._incomplete: set[datetime] = set()

    def begin(self, now: datetime) -> None:
        """Know that windows are counted from now on: one that began before is not complete."""
        self._since = now

    def note_what_broke(self, began: datetime) -> None:
        """Windows are not complete in which the process stood still, or its clock was set.

        Those are the current one, wherever the clock is now, and all that began before that time.

        Args:
            began: when the current window did.
        """
        broken = self._broken()
        if broken != self._broken_last:
            self._broken_last = broken
            self._since = datetime.fromtimestamp(broken, UTC)
            self._incomplete.add(began)

    def end(self, began: datetime) -> None:
        """Know that the window that began then has ended."""
        if began < self._since:
            self._incomplete.add(began)

    def spoil(self, began: datetime) -> None:
        """Know that something that came in the window that began then was not counted."""
        self._incomplete.add(began)

    def holds(self, began: datetime) -> bool:
        """Whether the window that began then is complete, as far as is known."""
        return began not in self._incomplete

    def leave(self, began: datetime) -> bool:
        """The same of a window whose answers leave, after which nothing is known of it."""
        complete = self.holds(began)
        self._incomplete.discard(began)
        return complete
