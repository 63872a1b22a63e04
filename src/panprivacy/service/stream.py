"""One stream: what is counted in its current window, which batches were, and what it releases.

The ledger is paid, on disk, before a release is made. So a number that left is always in the
ledger, and a crash loses a release, never the budget. The last release of a window is made once a
checkpoint has all that the window counted, with the ids of its batches: what is in an answer that
left is never counted again, whatever crashes, and whoever sends it again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from panprivacy.errors import (
    BudgetError,
    LostReleaseError,
    PlanError,
)
from panprivacy.guarantee import Guarantee
from panprivacy.programs.counting import Counting
from panprivacy.programs.intake import Columns
from panprivacy.service.batches import BusyError, Outcome, Reception, Sent
from panprivacy.service.completeness import Completeness
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.announcements import Announcements, Scope
from panprivacy.service.outgoing.contributions import NOTE, Contributions
from panprivacy.service.outgoing.outbox import Outbox
from panprivacy.service.outgoing.payment import Payment
from panprivacy.service.outgoing.records import Moment, Published, StoreError
from panprivacy.service.outgoing.results import published
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Announced, Shown, described
from panprivacy.service.stream_state import OWN_BYTES, StreamState, packed
from panprivacy.statistics.containers import Container
from panprivacy.statistics.private import Resumable
from panprivacy.statistics.release import Answers
from panprivacy.statistics.windowed import Windowed

_PATIENCE = 30.0
"""Seconds that the end of a window waits for a disk or release store that cannot be written to, or
a quarter of a window that is short: counting must go on."""
_WAIT = 10.0
"""Seconds that a batch waits for the checkpoint of the end of a window."""
_STEP_SECONDS = 0.2
"""So long windows are closed one after another before other threads, and other streams, go on."""
_BREATH = 0.01
_UNKEPT = "the window has ended, and the checkpoint does not hold all of it yet"
_PAID = "its line is in the ledger already, from before a restart or before the clock was set back"


class Stream(Resumable):
    """Counts batches and releases answers; safe for several threads.

    Guarantee: that of `Windowed` for users; the ids of the last batches are kept besides.
    [docs/guarantees/service.md]

    Args:
        name: of the stream.
        config: what is counted.
        store: where releases and ledger go.
        broken: asked when it was noticed last that the process stood still or its clock was set,
            in seconds since 1970.
        folder: where contributions go, if windows hand out these in place of answers.
        durable: whether somebody writes `state()` down and then calls `kept()`: the answer of a
            window waits for that.
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
        self._windowed = Windowed(
            config.make_counting,
            every=timedelta(seconds=config.window_seconds),
            zone=config.zone,
            release=self._last_release,
            answers=lambda released: None if released is None else released[1],
            clock=clock,
        )
        self._reception = Reception(config, self._windowed.current)
        self._contributions = (
            None if config.contribute is None else Contributions(folder, name, config.contribute)
        )
        self._outbox = Outbox(name, store, self._contributions)
        self._payment, self._paid_before = Payment(name, store), 0
        self._looks_up_what_stands = False
        self._announcements = Announcements(name, store, self._scope())
        self._failing_since: float | None = None
        self._refused, self._tells_paid = False, True
        self._counts_since = self._last_moment = self._windowed.began
        self._completeness = Completeness(broken, self._counts_since)
        self._holds_until = int(clock())  # a state surely holds all that was counted until then
        self._missing = self._counts_since, self._counts_since
        self._shown = self._window()
        self._durable, self._is_kept, self._given_whole = durable, False, False
        self._unwritten = False
        self._lock = threading.Lock()
        self._kept = threading.Condition(self._lock)

    def begin(self) -> None:
        """Know that what comes is taken in from now on; a window that began before is not whole."""
        with self._changing():
            self._counts_since = self._now()
            self._completeness.begin(self._counts_since)

    @property
    def columns(self) -> Columns:
        """What is read of each row."""
        return self._reception.columns

    @property
    def unkept(self) -> bool:
        """Whether the window has ended and waits for a checkpoint that holds all of it."""
        return self._durable and not self._is_kept and self._windowed.due

    @property
    def ends(self) -> datetime:
        """When the current window ends."""
        return self._shown.ends

    @property
    def missing(self) -> tuple[datetime, datetime]:
        """From when to when what came may be missing: since the state was taken that it has."""
        return self._missing

    @property
    def state_bytes(self) -> int:
        """The size of `state()`, which no stream changes; it waits for no other thread.

        Where windows learn, it follows what they released.
        """
        return self._shown.state_bytes

    def described(self) -> dict[str, object]:
        """What is counted and promised, for people and programs; it waits for no other thread."""
        counting, shown = self._windowed.current, self._shown
        return described(self.name, self.config, counting, shown, self._guarantee, self._missing)

    @property
    def _guarantee(self) -> Guarantee:
        """What is promised to the users of a window."""
        promise = self._windowed.current.guarantee
        if self._contributions is None:
            return promise
        look = "a contribution is the look at its window"
        return replace(promise, conditions=(*promise.conditions, look))

    @property
    def looks_left(self) -> int:
        """How many intrusions may still be announced to the current window."""
        return self._windowed.current.guarantee.intrusions - self._shown.announced

    def begun(self) -> int:
        """How many windows that end with the current one the ledger has, without it."""
        shown = self._shown
        return len(self._store.starts(self.name, shown.ends) - {shown.began})

    @staticmethod
    def new_batch_id() -> None:
        """None: of what failed nothing was counted."""

    def take(
        self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None, *, wait: bool = True
    ) -> bool:
        """Count all rows of one `Sent`, or none; see `take_together`.

        Returns:
            Whether they were counted now; False if a batch of that id was counted before.

        Raises:
            InputError: a row cannot be counted. Nothing was counted.
        """
        (outcome,) = self.take_together([Sent(batches, batch_id)], wait=wait)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def take_together(self, several: Sequence[Sent], *, wait: bool = True) -> list[Outcome]:
        """Count what came at the same time in one pass, of each all rows or none.

        Args:
            several: in any order.
            wait: for another thread, or for the end of the window.

        Returns:
            For each, whether it was counted now; False if one of that id was counted before; an
            `InputError` if a row of it cannot be counted, or whatever else went wrong with it.

        Raises:
            BusyError: the caller does not wait, and would have to. Nothing was counted.
            StoreError: the window has ended and cannot be closed yet, for want of a disk or of the
                release store. Nothing was counted.
        """
        if not self._lock.acquire(blocking=wait):
            raise BusyError
        try:
            if not self._windowed.due:
                return self._take(several)
        finally:
            self._lock.release()
        if not wait:
            raise BusyError
        with self._changing():
            self._catch_up()
            outcomes = self._take(several)
            with suppress(StoreError):  # it is tried again
                self._publish()
            return outcomes

    def deadline(self) -> float:
        """When `advance` will have something to do, in seconds since 1970."""
        with self._lock:
            return min(self._scheduled(), self._windowed.ends.timestamp())

    def advance(self) -> None:
        """Make the releases that are due, or raise `StoreError`: then try again.

        Of many windows that have passed it closes the first ones; `deadline` tells that there are
        more. Whoever calls it writes the checkpoint that the end of a window needs, before.
        """
        with self._changing():
            if self._unwritten or not self.unkept:
                self._advance()

    def release(self) -> None:
        """Make one release now.

        Raises:
            PlanError: the stream releases on a clock.
            BudgetError: none is left but that of the end of the window.
            StoreError: it cannot be paid for, or not be published.
        """
        if self.config.every_seconds is not None:
            message = f"stream {self.name} releases on a clock, every {self.config.every}"
            raise PlanError(message)
        if self._windowed.current.lasting:  # what no checkpoint holds would be counted twice
            message = f"stream {self.name} releases at the end of each window alone"
            raise PlanError(message)
        with self._changing():
            self._catch_up()
            self._advance()
            if self._left() <= 1:
                message = "no release is left but that of the end of the window; "
                message += "plan for more with releases="
                raise BudgetError(message)
            if not self._release_now():
                raise BudgetError(_PAID)

    def announce(self, key: bytes) -> Announced:
        """Announce to the current window that somebody has seen its state.

        It is on disk before it takes effect. A window that ended before this call needs none: its
        state is wiped.

        Args:
            key: what the caller names it. Of two calls with one name the second changes nothing.

        Raises:
            BudgetError: none is left. Nothing was changed.
            StoreError: it cannot be written down. It may have been: call again with that key.
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
            self._publish()

    def publish(self) -> None:
        """Have the release store show what was released, or raise `StoreError`."""
        with self._lock:
            self._publish()

    def state(self) -> bytes:
        """Batch ids, and the state of the current window; whoever reads it has intruded."""
        with self._lock:
            self._given_whole = self._windowed.due  # nothing more is counted in this window
            seen = self._announcements.packed(self._windowed.current)
            paid, names = self._payment.packed(), self._reception.batch_ids.packed()
            return self._layout.packed(packed(self._holds_until, paid, seen, names))

    def kept(self) -> None:
        """Know that what `state()` gave last is on disk."""
        with self._changing():
            self._is_kept, self._unwritten = self._given_whole, False
            self._holds_until = int(self._clock())

    def not_kept(self) -> None:
        """Know that it could not be written, so that nobody waits for it."""
        with self._changing():
            self._unwritten = True

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        inner = self._parts(state).inner
        self._windowed.check_state(inner, released=released, announced=announced)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Go on from an earlier state.

        Args:
            state: what `state()` returned.
            released: what `released_in` knows of it.
            announced: what `announced_in` does.
        """
        parts = self._parts(state)
        holds_until = parts.holds_until
        with self._changing():
            own = self._windowed.current
            self._windowed.resume(parts.inner, released=released, announced=announced)
            self._payment.unpack(parts.paid)
            if self._windowed.current is own:
                self._announcements.unpack(parts.seen)
            else:  # all its releases had left: another one was born
                self._announcements.begin(self._scope(), self._windowed.current)
            self._reception.batch_ids.unpack(parts.names)
            self._counts_since = self._last_moment = self._now()
            self._completeness.begin(self._counts_since)
            self._holds_until = int(holds_until.timestamp())
            self._missing = min(holds_until, self._counts_since), self._counts_since
            self._is_kept = True  # in the file that it came from
            self._paid_before = 0  # what was paid for this window, the state pays
            self._looks_up_what_stands = True

    def released_in(self, state: bytes) -> int:
        """How many releases of the window of an earlier state are in the ledger.

        Raises:
            InputError: it is no state of this stream, or the ledger has lost what was paid before.
            StoreError: the ledger cannot be read now.
        """
        parts = self._parts(state)
        self._payment.check(parts.paid)
        began = self._windowed.began_in(parts.inner)
        if self._windowed.current.lasting:  # its releases are numbered from window to window
            return self._store.released_since(self.name, began)
        return self._store.released(self.name, began)

    def announced_in(self, state: bytes) -> int:
        """How many intrusions have been announced to an earlier state in all.

        Raises:
            InputError: it is no state of this stream, or the store has lost what was announced.
            StoreError: the store cannot be read now.
        """
        return self._announcements.missing(self._parts(state).seen)

    def _parts(self, state: bytes) -> StreamState:
        """A state, taken apart.

        Raises:
            InputError: it is no state of this stream.
        """
        own, (inner,) = self._layout.parts(state)
        return StreamState.of(own, inner)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Keep other threads out; what they may see meanwhile is how it was before."""
        with self._lock:
            try:
                yield
            finally:
                self._shown = self._window()
                self._kept.notify_all()

    def _window(self) -> Shown:
        windowed = self._windowed
        made = self._number(windowed.current) - 1
        seen = self._announcements.number(windowed.current)
        return Shown(windowed.began, windowed.ends, made, seen, self._layout.state_bytes)

    def _take(self, several: Sequence[Sent]) -> list[Outcome]:
        self._is_kept = self._given_whole = False
        return self._reception.take(self._windowed.current, several)

    def _advance(self) -> None:
        self._end_windows()
        self._publish()
        is_due = not self._windowed.due and self._scheduled() <= self._clock()
        if is_due and not self._release_now():
            self._last_moment = self._now()  # the next one is due at its time

    def _catch_up(self) -> None:
        """Close all windows that have ended; meanwhile others may have the stream for a moment.

        What they answered is in the store before: a state that is taken then holds a later window.
        """
        while True:
            self._wait_until_kept()
            self._end_windows()
            if not self._windowed.due:
                return
            with suppress(StoreError):  # it is tried again
                self._publish()
            self._kept.wait(_BREATH)

    def _end_windows(self) -> None:
        """Close those that have ended, so that what comes is counted in the current one.

        Of very many it closes the first ones; call it again.
        """
        self._completeness.note_what_broke(self._windowed.began)
        until, ended = time.monotonic() + _STEP_SECONDS, self._windowed.due
        while self._windowed.due:
            self._pay_for_the_end()
            self._completeness.note_what_broke(self._windowed.began)  # while it was paid for, too
            self._completeness.end(self._windowed.began)
            ended_with = self._windowed.current
            self._windowed.advance_once()
            if self._windowed.current is not ended_with:
                self._announcements.begin(self._scope(), self._windowed.current)
            if self._refused:
                self._completeness.spoil(self._windowed.began)
            self._paid_before = 0
            if self._was_counted_before and not self._windowed.current.lasting:
                with suppress(StoreError):
                    self._paid_before = self._store.released(self.name, self._windowed.began)
                self._looks_up_what_stands = True
            if self._windowed.due and time.monotonic() > until:
                return  # what the checkpoint holds is all that there is: nothing is counted yet
        self._refused, self._failing_since = False, None
        if ended:
            self._is_kept = self._given_whole = False

    def _pay_for_the_end(self) -> None:
        """Pay for the last release of the window, or raise `StoreError`, but not for ever."""
        try:
            self._check_kept()
            if not self._is_answered():
                self._pay(self._windowed.current)
        except StoreError:
            now = self._clock()
            since = self._failing_since = self._failing_since or now
            if 0 <= now - since < min(_PATIENCE, self.config.window_seconds / 4):
                raise  # below 0, the clock was set back
            self._refused = True  # and no other window that has passed is waited for again
        else:
            self._refused = self._refused or self._failing_since is not None
            self._failing_since = None

    def _wait_until_kept(self) -> None:
        """Give the keeper time for the checkpoint that the end of the window needs."""
        self._kept.wait_for(lambda: self._unwritten or not self.unkept, _WAIT)

    def _check_kept(self) -> None:
        if self.unkept:
            raise StoreError(_UNKEPT)

    @property
    def _was_counted_before(self) -> bool:
        """Whether this window began before this process counted, so that another one may have."""
        return self._windowed.began < self._counts_since

    def _is_answered(self) -> bool:
        """Whether the window ended, and its last answer left, before this process counted."""
        began, ends = self._windowed.began, self._windowed.ends
        if not self._was_counted_before or ends > self._counts_since:
            return False
        if self._contributions is not None and self._contributions.of(began).exists():
            return True  # its line in the store may be missing
        return self._store.answered(self.name, began, ends)

    def _last_release(self, counting: Counting) -> tuple[int, Answers] | None:
        """What a window releases at its end, and its number; nothing that is not in the ledger."""
        number = self._number(counting)
        try:
            self._check_kept()
            if self._is_answered():
                return None
            if self._pay(counting):
                return number, self._end_of(counting)
            reason = _PAID
        except StoreError as error:
            reason = str(error)
        except LostReleaseError:
            raise
        except Exception as error:  # noqa: BLE001 - the window has ended; its words may show counts
            reason = f"failed with {type(error).__name__}"
        finally:
            self._payment.use()
        self._tell_lost(reason)
        return None

    def _end_of(self, counting: Counting) -> Answers:
        """The answers of a window; of one that contributes, what stands in their place."""
        if self._contributions is None:
            return counting.release(confidence=self.config.confidence)
        began, ends = self._windowed.began, self._windowed.ends
        known = self._completeness.holds(began)
        complete = self._windowed.whole and ends <= self._now() and known
        sealed = self._contributions.sealed(counting, complete=complete)
        self._outbox.put_sealed(began, sealed)
        return counting.lost()

    def _scope(self) -> Scope:
        """What is announced to a state that is born in the current window."""
        return Scope(self._windowed.began, self._windowed.current.lasting)

    def _number(self, counting: Counting) -> int:
        """Of the next release of the current window."""
        return self._paid_before + counting.releases + 1

    def _tell_lost(self, reason: str) -> None:
        """Say that an answer is lost; that it was paid for before, once until one was not."""
        if reason != _PAID or self._tells_paid:
            JOURNAL.error(Event.answer_lost, stream=self.name, reason=reason)
        self._tells_paid = self._tells_paid and reason != _PAID

    def _release_now(self) -> bool:
        """One release within the window; False if it was paid for before."""
        counting, began = self._windowed.current, self._windowed.began
        number = self._number(counting)
        if not self._pay(counting):
            self._tell_lost(_PAID)
            return False
        now = self._now()
        answers = self._next_answers(counting)
        self._last_moment = now
        if answers is None:  # it was paid for before it was compared: that shows no comparison
            return True
        end = max(now, began)  # the clock may have been set back
        moment = Moment(self.name, began, end, number, complete=False, released=now)
        self._outbox.put(self._published(answers, moment))
        self._payment.use()
        self._publish()
        return True

    def _next_answers(self, counting: Counting) -> Answers | None:
        """What is released now; None if the answer that stands has not moved."""
        if self._looks_up_what_stands and counting.stands is not None:
            newest = self._store.answers(stream=self.name, limit=1)
            told = [one.value for one in newest if one.start == self._windowed.began]
            if told and told[-1] is not None:
                counting.go_on_from(told[-1])
        self._looks_up_what_stands = False
        return counting.check(confidence=self.config.confidence)

    def _pay(self, counting: Counting) -> bool:
        """Have the next release in the ledger; False if it is there, and not by this attempt."""
        number = self._number(counting)
        paid = self._payment.make(self._windowed.began, self._windowed.ends, counting, number)
        if paid and not self._tells_paid:
            self._tells_paid = True
            JOURNAL.warning(Event.answers_again, stream=self.name)
        return paid

    def _publish(self) -> None:
        """Have the store show what was released, one release after another."""
        for window in self._windowed.take():
            known = self._completeness.leave(window.start)
            if window.release is not None:
                number, answers = window.release
                complete = window.complete and known
                span = window.start, window.end
                moment = Moment(self.name, *span, number, complete, self._now())
                self._outbox.put(self._published(answers, moment))
        self._outbox.send()

    def _published(self, answers: Answers, moment: Moment) -> list[Published]:
        """The rows of a release."""
        rows = published(answers, self._windowed.current, self.config.confidence, moment)
        return rows if self._contributions is None else [replace(row, note=NOTE) for row in rows]

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _left(self) -> int:
        return self._windowed.current.planned - self._number(self._windowed.current) + 1

    def _scheduled(self) -> float:
        """When the next release within the window is due; never if none is."""
        every, began = self.config.every_seconds, self._windowed.began
        if every is None or self._left() <= 1:
            return float("inf")
        # Those that were due while the service was down are left out: they would be nearly equal.
        grid = self._windowed.grid.within(began.timestamp(), every)
        return grid.around(max(self._last_moment, began).timestamp())[1]

    @property
    def _layout(self) -> Container:
        public: dict[str, Any] = {"stream": self.name, "batch_ids": self.config.retries}
        own_bytes = OWN_BYTES + self._reception.batch_ids.state_bytes
        return Container("Stream", public, own_bytes, [self._windowed])
