"""The releases of one stream: each is made, stored, and then paid for and published at once.

A release waits until a checkpoint on the disk contains it. Then its line of the ledger and its
answers are written in one transaction. So a published number is always in the ledger, and a crash
loses neither: a restart from the checkpoint publishes the same release.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from panprivacy.errors import BudgetError, LostReleaseError, PanPrivacyError
from panprivacy.intake.programs.counting import Counting
from panprivacy.service.completeness import Completeness
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.contributions import NOTE, StreamContributions
from panprivacy.service.outgoing.outbox import Outbox
from panprivacy.service.outgoing.payment import Payment, entries
from panprivacy.service.outgoing.pending import Pending, PendingSlot, costs
from panprivacy.service.outgoing.records import Entry, Moment, Published, StoreError
from panprivacy.service.outgoing.results import published
from panprivacy.service.outgoing.sketches import sketch_rows
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.statistics.composites.windowed import Windowed
from panprivacy.statistics.release import Answers

PAID = "its line is in the ledger already, from before a restart or of another service"


class LostAnswers:
    """The log of the answers of a stream that are lost; another process may have paid for them.

    Args:
        stream: the name of the stream.
    """

    __slots__ = ("_stream", "_tells_paid")

    def __init__(self, stream: str) -> None:
        self._stream, self._tells_paid = stream, True

    def settle(self, paid: bool) -> None:  # noqa: FBT001 - for the outbox
        """Record whether a release was paid for, or another process had its line."""
        if not paid:
            self.tell(PAID)
        elif not self._tells_paid:
            self._tells_paid = True
            JOURNAL.warning(Event.answers_again, stream=self._stream)

    def tell(self, reason: str) -> None:
        """Log that an answer is lost; if paid for before, only once until the next success."""
        if reason != PAID or self._tells_paid:
            JOURNAL.error(Event.answer_lost, stream=self._stream, reason=reason)
        self._tells_paid = self._tells_paid and reason != PAID


class Releases:
    """Makes the releases of one stream; for one thread at a time.

    Args:
        name: the name of the stream.
        config: the configuration of the stream.
        store: the store of releases and ledger.
        folder: the folder of contributions, if windows make these in place of answers.
        broken: returns when the process was last seen to stand still or its clock to be set,
            in seconds since 1970.
        durable: whether a release waits for a checkpoint that contains it.
        clock: seconds since 1970 in UTC.

    Attributes:
        windowed: the counts of the current window.
        payment: the record of what is paid for.
        outbox: the releases that wait.
        completeness: the record of which windows are complete.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        store: ReleaseStore,
        folder: Path,
        broken: Callable[[], float],
        clock: Callable[[], float],
        *,
        durable: bool,
    ) -> None:
        self._name, self._config, self._store, self._clock = name, config, store, clock
        unused_from = store.unused_from(name)
        self._earliest = 0.0 if unused_from is None else unused_from.timestamp()
        self.windowed = Windowed(
            partial(config.make_counting, table_key=config.table_key(store.identity)),
            every=timedelta(seconds=config.window_seconds),
            zone=config.zone,
            release=self._last_release,
            answers=lambda made: None if made is None else made[1],
            clock=lambda: max(clock(), self._earliest),
        )
        self._contributions = (
            None
            if config.contribute is None
            else StreamContributions(folder, name, config.contribute)
        )
        self._lost = LostAnswers(name)
        promise = config.promised(self.windowed.current.guarantee)
        self.payment, self._paid_before = Payment(name, store, promise), 0
        self.outbox = Outbox(
            store,
            self.payment,
            self._room(),
            self._contributions,
            self._now,
            self._lost.settle,
            durable=durable,
            kept_for=config.kept_for,
        )
        self._looks_up_what_stands = False
        self._counts_since = self._last_moment = self.windowed.began
        self.completeness = Completeness(broken, self._counts_since)
        self._look_at_the_clock()

    def begin(self) -> datetime:
        """Start the intake: a window that began before now is marked incomplete."""
        self._counts_since = self._now()
        self.completeness.begin(self._counts_since)
        return self._counts_since

    def resume(self) -> datetime:
        """Continue the window of a restored state, with the payments of that state."""
        self._last_moment = self.begin()
        self._paid_before = 0
        self._looks_up_what_stands = True
        self._look_at_the_clock()
        return self._counts_since

    def begin_window(self) -> None:
        """Start the next window; another process may have counted it before."""
        self._paid_before, self._earliest = 0, self.windowed.began.timestamp()
        if self._was_counted_before and not self.windowed.current.internals.windows.lasting:
            with suppress(StoreError):
                self._paid_before = self._store.released(self._name, self.windowed.began)
            self._looks_up_what_stands = True

    def number(self, counting: Counting) -> int:
        """Return the number of the next release of the current window."""
        return self._paid_before + counting.releases + 1

    def left(self) -> int:
        """Return the number of releases left in the window."""
        return (
            self.windowed.current.internals.releasing.planned
            - self.number(self.windowed.current)
            + 1
        )

    def scheduled(self) -> float:
        """Return when the next release within the window is due; infinity if none is."""
        every, began = self._config.every_seconds, self.windowed.began
        if every is None or self.left() <= 1:
            return float("inf")
        # Releases that were due while the service was down are skipped: they would be nearly equal.
        grid = self.windowed.grid.within(began.timestamp(), every)
        return grid.around(max(self._last_moment, began).timestamp())[1]

    def put_off(self) -> None:
        """Skip a release that is due: the next one is due at its time."""
        self._last_moment = self._now()

    def make_room(self) -> None:
        """Make room for the last release of the window.

        Raises:
            StoreError: there is none now, or the store cannot be read.
        """
        if not self._is_answered() and not self._shows_unpaid(self.windowed.current):
            self.outbox.make_room()

    def make(self) -> Pending | None:
        """Make a release within the window, which waits; None if the standing answer is unchanged.

        Raises:
            BudgetError: its line is in the ledger, paid by another process.
            StoreError: it cannot be paid for, or there is no room for it.
        """
        counting, began = self.windowed.current, self.windowed.began
        number = self.number(counting)
        self.outbox.make_room()
        if not self._is_free(counting):
            self._lost.tell(PAID)
            raise BudgetError(PAID)
        now, place = self._now(), counting.releases + 1
        answers = self._next_answers(counting)
        self._last_moment = now
        if answers is None:  # it was paid for before it was compared: that shows no comparison
            return None
        end = max(now, began)  # the clock may have been set back
        moment = self._moment(began, end, number, complete=False)
        rows = self._published(answers, moment)
        one = Pending(self._lines(counting, number, place), rows, place)
        self.outbox.put(one)
        return one

    def collect(self) -> None:
        """Queue the releases of the windows that have ended."""
        for window in self.windowed.take():
            known = self.completeness.leave(window.start)
            if window.release is None:
                continue
            one, answers = window.release
            complete = window.complete and known
            number = one.line.number
            moment = self._moment(window.start, window.end, number, complete=complete)
            one.rows, one.tables = self._published(answers, moment), sketch_rows(answers, moment)
            try:
                self.outbox.put(one)
            except PanPrivacyError as error:
                self._lost.tell(str(error))

    def _look_at_the_clock(self) -> None:
        """Stay in the current window; it is incomplete if the clock is before its start.

        A window that was restored after its last release is over, also where the clock was set back
        since: what comes now is counted in the next one, as it could not be released any more.
        """
        began, now = self.windowed.began, self._now()
        if self._is_over:
            began = self.windowed.ends
        self._earliest = began.timestamp()
        if began > now:
            self.completeness.spoil(began)
            behind = round((began - now).total_seconds())
            ends = datetime.fromtimestamp(self.windowed.grid.around(began.timestamp())[1], UTC)
            JOURNAL.warning(Event.clock_back, stream=self._name, seconds=behind, window_end=ends)

    def _next_answers(self, counting: Counting) -> Answers | None:
        """Return the answers to release now; None if the standing answer is unchanged."""
        if self.outbox.waits:  # the standing answer may be in it, and not in the store
            return counting.internals.releasing.check(confidence=self._config.confidence)
        if self._looks_up_what_stands and counting.internals.releasing.stands is not None:
            newest = self._store.answers(stream=self._name, limit=1)
            told = [one.value for one in newest if one.start == self.windowed.began]
            if told and told[-1] is not None:
                counting.internals.releasing.go_on_from(told[-1])
        self._looks_up_what_stands = False
        return counting.internals.releasing.check(confidence=self._config.confidence)

    def _last_release(self, counting: Counting) -> tuple[Pending, Answers] | None:
        """Return the last release of a window; None if there is no room for it."""
        number, place = self.number(counting), counting.releases + 1
        try:
            if self._is_answered():
                return None
            self.outbox.make_room()
            if number <= counting.internals.releasing.planned and not self._shows_unpaid(counting):
                lines = self._lines(counting, number, place)
                answers, sealed = self._end_of(counting)
                return Pending(lines, [], place, sealed), answers
            reason = PAID
        except StoreError as error:
            reason = str(error)
        except LostReleaseError:
            raise
        except Exception as error:  # noqa: BLE001 - the window has ended; its text may show counts
            reason = f"failed with {type(error).__name__}"
        self._lost.tell(reason)
        return None

    def _lines(self, counting: Counting, number: int, place: int) -> list[Entry]:
        """Return the ledger lines of a release; those of the comparison, if that has paid."""
        began, payer = self.windowed.began, self.payment.use(self.windowed.began, number)
        priced = costs(counting, place)
        return entries(self._name, began, self.windowed.ends, number, payer, priced)

    def _end_of(self, counting: Counting) -> tuple[Answers, bytes | None]:
        """Return the answers of a window, or lost answers and the sealed contribution."""
        if self._contributions is None:
            return counting.release(confidence=self._config.confidence), None
        began, ends = self.windowed.began, self.windowed.ends
        known = self.completeness.holds(began)
        complete = self.windowed.is_complete and ends <= self._now() and known
        sealed = self._contributions.sealed(counting, complete=complete)
        return counting.internals.releasing.lost(), sealed

    def _is_answered(self) -> bool:
        """Return whether the window ended and was answered before this process counted."""
        began, ends = self.windowed.began, self.windowed.ends
        if not self._is_over and (not self._was_counted_before or ends > self._counts_since):
            return False
        if self._contributions is not None and self._contributions.of(began).exists():
            return True  # its line in the store may be missing
        return self._store.answered(self._name, began, ends)

    def _is_free(self, counting: Counting) -> bool:
        """Return whether no other process has the ledger line of the next release.

        If a comparison comes before it, this call pays: so no ledger shows the result of it.
        """
        began, number = self.windowed.began, self.number(counting)
        if counting.internals.releasing.stands is not None:
            return self.payment.make(
                began, self.windowed.ends, counting.internals.releasing, number
            )
        return self._store.released(self._name, began) < number

    def _shows_unpaid(self, counting: Counting) -> bool:
        """Return whether the next window would learn from an answer paid by another process."""
        return bool(counting.internals.windows.expects) and not self._is_free(counting)

    @property
    def _is_over(self) -> bool:
        """Whether all releases of the current window were made before it was restored."""
        return self.left() <= 0 and not self.windowed.current.internals.windows.lasting

    @property
    def _was_counted_before(self) -> bool:
        """Whether this window began before this process counted: another may have counted it."""
        return self.windowed.began < self._counts_since

    def _room(self) -> PendingSlot:
        """Return the room of a release in the state."""
        most = 0
        if self._contributions is not None:
            most = self._contributions.most_bytes(self._config.make_counting())
        return PendingSlot(self._name, self.windowed.current, self._config.confidence, most)

    def _moment(self, start: datetime, end: datetime, number: int, *, complete: bool) -> Moment:
        return Moment(self._name, start, end, number, complete, self._now())

    def _published(self, answers: Answers, moment: Moment) -> list[Published]:
        """Return the rows of a release."""
        rows = published(answers, self.windowed.current, self._config.confidence, moment)
        return rows if self._contributions is None else [replace(row, note=NOTE) for row in rows]

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)
