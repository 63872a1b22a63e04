"""What one stream releases: each answer is paid for, made, and published, in this order.

The ledger is paid, on disk, before a release is made. So a number that left is always in the
ledger, and a crash loses a release, never the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from panprivacy.errors import LostReleaseError
from panprivacy.programs.counting import Counting
from panprivacy.service.completeness import Completeness
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.contributions import NOTE, Contributions
from panprivacy.service.outgoing.outbox import Outbox
from panprivacy.service.outgoing.payment import Payment
from panprivacy.service.outgoing.records import Moment, Published, StoreError
from panprivacy.service.outgoing.results import published
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.statistics.release import Answers
from panprivacy.statistics.windowed import Windowed

PAID = "its line is in the ledger already, from before a restart or before the clock was set back"


class Releases:
    """Makes the releases of one stream; for one thread at a time.

    Args:
        name: of the stream.
        config: what is counted.
        store: where releases and ledger go.
        folder: where contributions go, if windows hand out these in place of answers.
        broken: asked when it was noticed last that the process stood still or its clock was set,
            in seconds since 1970.
        check_kept: raises `StoreError` if a window has ended and no checkpoint holds all of it.
        clock: seconds since 1970 in UTC.

    Attributes:
        windowed: what is counted in the current window.
        payment: knows what is paid for.
        completeness: knows which windows are complete.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        store: ReleaseStore,
        folder: Path,
        broken: Callable[[], float],
        check_kept: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._name, self._config, self._store = name, config, store
        self._check_kept, self._clock = check_kept, clock
        self.windowed = Windowed(
            config.make_counting,
            every=timedelta(seconds=config.window_seconds),
            zone=config.zone,
            release=self._last_release,
            answers=lambda released: None if released is None else released[1],
            clock=clock,
        )
        self._contributions = (
            None if config.contribute is None else Contributions(folder, name, config.contribute)
        )
        self._outbox = Outbox(name, store, self._contributions)
        promise = config.promised(self.windowed.current.guarantee)
        self.payment, self._paid_before = Payment(name, store, promise), 0
        self._looks_up_what_stands, self._tells_paid = False, True
        self._counts_since = self._last_moment = self.windowed.began
        self.completeness = Completeness(broken, self._counts_since)

    def begin(self) -> datetime:
        """Know that what comes is taken in from now on; a window that began before is not whole."""
        self._counts_since = self._now()
        self.completeness.begin(self._counts_since)
        return self._counts_since

    def resume(self) -> datetime:
        """Know that the window is that of a state, which pays what was paid for it."""
        self._last_moment = self.begin()
        self._paid_before = 0
        self._looks_up_what_stands = True
        return self._counts_since

    def begin_window(self) -> None:
        """Know that the next window is counted; it may have been before, by another process."""
        self._paid_before = 0
        if self._was_counted_before and not self.windowed.current.lasting:
            with suppress(StoreError):
                self._paid_before = self._store.released(self._name, self.windowed.began)
            self._looks_up_what_stands = True

    def number(self, counting: Counting) -> int:
        """Of the next release of the current window."""
        return self._paid_before + counting.releases + 1

    def left(self) -> int:
        """How many releases are left of those of the window."""
        return self.windowed.current.planned - self.number(self.windowed.current) + 1

    def scheduled(self) -> float:
        """When the next release within the window is due; never if none is."""
        every, began = self._config.every_seconds, self.windowed.began
        if every is None or self.left() <= 1:
            return float("inf")
        # Those that were due while the service was down are left out: they would be nearly equal.
        grid = self.windowed.grid.within(began.timestamp(), every)
        return grid.around(max(self._last_moment, began).timestamp())[1]

    def put_off(self) -> None:
        """Leave out a release that is due: the next one is due at its time."""
        self._last_moment = self._now()

    def pay_for_the_end(self) -> None:
        """Pay for the last release of the window, or raise `StoreError`."""
        self._check_kept()
        if not self._is_answered():
            self._pay(self.windowed.current)

    def make(self) -> bool:
        """One release within the window; False if it was paid for before."""
        counting, began = self.windowed.current, self.windowed.began
        number = self.number(counting)
        if not self._pay(counting):
            self._tell_lost(PAID)
            return False
        now = self._now()
        answers = self._next_answers(counting)
        self._last_moment = now
        if answers is None:  # it was paid for before it was compared: that shows no comparison
            return True
        end = max(now, began)  # the clock may have been set back
        moment = Moment(self._name, began, end, number, complete=False, released=now)
        self._outbox.put(self._published(answers, moment))
        self.payment.use()
        self.publish()
        return True

    def publish(self) -> None:
        """Have the store show what was released, one release after another."""
        for window in self.windowed.take():
            known = self.completeness.leave(window.start)
            if window.release is not None:
                number, answers = window.release
                complete = window.complete and known
                span = window.start, window.end
                moment = Moment(self._name, *span, number, complete, self._now())
                self._outbox.put(self._published(answers, moment))
        self._outbox.send()

    def _next_answers(self, counting: Counting) -> Answers | None:
        """What is released now; None if the answer that stands has not moved."""
        if self._looks_up_what_stands and counting.stands is not None:
            newest = self._store.answers(stream=self._name, limit=1)
            told = [one.value for one in newest if one.start == self.windowed.began]
            if told and told[-1] is not None:
                counting.go_on_from(told[-1])
        self._looks_up_what_stands = False
        return counting.check(confidence=self._config.confidence)

    def _pay(self, counting: Counting) -> bool:
        """Have the next release in the ledger; False if it is there, and not by this attempt."""
        number = self.number(counting)
        paid = self.payment.make(self.windowed.began, self.windowed.ends, counting, number)
        if paid and not self._tells_paid:
            self._tells_paid = True
            JOURNAL.warning(Event.answers_again, stream=self._name)
        return paid

    def _last_release(self, counting: Counting) -> tuple[int, Answers] | None:
        """What a window releases at its end, and its number; nothing that is not in the ledger."""
        number = self.number(counting)
        try:
            self._check_kept()
            if self._is_answered():
                return None
            if self._pay(counting):
                return number, self._end_of(counting)
            reason = PAID
        except StoreError as error:
            reason = str(error)
        except LostReleaseError:
            raise
        except Exception as error:  # noqa: BLE001 - the window has ended; its words may show counts
            reason = f"failed with {type(error).__name__}"
        finally:
            self.payment.use()
        self._tell_lost(reason)
        return None

    def _end_of(self, counting: Counting) -> Answers:
        """The answers of a window; of one that contributes, what stands in their place."""
        if self._contributions is None:
            return counting.release(confidence=self._config.confidence)
        began, ends = self.windowed.began, self.windowed.ends
        known = self.completeness.holds(began)
        complete = self.windowed.whole and ends <= self._now() and known
        sealed = self._contributions.sealed(counting, complete=complete)
        self._outbox.put_sealed(began, sealed)
        return counting.lost()

    def _is_answered(self) -> bool:
        """Whether the window ended, and its last answer left, before this process counted."""
        began, ends = self.windowed.began, self.windowed.ends
        if not self._was_counted_before or ends > self._counts_since:
            return False
        if self._contributions is not None and self._contributions.of(began).exists():
            return True  # its line in the store may be missing
        return self._store.answered(self._name, began, ends)

    @property
    def _was_counted_before(self) -> bool:
        """Whether this window began before this process counted, so that another one may have."""
        return self.windowed.began < self._counts_since

    def _tell_lost(self, reason: str) -> None:
        """Say that an answer is lost; that it was paid for before, once until one was not."""
        if reason != PAID or self._tells_paid:
            JOURNAL.error(Event.answer_lost, stream=self._name, reason=reason)
        self._tells_paid = self._tells_paid and reason != PAID

    def _published(self, answers: Answers, moment: Moment) -> list[Published]:
        """The rows of a release."""
        rows = published(answers, self.windowed.current, self._config.confidence, moment)
        return rows if self._contributions is None else [replace(row, note=NOTE) for row in rows]

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)
