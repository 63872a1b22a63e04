"""One stream: the counts of its current window, its recent batches, and the end of windows.

A release is published once a checkpoint contains it, with the ids of the batches that are in it. So
rows of a published answer are never counted again, whatever crashes and whoever sends them again.
The steps of a release are in `releases`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from panprivacy.errors import BudgetError, PlanError
from panprivacy.intake.programs.intake import Columns
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.batches import BusyError, HalvedError, Outcome, Reception, Submission
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.announcements import Announcements, Scope
from panprivacy.service.outgoing.pending import Pending
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.releases import PAID, Releases
from panprivacy.service.served import Announced, WindowFacts, described
from panprivacy.service.stream_state import FORMAT, OWN_BYTES, StreamState, packed
from panprivacy.statistics.containers import Container
from panprivacy.statistics.internals import Resumable

_PATIENCE = 30.0
"""Seconds for which counting waits for a checkpoint with a release, or for room for the answer of a
window; at most a quarter of a window. Then counting goes on."""
_WAIT = 10.0
"""Seconds for which a release, or a batch that has no window yet, waits for a checkpoint."""
_STEP_SECONDS = 0.2
"""Seconds for which windows are closed before other threads and other streams get a turn."""
_BREATH = 0.01
_UNKEPT = "a release waits for the checkpoint that has it, and is published after that"


class Stream(Resumable):
    """Counts batches and releases answers; safe for several threads.

    Guarantee: that of `Windowed` for users; the ids of the last batches are stored besides.
    [docs/guarantees/service.md]

    Args:
        name: of the stream.
        config: what is counted.
        store: the store of releases and ledger.
        broken: returns when the process was last seen to stand still or its clock to be set,
            in seconds since 1970.
        folder: the folder of contributions, if windows make these in place of answers.
        durable: whether the caller writes `state()` to a disk and then calls `mark_stored()`:
            releases wait for that.
        clock: seconds since 1970 in UTC.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        store: ReleaseStore,
        *,
        folder: Path = Path(),
        durable: bool = False,
        broken: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.config = name, config
        self._store, self._clock = store, clock
        self._releases = Releases(name, config, store, folder, broken, clock, durable=durable)
        self._windowed = self._releases.windowed
        self._reception = Reception(config, self._windowed.current)
        self._announcements = Announcements(name, store, self._scope())
        self._failing_since: float | None = None
        self._refused = False
        self._holds_until = int(clock())  # a state surely holds all that was counted until then
        self._missing = self._windowed.began, self._windowed.began
        self._shown = self._window()
        self._unwritten = False
        self._lock = threading.Lock()
        self._kept = threading.Condition(self._lock)

    def begin(self) -> None:
        """Start the intake: a window that began before now is marked incomplete."""
        with self._changing():
            self._releases.begin()

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: some of its events were not counted."""
        with self._lock:
            self._releases.completeness.spoil(self._windowed.began)

    @property
    def columns(self) -> Columns:
        """Columns that are read from each row."""
        return self._reception.columns

    @property
    def unkept(self) -> bool:
        """Whether a release waits for a checkpoint that contains it."""
        return self._releases.outbox.unkept

    @property
    def ends(self) -> datetime:
        """End of the current window."""
        return self._shown.ends

    @property
    def missing(self) -> tuple[datetime, datetime]:
        """Interval in which events may be missing: from the restored state to the restart."""
        return self._missing

    @property
    def state_bytes(self) -> int:
        """Size of `state()`, which no stream of events changes; it waits for no other thread.

        If windows learn, it depends on their releases.
        """
        return self._shown.state_bytes

    def described(self) -> dict[str, object]:
        """Return a description for people and programs; it waits for no other thread."""
        counting, shown = self._windowed.current, self._shown
        return described(self.name, self.config, counting, shown, self.guarantee, self._missing)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee to the users of a window."""
        return self.config.promised(self._windowed.current.guarantee)

    @property
    def looks_left(self) -> int:
        """Number of intrusions that may still be announced to the current window."""
        return self._windowed.current.guarantee.intrusions - self._shown.announced

    def begun(self) -> int:
        """Return the number of other windows in the ledger that end with the current one."""
        shown = self._shown
        return len(self._store.starts(self.name, shown.ends) - {shown.began})

    @staticmethod
    def new_batch_id() -> None:
        """Return None: a failed batch leaves nothing behind, so a retry needs no id."""

    def take(self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None) -> bool:
        """Count all rows of one `Submission`, or none; see `take_together`.

        Returns:
            Whether they were counted now; False if a batch of that id was counted before.

        Raises:
            InputError: a row cannot be counted. Nothing was counted.
        """
        (outcome,) = self.take_together([Submission(batches, batch_id)])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def take_together(self, several: Sequence[Submission], *, wait: bool = True) -> list[Outcome]:
        """Count simultaneous requests in one pass; of each request all rows or none.

        Args:
            several: in any order.
            wait: for another thread, or for the end of the window.

        Returns:
            For each, whether it was counted now; False if one with its id was counted before; an
            `InputError` if one of its rows cannot be counted, or any other error.

        Raises:
            BusyError: `wait` is false and it would have to wait. Nothing was counted.
            StoreError: the window has ended and cannot be closed yet, as too many answers wait for
                a disk or the release store. Nothing was counted.
            MemoryError: there is too little memory to count them. Nothing was counted.
            HalvedError: memory ran out while they were counted: the window is incomplete.
        """
        if not self._lock.acquire(blocking=wait):
            raise BusyError
        try:
            if not self._windowed.due and not self._is_held:
                return self._counted(several)
        finally:
            self._lock.release()
        if not wait:
            raise BusyError
        with self._changing():
            self._catch_up()
            outcomes = self._counted(several)
            with suppress(StoreError):  # it is tried again
                self._releases.outbox.send()
            return outcomes

    def _counted(self, several: Sequence[Submission]) -> list[Outcome]:
        """Count requests in the current window; see `Reception.take`."""
        try:
            return self._reception.take(self._windowed.current, several)
        except HalvedError:
            self._releases.completeness.spoil(self._windowed.began)
            raise

    def deadline(self) -> float:
        """Return the time at which `advance` is due, in seconds since 1970."""
        with self._lock:
            return min(self._releases.scheduled(), self._windowed.ends.timestamp())

    def advance(self) -> None:
        """Make the releases that are due, or raise `StoreError`: then try again.

        It closes the first of many windows that have passed; `deadline` shows whether there are
        more. If something is `unkept` afterwards, write a checkpoint and call it again.
        """
        with self._changing():
            self._advance()

    def release(self) -> None:
        """Make one release now, and wait until it is published.

        Raises:
            PlanError: the stream releases on a clock.
            BudgetError: only the release at the end of the window is left.
            StoreError: it cannot be made; or it waits, and is published as soon as possible.
        """
        if self.config.every_seconds is not None:
            message = f"stream {self.name} releases on a clock, every {self.config.every}"
            raise PlanError(message)
        # rows outside a checkpoint would be counted twice
        if self._windowed.current.internals.windows.lasting:
            message = f"stream {self.name} releases at the end of each window alone"
            raise PlanError(message)
        with self._changing():
            self._catch_up()
            self._advance()
            if self._releases.left() <= 1:
                message = "no release is left but that of the end of the window; "
                message += "plan for more, such as releases = 2, in the configuration"
                raise BudgetError(message)
            one = self._releases.make()
            self._kept.wait_for(lambda: self._unwritten or not self.unkept, _WAIT)
            self._releases.outbox.send()
            if one is not None and one.outcome is None:
                raise StoreError(_UNKEPT)
            if one is not None and not one.outcome:
                raise BudgetError(PAID)

    def announce(self, key: bytes) -> Announced:
        """Announce to the current window that somebody has seen its state.

        It is on disk before it takes effect. A window that ended before this call needs none: its
        state is wiped.

        Args:
            key: the caller's name for it. A second call with the same name changes nothing.

        Raises:
            BudgetError: none is left. Nothing was changed.
            StoreError: it may not have been written: call again with the same key.
        """
        with self._changing():
            line = self._announcements.find(key)
            if line is None:
                self._catch_up()
                began, now = self._windowed.began, self._now()
                line = self._announcements.make(key, began, now, self._windowed.current)
                JOURNAL.warning(Event.announced, stream=self.name)
            elif self._announcements.is_of(line):  # its commit may have been reported as failed
                self._announcements.take_effect(self._windowed.current)
        return Announced(line.start, line.number, self.looks_left)

    def close(self) -> None:
        """End the current window now, and release its answer."""
        with self._changing():
            self._advance()
            while self._windowed.due:
                self._end_windows()
            self._windowed.close()
            self._releases.collect()
            self._releases.outbox.send()

    def publish(self) -> None:
        """Publish the releases that are stored to the release store, or raise `StoreError`."""
        with self._changing():
            self._releases.outbox.send()

    def state(self) -> bytes:
        """Return the batch ids and the state of the current window; to read it is an intrusion."""
        with self._lock:
            seen = self._announcements.packed(self._windowed.current)
            paid, waiting = self._releases.payment.packed(), self._releases.outbox.packed()
            names = self._reception.batch_ids.packed()
            return self._layout.packed(packed(self._holds_until, paid, seen, waiting, names))

    def mark_stored(self) -> None:
        """Record that the last result of `state()` is on disk."""
        with self._changing():
            self._releases.outbox.mark_stored()
            self._unwritten = False
            self._holds_until = int(self._clock())

    def mark_not_stored(self) -> None:
        """Record that the state could not be written, so that nobody waits for it."""
        with self._changing():
            self._unwritten = True

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise the errors of `resume`, without changing anything."""
        parts = self._parts(state)
        self._waiting_in(parts)
        self._windowed.check_state(parts.inner, released=released, announced=announced)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume from an earlier state.

        Args:
            state: a result of `state()`.
            released: the result of `released_in` for it.
            announced: the result of `announced_in` for it.
        """
        parts = self._parts(state)
        holds_until, waiting = parts.holds_until, self._waiting_in(parts)
        with self._changing():
            own = self._windowed.current
            self._windowed.resume(parts.inner, released=released, announced=announced)
            self._releases.payment.unpack(parts.paid)
            self._releases.outbox.go_on_from(waiting)
            if self._windowed.current is own:
                self._announcements.unpack(parts.seen)
            else:  # all its releases were made: a new window was initialised
                self._announcements.begin(self._scope(), self._windowed.current)
            self._reception.batch_ids.unpack(parts.names)
            counts_since = self._releases.resume()
            self._holds_until = int(holds_until.timestamp())
            self._missing = min(holds_until, counts_since), counts_since

    def released_in(self, state: bytes) -> int:
        """Return the number of releases in the ledger of the window of an earlier state.

        Raises:
            InputError: it is no state of this stream, or the ledger has lost earlier payments.
            StoreError: the ledger cannot be read now.
        """
        parts = self._parts(state)
        self._releases.payment.check(parts.paid)
        began = self._windowed.began_in(parts.inner)
        if (
            self._windowed.current.internals.windows.lasting
        ):  # its releases are numbered from window to window
            return self._store.released_since(self.name, began)
        return self._store.released(self.name, began)

    def announced_in(self, state: bytes) -> int:
        """Return the total number of intrusions announced to an earlier state.

        Raises:
            InputError: it is no state of this stream, or the store has lost announcements.
            StoreError: the store cannot be read now.
        """
        return self._announcements.missing(self._parts(state).seen)

    def _parts(self, state: bytes) -> StreamState:
        """Return the parts of a state.

        Raises:
            InputError: it is no state of this stream.
        """
        own, (inner,) = self._layout.parts(state)
        return StreamState.of(own, inner, self._releases.outbox.state_bytes)

    def _waiting_in(self, parts: StreamState) -> list[Pending]:
        """Return the releases that wait in a state; raise `InputError` if they are damaged."""
        return self._releases.outbox.unpacked(parts.waiting, self._windowed.current)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Exclude other threads; meanwhile they see the earlier public facts.

        If a window learns from an answer, its plan is hidden until that answer is on a disk.
        """
        with self._lock:
            try:
                yield
            finally:
                if not (self.unkept and self._windowed.current.internals.windows.expects):
                    self._shown = self._window()
                self._kept.notify_all()

    def _window(self) -> WindowFacts:
        windowed = self._windowed
        made = self._releases.number(windowed.current) - 1
        seen = self._announcements.number(windowed.current)
        return WindowFacts(windowed.began, windowed.ends, made, seen, self._layout.state_bytes)

    def _advance(self) -> None:
        if self._windowed.due and self._waits_for_room:
            return
        self._end_windows()
        self._releases.outbox.send()
        if not self._windowed.due and self._releases.scheduled() <= self._clock():
            try:
                self._releases.make()
            except BudgetError:
                self._releases.put_off()
            self._releases.outbox.send()

    def _catch_up(self) -> None:
        """Close all windows that have ended; other threads get the stream for a moment meanwhile.

        Then wait for the checkpoint that contains their answers. Until it is on the disk, an
        intruder sees the answers in place of their counts, and no later rows.
        """
        while True:
            self._kept.wait_for(lambda: not self._waits_for_room, _WAIT)
            self._end_windows()
            if not self._windowed.due:
                break
            with suppress(StoreError):  # it is tried again
                self._releases.outbox.send()
            self._kept.wait(_BREATH)
        if not self._kept.wait_for(lambda: not self._is_held, _WAIT):
            raise StoreError(_UNKEPT)

    def _end_windows(self) -> None:
        """Close the windows that have ended, so that rows are counted in the current one.

        It closes the first of very many; call it again for the others.
        """
        completeness = self._releases.completeness
        completeness.note_what_broke(self._windowed.began)
        until = time.monotonic() + _STEP_SECONDS
        while self._windowed.due:
            self._make_room()
            completeness.note_what_broke(self._windowed.began)  # while it waited, too
            completeness.end(self._windowed.began)
            ended_with = self._windowed.current
            self._windowed.advance_once()
            self._releases.collect()
            if self._windowed.current is not ended_with:
                self._announcements.begin(self._scope(), self._windowed.current)
            if self._refused:
                completeness.spoil(self._windowed.began)
            self._releases.begin_window()
            if self._windowed.due and (self._waits_for_room or time.monotonic() > until):
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
    def _is_held(self) -> bool:
        """Whether batches wait for the checkpoint that contains a release; not for ever."""
        made = self._releases.outbox.unkept_since
        if made is None or self._unwritten:
            return False
        return 0 <= self._clock() - made.timestamp() < self._patience

    @property
    def _patience(self) -> float:
        """Seconds for which counting waits for a disk or the store."""
        return min(_PATIENCE, self.config.window_seconds / 4)

    @property
    def _waits_for_room(self) -> bool:
        """Whether the next checkpoint makes room for the answer of a window."""
        return self._releases.outbox.full and self.unkept and not self._unwritten

    def _scope(self) -> Scope:
        """Return the scope of announcements to a state that starts in the current window."""
        return Scope(self._windowed.began, self._windowed.current.internals.windows.lasting)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    @property
    def _layout(self) -> Container:
        public: dict[str, Any] = {
            "stream": self.name, "batch_ids": self.config.retries, "format": FORMAT
        }  # fmt: skip
        own_bytes = OWN_BYTES + self._releases.outbox.state_bytes
        own_bytes += self._reception.batch_ids.state_bytes
        return Container("Stream", public, own_bytes, [self._windowed])
