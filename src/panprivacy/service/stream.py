"""One stream: the counts of its current window, its recent batches, and the end of windows.

A release is published once a checkpoint contains it, with the ids of the batches that are in it. So
rows of a published answer are never counted again, whatever crashes and whoever sends them again.
The steps of a release are in `releases`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from panprivacy.errors import BudgetError, PlanError
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.batches import BusyError, Outcome, Reception, Submission
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.announcements import Announcements, Scope
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.releases import Releases
from panprivacy.service.served import Announced, described
from panprivacy.service.stream_states import StreamStates
from panprivacy.service.stream_windows import StreamWindows
from panprivacy.statistics.containers import Container
from panprivacy.statistics.internals import Resumable


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

    Attributes:
        reception: counts requests.
        columns: the columns that are read from each row.
        states: what is in a state, and what the ledger has had since.
        windows: the windows, and how they end.
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
        self.reception = Reception(config, self._windowed.current)
        self.columns = self.reception.columns
        scope = Scope(self._windowed.began, self._windowed.current.internals.windows.lasting)
        self._announcements = Announcements(name, store, scope)
        parts = self._releases, self._announcements
        self.states = StreamStates(name, config, store, *parts, self.reception.batch_ids, clock)
        self.windows = StreamWindows(config, self.reception, *parts, self.states, clock)

    def begin(self) -> None:
        """Start the intake: a window that began before now is marked incomplete."""
        with self.windows.changing():
            self._releases.begin()

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: some of its events were not counted."""
        with self.windows.lock:
            self._releases.completeness.spoil(self._windowed.began)

    @property
    def unkept(self) -> bool:
        """Whether a release waits for a checkpoint that contains it."""
        return self._releases.outbox.unkept

    @property
    def ends(self) -> datetime:
        """End of the current window."""
        return self.windows.shown.ends

    @property
    def state_bytes(self) -> int:
        """Size of `state()`, which no stream of events changes; it waits for no other thread.

        If windows learn, it depends on their releases.
        """
        return self.windows.shown.state_bytes

    def described(self) -> dict[str, object]:
        """Return a description for people and programs; it waits for no other thread."""
        counting, shown = self._windowed.current, self.windows.shown
        missing = self.states.missing
        return described(self.name, self.config, counting, shown, self.guarantee, missing)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee to the users of a window."""
        return self.config.promised(self._windowed.current.guarantee)

    @property
    def looks_left(self) -> int:
        """Number of intrusions that may still be announced to the current window."""
        return self._windowed.current.guarantee.intrusions - self.windows.shown.announced

    def begun(self) -> int:
        """Return the number of other windows in the ledger that end with the current one."""
        shown = self.windows.shown
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
        if not self.windows.lock.acquire(blocking=wait):
            raise BusyError
        try:
            if not self._windowed.due and not self.windows.is_held:
                return self.windows.count(several)
        finally:
            self.windows.lock.release()
        if not wait:
            raise BusyError
        with self.windows.changing():
            self.windows.catch_up()
            outcomes = self.windows.count(several)
            with suppress(StoreError):  # it is tried again
                self._releases.outbox.send()
            return outcomes

    def deadline(self) -> float:
        """Return the time at which `advance` is due, in seconds since 1970."""
        with self.windows.lock:
            return min(self._releases.scheduled(), self._windowed.ends.timestamp())

    def advance(self) -> None:
        """Make the releases that are due, or raise `StoreError`: then try again.

        It closes the first of many windows that have passed; `deadline` shows whether there are
        more. If something is `unkept` afterwards, write a checkpoint and call it again.
        """
        with self.windows.changing():
            self.windows.advance()

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
        with self.windows.changing():
            self.windows.catch_up()
            self.windows.advance()
            if self._releases.left() <= 1:
                message = "no release is left but that of the end of the window; "
                message += "plan for more, such as releases = 2, in the configuration"
                raise BudgetError(message)
            self.windows.release()

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
        with self.windows.changing():
            line = self._announcements.find(key)
            if line is None:
                self.windows.catch_up()
                began, now = self._windowed.began, datetime.fromtimestamp(self._clock(), UTC)
                line = self._announcements.make(key, began, now, self._windowed.current)
                JOURNAL.warning(Event.announced, stream=self.name)
            elif self._announcements.is_of(line):  # its commit may have been reported as failed
                self._announcements.take_effect(self._windowed.current)
        return Announced(line.start, line.number, self.looks_left)

    def close(self) -> None:
        """End the current window now, and release its answer."""
        with self.windows.changing():
            self.windows.advance()
            while self._windowed.due:
                self.windows.end()
            self._windowed.close()
            self._releases.collect()
            self._releases.outbox.send()

    def publish(self) -> None:
        """Publish the releases that are stored to the release store, or raise `StoreError`."""
        with self.windows.changing():
            self._releases.outbox.send()

    def state(self) -> bytes:
        """Return the batch ids and the state of the current window; to read it is an intrusion."""
        with self.windows.lock:
            return self.states.packed()

    def mark_stored(self) -> None:
        """Record that the last result of `state()` is on disk."""
        with self.windows.changing():
            self.states.mark_stored()
            self.windows.unwritten = False

    def mark_not_stored(self) -> None:
        """Record that the state could not be written, so that nobody waits for it."""
        with self.windows.changing():
            self.windows.unwritten = True

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise the errors of `resume`, without changing anything."""
        self.states.check(state, released, announced)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume from an earlier state.

        Args:
            state: a result of `state()`.
            released: the result of `states.released_in` for it.
            announced: the result of `states.announced_in` for it.
        """
        parts = self.states.parts(state)
        with self.windows.changing():
            self.states.resume(parts, released, announced, self.windows.scope)

    @property
    def _layout(self) -> Container:
        return self.states.layout
