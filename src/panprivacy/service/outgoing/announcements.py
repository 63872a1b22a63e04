"""Announced intrusions: stored once, before they take effect."""

from __future__ import annotations

import hashlib
import struct
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from panprivacy.errors import BudgetError, InputError
from panprivacy.intake.programs.counting import Counting
from panprivacy.service.outgoing.records import Announcement, StoreError
from panprivacy.service.outgoing.store import ReleaseStore

_COUNTS = struct.Struct("<qqq")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PACKED_BYTES = _COUNTS.size


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of announcements about a state: its window, or the time since it was initialised.

    Args:
        start: start of the counting of the window in which the state was initialised.
        lasting: whether the state continues from window to window.
    """

    start: datetime
    lasting: bool

    def holds(self, line: Announcement) -> bool:
        """Return whether a line is in this scope."""
        return line.start == self.start or (self.lasting and line.start > self.start)


class Announcements:
    """Announcer of intrusions to one stream, each once.

    A line of the store records the announcement; then it takes effect. So a state from before the
    line, which a crash restores, is re-randomised for each line that it does not know. A line that
    exists although its commit was reported as failed takes effect when it is requested again.

    Args:
        stream: name of the stream.
        store: the store of the lines.
        scope: the scope of the initial state.
    """

    def __init__(self, stream: str, store: ReleaseStore, scope: Scope) -> None:
        self._stream, self._store, self._scope = stream, store, scope
        self._before = self._seen = 0

    def begin(self, scope: Scope, counting: Counting) -> None:
        """Start counting a fresh state.

        Existing announcements of its window were made to a state that is gone. They are spent, as
        the intruders saw a part of the window, and the fresh state needs none of them.
        """
        self._scope, self._before, self._seen = scope, 0, 0
        if counting.guarantee.intrusions and not scope.lasting:
            with suppress(StoreError):  # then it is re-randomised for them, which is harmless
                self._before = self._seen = self._stored(scope)

    def number(self, counting: Counting) -> int:
        """Return the number of intrusions announced to the current window, as far as is known."""
        return max(self._seen, self._before + counting.internals.memory.announced)

    def make(self, key: bytes, began: datetime, now: datetime, counting: Counting) -> Announcement:
        """Announce one intrusion to the counted state.

        Args:
            key: idempotency key of the sender, for `find`.
            began: start of the counting of the current window.
            now: time of the announcement.
            counting: the state that was seen.

        Returns:
            Its line.

        Raises:
            BudgetError: none is left. Nothing was changed.
            StoreError: the store cannot be written to now. Call again with the same key.
        """
        self.take_effect(counting)
        number = next_number(self.number(counting), counting.guarantee.intrusions)
        line = Announcement(self._stream, began, number, digest_of(key), now)
        with counting.internals.memory.announcing():  # nothing that can fail in memory is left
            self._store.announce(line)
        self._seen = number
        return line

    def take_effect(self, counting: Counting) -> None:
        """Re-randomise the state for each line that it does not know."""
        self._seen = max(self._seen, self._stored(self._scope))
        while self._before + counting.internals.memory.announced < self._seen:
            counting.announce_intrusion()

    def find(self, key: bytes) -> Announcement | None:
        """Return the line of a key; None if there is none.

        Raises:
            StoreError: the store cannot be read now.
        """
        return self._store.announcement(self._stream, digest_of(key))

    def is_of(self, line: Announcement) -> bool:
        """Return whether a line is about the counted state."""
        return self._scope.holds(line)

    def packed(self, counting: Counting) -> bytes:
        """Return the start of the scope, the announcements since, and how many to lost states."""
        since = (self._scope.start - _EPOCH) // timedelta(microseconds=1)
        return _COUNTS.pack(since, self._before + counting.internals.memory.announced, self._before)

    def missing(self, packed: bytes) -> int:
        """Return the number of announcements in all to the state that `packed` belongs to.

        Raises:
            InputError: the store has lost lines that the state knows, or `packed` is damaged.
            StoreError: the store cannot be read now.
        """
        start, made, before = _unpacked(packed)
        stored = self._stored(Scope(start, self._scope.lasting))
        if stored < made:
            message = f"the release store has lost intrusions that were announced to {self._stream}"
            message += ", so a look could be forgotten: put the store back as it was"
            raise InputError(message)
        return stored - before

    def unpack(self, packed: bytes) -> None:
        """Restore the result of `packed`."""
        start, self._seen, self._before = _unpacked(packed)
        self._scope = Scope(start, self._scope.lasting)

    def _stored(self, scope: Scope) -> int:
        if scope.lasting:  # numbered across windows
            return self._store.announced_since(self._stream, scope.start)
        return self._store.announced(self._stream, scope.start)


def next_number(made: int, planned: int) -> int:
    """Return the number of the next announcement to the same window.

    Raises:
        BudgetError: none is left.
    """
    if made >= planned:
        made_all = f"all {planned} announced intrusions of this window have been made"
        message = made_all if planned else "no announced intrusions were planned for this stream"
        message += (
            f"; set intrusions = {planned + 1} in its table, and end the window or start anew"
        )
        raise BudgetError(message)
    return made + 1


def digest_of(key: bytes) -> str:
    """Return the digest by which the line of a key is found."""
    return hashlib.sha256(key).hexdigest()


def _unpacked(packed: bytes) -> tuple[datetime, int, int]:
    """Return the start of the scope, the announcements since, and how many to lost states."""
    since, made, before = _COUNTS.unpack(packed)
    with suppress(OverflowError):
        if 0 <= before <= made:
            return _EPOCH + timedelta(microseconds=since), made, before
    message = "the state is damaged: so many intrusions cannot have been announced"
    raise InputError(message)
