"""The windows of a stream: how they end, and when counting waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from panprivacy.errors import BudgetError
from panprivacy.service.batches import HalvedError, Outcome, Reception, Submission
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.announcements import Announcements, Scope
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.releases import PAID, Releases
from panprivacy.service.served import WindowFacts
from panprivacy.service.stream_states import StreamStates

_PATIENCE = 30.0
"""Seconds for which counting waits for a checkpoint with a release, or for room for the answer of a
window; at most a quarter of a window. Then counting goes on."""
_WAIT = 10.0
"""Seconds for which a release, or a batch that has no window yet, waits for a checkpoint."""
_STEP_SECONDS = 0.2
"""Seconds for which windows are closed before other threads and other streams get a turn."""
_BREATH = 0.01
_UNKEPT = "a release waits for the checkpoint that has it, and is published after that"


class StreamWindows:
    """The current window of one stream, and how it ends; each method but `changing` needs the lock.

    Args:
        config: the configuration of the stream.
        reception: counts requests.
        releases: its releases.
        announcements: its announced intrusions.
        states: its states.
        clock: seconds since 1970 in UTC.

    Attributes:
        windowed: the counts of the current window.
        lock: excludes other threads.
        shown: the public facts that other threads see.
        unwritten: whether the last checkpoint could not be written, so that nobody waits for it.
    """

    def __init__(
        self,
        config: StreamConfig,
        reception: Reception,
        releases: Releases,
        announcements: Announcements,
        states: StreamStates,
        clock: Callable[[], float],
    ) -> None:
        self._releases, self._announcements, self._states = releases, announcements, states
        self._reception, self._clock, self.windowed = reception, clock, releases.windowed
        self._patience = min(_PATIENCE, config.window_seconds / 4)
        self._failing_since: float | None = None
        self._refused = self.unwritten = False
        self.lock = threading.Lock()
        self._kept = threading.Condition(self.lock)
        self.shown = self._facts()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Exclude other threads; meanwhile they see the earlier public facts.

        If a window learns from an answer, its plan is hidden until that answer is on a disk.
        """
        with self.lock:
            try:
                yield
            finally:
                is_hidden = self._releases.outbox.unkept
                if not (is_hidden and self.windowed.current.internals.windows.expects):
                    self.shown = self._facts()
                self._kept.notify_all()

    @property
    def is_held(self) -> bool:
        """Whether batches wait for the checkpoint that contains a release; not for ever."""
        made = self._releases.outbox.unkept_since
        if made is None or self.unwritten:
            return False
        return 0 <= self._clock() - made.timestamp() < self._patience

    def count(self, several: Sequence[Submission]) -> list[Outcome]:
        """Count requests in the current window; see `Reception.take`."""
        try:
            return self._reception.take(self.windowed.current, several)
        except HalvedError:
            self._releases.completeness.spoil(self.windowed.began)
            raise

    def scope(self) -> Scope:
        """Return the scope of announcements to a state that starts in the current window."""
        return Scope(self.windowed.began, self.windowed.current.internals.windows.lasting)

    def advance(self) -> None:
        """Make the releases that are due, or raise `StoreError`."""
        if self.windowed.due and self._waits_for_room:
            return
        self.end()
        self._releases.outbox.send()
        if not self.windowed.due and self._releases.scheduled() <= self._clock():
            try:
                self._releases.make()
            except BudgetError:
                self._releases.put_off()
            self._releases.outbox.send()

    def catch_up(self) -> None:
        """Close all windows that have ended; other threads get the stream for a moment meanwhile.

        Then wait for the checkpoint that contains their answers. Until it is on the disk, an
        intruder sees the answers in place of their counts, and no later rows.
        """
        while True:
            self._kept.wait_for(lambda: not self._waits_for_room, _WAIT)
            self.end()
            if not self.windowed.due:
                break
            with suppress(StoreError):  # it is tried again
                self._releases.outbox.send()
            self._kept.wait(_BREATH)
        if not self._kept.wait_for(lambda: not self.is_held, _WAIT):
            raise StoreError(_UNKEPT)

    def release(self) -> None:
        """Make one release, and wait until it is published; see `Stream.release`."""
        one = self._releases.make()
        self._kept.wait_for(lambda: self.unwritten or not self._releases.outbox.unkept, _WAIT)
        self._releases.outbox.send()
        if one is not None and one.outcome is None:
            raise StoreError(_UNKEPT)
        if one is not None and not one.outcome:
            raise BudgetError(PAID)

    def end(self) -> None:
        """Close the windows that have ended, so that rows are counted in the current one.

        It closes the first of very many; call it again for the others.
        """
        completeness = self._releases.completeness
        completeness.note_what_broke(self.windowed.began)
        until = time.monotonic() + _STEP_SECONDS
        while self.windowed.due:
            self._make_room()
            completeness.note_what_broke(self.windowed.began)  # while it waited, too
            completeness.end(self.windowed.began)
            ended_with = self.windowed.current
            self.windowed.advance_once()
            self._releases.collect()
            if self.windowed.current is not ended_with:
                self._announcements.begin(self.scope(), self.windowed.current)
            if self._refused:
                completeness.spoil(self.windowed.began)
            self._releases.begin_window()
            if self.windowed.due and (self._waits_for_room or time.monotonic() > until):
                return
        self._refused, self._failing_since = False, None

    def _make_room(self) -> None:
        """Make room for the answer of the window, or raise `StoreError`, but not for ever."""
        try:
            self._releases.make_room()
        except StoreError:
            now = self._clock()
            since = self._failing_since = self._failing_since or now
            if 0 <= now - since < self._patience:
                raise  # below 0, the clock was set back
            self._refused = True  # and no other window that has passed is waited for again
        else:
            self._refused = self._refused or self._failing_since is not None
            self._failing_since = None

    @property
    def _waits_for_room(self) -> bool:
        """Whether the next checkpoint makes room for the answer of a window."""
        outbox = self._releases.outbox
        return outbox.full and outbox.unkept and not self.unwritten

    def _facts(self) -> WindowFacts:
        windowed = self.windowed
        made = self._releases.number(windowed.current) - 1
        seen = self._announcements.number(windowed.current)
        size = self._states.state_bytes
        return WindowFacts(windowed.began, windowed.ends, made, seen, size)
