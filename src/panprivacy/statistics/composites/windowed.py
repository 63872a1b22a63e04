"""How many in each hour, day or week? A fresh statistic for each window of the clock.

Whoever seizes the machine finds the state of the current window alone: earlier ones were wiped as
they ended, and live on in what they released. So a user who comes every day loses the whole epsilon
in a window that is seen, and far less in the others; docs/guarantees/windows.md has the proof.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar, cast

from panprivacy.errors import InputError, LostReleaseError, PlanError
from panprivacy.statistics.composites.members import unless_lost
from panprivacy.statistics.composites.windows import Window, Windows
from panprivacy.statistics.containers import Container
from panprivacy.statistics.grid import Grid
from panprivacy.statistics.internals import Resumable
from panprivacy.statistics.private import Private, check_learns, check_maker, check_unused
from panprivacy.statistics.release import Answer
from panprivacy.tables.planning.learning import LearnedRange

LONGEST = 3_660 * 86_400
"""Seconds of a window, of days of 24 hours."""
_OWN = struct.Struct("<d")
"""In a state, before that of the window: when it began; and then of each that learns:"""
_RANGE = struct.Struct("<QQ")
"""For how many users it is planned, at least and at most."""
_LONGEST_NUMBER = 400 * 86_400
"""Seconds of a window that is given as a number: more may be meant as milliseconds."""
_LAST_MOMENT = datetime(9_999, 12, 28, tzinfo=UTC).timestamp()
"""So that what clocks of all zones show then is in a year of four digits."""


_DAMAGED = "the state is damaged: no window is planned like this"

S = TypeVar("S", bound=Private)


class Windowed(Resumable, Generic[S]):
    """A statistic that starts afresh in each window of the clock, and keeps what it released.

    >>> from datetime import timedelta
    >>> import panprivacy as pp
    >>> def visitors():
    ...     return pp.DistinctCount(epsilon=1, expected=(100, 100_000))
    >>> daily = pp.Windowed(visitors, every=timedelta(days=1))
    >>> daily.update(["ada", "grace", "ada"])
    >>> daily.close()
    >>> [window.release.confidence for window in daily.release()]
    [0.95]

    Windows are cut on a fixed grid by the clock alone, and each passed window releases, also one
    without updates. Days begin at midnight in `zone`, which may give them 23 or 25 hours, and
    weeks on Mondays; see `Grid`. `advance` closes them; `update` calls it first, and
    a program that may be idle calls it on a timer. If the clock is set back by more than a window,
    the current window ends, and the next one starts at the new time, so windows may overlap; the
    service gives it a clock that is never before the start of the current window, so that there
    this window stays open. If more than 1,000 windows seem to have passed at once, those between
    are left out.

    Statistics that are told `expected="learn"` are planned anew for each window, for four times
    more or fewer users than the last one had: what it released is public. A window that was cut
    short, or has no answer, changes nothing; one whose number of users was not expected widens the
    range by what came. With `bound="learn"` the bound is ten times what nearly all users clearly
    reached in the last window, by the histogram of an `Incidence`, and at most that of the first.

    A statistic that is `lasting`, as a `RunningCount` is, goes on from window to window as long as
    it has releases left, and releases at the end of each; then a new one begins.

    Guarantee: within a window, that of the statistic. Over several windows the loss of a user is
    at most `loss(windows, seen)` at `delta(windows)`. [tests/exact/test_windows.py,
    docs/guarantees/windows.md]

    Args:
        factory: makes the statistic of one window, always the same, with a ledger of its own.
        every: length of a window, whole seconds up to ten years; a plain number up to 400 days,
            because a larger one is mostly meant as milliseconds.
        zone: name of the time zone whose clock cuts them, such as "Europe/Paris".
        release: what is released at the end of a window, while it is still the current one; None
            for `release()`. If it raises, that window has no answer: its state is wiped
            nevertheless.
        answers: finds the answers in what `release` gave, for statistics that learn; None where
            there are none.
        clock: seconds since 1970 in UTC.

    Raises:
        PlanError: a length out of range, a zone that there is not, or a factory whose statistics
            share a ledger or differ.
    """

    __slots__ = ("_answers", "_clock", "_current", "_end", "_grid", "_makes", "_release",
                 "_releases", "_resumed", "_start")  # fmt: skip

    def __init__(
        self,
        factory: Callable[[], S],
        every: timedelta | int,
        *,
        zone: str = "UTC",
        release: Callable[[S], Any] | None = None,
        answers: Callable[[Any], Answer | None] = lambda released: released,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_maker(factory, "lambda: DistinctCount(...)")
        self._grid = Grid(_seconds(every), zone)
        self._clock = clock
        self._release = release or (lambda current: unless_lost(current, {}))
        self._answers = answers
        self._releases: list[Window] = []
        self._current = _made_by(factory)
        check_learns(self._current)
        self._makes = _Maker(factory, self._current.internals.memory.front)
        self._current.internals.windows.expect(
            self._current.internals.windows.expects
        )  # with its own split of epsilon, as all others
        self._makes.another(
            self._current
        ).forget()  # whatever is wrong with the factory, it is now that it is told
        self._start = _checked(clock())
        self._end = self._grid.around(self._start)[1]
        self._resumed = False

    @property
    def current(self) -> S:
        """The statistic of the current window; asking it for `state()` is an intrusion."""
        return self._current

    @property
    def grid(self) -> Grid:
        """The grid of starts and ends of windows."""
        return self._grid

    @property
    def began(self) -> datetime:
        """The start of counting of the current window."""
        return _utc(self._start)

    @property
    def ends(self) -> datetime:
        """The end of the current window."""
        return _utc(self._end)

    @property
    def is_complete(self) -> bool:
        """Whether the current window was counted from its start on, by one process."""
        return self._grid.around(self._start)[0] == self._start and not self._resumed

    @property
    def due(self) -> bool:
        """Whether `advance` would close the current window."""
        return self._grid.passed(self._start, self._end, self._clock()) is not None

    @property
    def releases(self) -> Windows:
        """The releases of ended windows, oldest first, without those already taken."""
        return Windows(self._releases, lasting=self._current.internals.windows.lasting)

    def release(self) -> Windows:
        """Hand out what the windows that have ended released, and keep it no longer.

        Each window releases once, at its end; this only fetches what it did.
        """
        self.advance()
        return self.take()

    def take(self) -> Windows:
        """The same without a look at the clock."""
        taken = Windows(self._releases, lasting=self._current.internals.windows.lasting)
        self._releases = []
        return taken

    def update(self, *columns: Any, **named: Any) -> None:
        """Take one batch into the window of this moment.

        Args:
            columns: what the statistic's `update` takes.
            named: the same.

        Raises:
            InputError: as for the statistic; nothing of the batch is counted.
        """
        self.advance()
        self._current.update(*columns, **named)

    def advance(self) -> None:
        """Close the windows that have passed; their answers join `releases`."""
        while self.due:
            self.advance_once()

    def advance_once(self) -> None:
        """Close the first window that has passed, if one has."""
        if passed := self._grid.passed(self._start, self._end, self._clock()):
            self._close(*passed)

    def announce_intrusion(self) -> None:
        """Announce to the window of this moment that somebody has seen its state.

        A window that ended before needs none: its state was wiped, and nothing is left of it to be
        seen once more.

        Raises:
            BudgetError: no further announced intrusion was planned. Nothing was changed.
        """
        self.advance()
        self._current.announce_intrusion()

    def close(self) -> None:
        """Close the current window before its time, as at the end of the stream.

        What comes later in the same window is counted anew: a user of both parts loses as in two
        windows.
        """
        self.advance()
        end = max(self._clock(), self._start)  # the clock may have been set back
        self._close(end, end)

    def loss(self, windows: int, *, seen: int | None = None) -> Fraction:
        """The most that a user of so many windows loses, in nats, at `delta(windows)`.

        Whoever opens what `contribute` gave for a window has seen its state.

        Args:
            windows: in how many of them the user appears.
            seen: of how many of these somebody sees the state; None for one where a look is
                covered, and for none where it is not.

        Raises:
            PlanError: some are seen, and no look is covered.
        """
        return self._current.guarantee.over(windows, seen=seen).epsilon

    def delta(self, windows: int) -> Fraction:
        """The delta of that loss, whether states are seen or not; 0 where no window has one.

        Args:
            windows: in how many of them the user appears.
        """
        return self._current.guarantee.over(windows).delta

    def _close(self, end: float, start: float) -> None:
        """Release at `end`, and wipe, whatever happens; the next window begins at `start`."""
        goes_on = (
            self._current.internals.windows.lasting
            and self._current.releases + 1 < self._current.internals.releasing.planned
        )
        fresh = (
            None if goes_on else self._makes.another(self._current)
        )  # if that fails, nothing has ended
        began = self._start
        complete = self._grid.around(began) == (began, end) and not self._resumed
        answer, expects = None, self._current.internals.windows.expects
        try:
            with suppress(LostReleaseError):  # of a release of the caller's; the window has ended
                answer = self._release(self._current)
            found = self._answers(answer) if complete and expects else None
            if isinstance(found, Answer):  # a contribution is none, say
                expects = self._current.internals.windows.after(found.answers())
        finally:
            self._resumed = False
            self._start, self._end = start, self._grid.around(start)[1]
            if fresh is not None:
                self._begin(fresh, expects)
        self._releases.append(Window(_utc(began), _utc(end), complete, answer))

    def _begin(self, fresh: S, expects: Sequence[LearnedRange]) -> None:
        """Wipe the statistic of the window that has ended, and count on with the next one."""
        self._current.forget()
        self._current = fresh
        try:
            fresh.internals.windows.expect(expects)
        except PlanError:  # of so few counters, say: it begins anew, as the first one did
            fresh.internals.windows.expect(fresh.internals.windows.expects)

    def state(self) -> bytes:
        """Return the bytes an intruder would get: start, plan and state of the current window."""
        ranges = b"".join(
            _RANGE.pack(*expected) for expected in self._current.internals.windows.expects
        )
        return self._layout.packed(_OWN.pack(self._start) + ranges)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume within the window of an earlier state; see `Statistic.resume`.

        If that window has passed, the next `advance` closes it. Answers in `releases` are not part
        of a state.
        """
        self.check_state(state, released=released, announced=announced)
        start, ranges, inner = _Saved.read(state, self._layout, self._grid)
        if ranges != self._current.internals.windows.expects:
            self._current.internals.windows.expect(ranges)
        self._current.resume(inner, released=released, announced=announced)
        self._start, self._end, self._resumed = start, self._grid.around(start)[1], True
        if (
            self._current.internals.windows.lasting
            and self._current.releases == self._current.internals.releasing.planned
        ):
            self._begin(self._makes.another(self._current), ())

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        _, ranges, inner = _Saved.read(state, self._layout, self._grid)
        if ranges == self._current.internals.windows.expects:
            self._current.internals.memory.check_state(
                inner, released=released, announced=announced
            )
            return
        self._current.internals.windows.expect(())  # changes nothing, but only a new one can go on
        fresh = self._makes.another(self._current)
        try:
            _expect(fresh, ranges)
            fresh.internals.memory.check_state(inner, released=released, announced=announced)
        finally:
            fresh.forget()

    def began_in(self, state: bytes) -> datetime:
        """Return the start of counting of the window of an earlier state, in UTC.

        Raises:
            InputError: as for `resume`.
        """
        return _utc(_Saved.read(state, self._layout, self._grid).start)

    @property
    def _layout(self) -> Container:
        """The layout of the state."""
        public = {"every": self._grid.every, "zone": self._grid.zone}
        own_bytes = _OWN.size + _RANGE.size * len(self._current.internals.windows.expects)
        return Container("Windowed", public, own_bytes, [self._current.internals.memory])

    def __repr__(self) -> str:
        return f"<Windowed every={self._grid.every} s in {self._grid.zone} of {self._current!r}>"


class _Saved(NamedTuple):
    """The parts of an earlier state.

    Args:
        start: of its window.
        ranges: what its statistic expects.
        inner: the state of its statistic.
    """

    start: float
    ranges: tuple[LearnedRange, ...]
    inner: bytes

    @classmethod
    def read(cls, state: bytes, layout: Container, grid: Grid) -> _Saved:
        """Return the parts of a state.

        Raises:
            InputError: it is damaged, or of another layout.
        """
        own, (inner,) = layout.parts(state)
        (start,) = _OWN.unpack_from(own)
        if not 0 <= start <= _LAST_MOMENT - grid.every:
            message = "the state is damaged: no window begins then"
            raise InputError(message)
        ranges = tuple(map(LearnedRange, _RANGE.iter_unpack(own[_OWN.size :])))
        if not all(1 <= low <= high for low, high in ranges):
            raise InputError(_DAMAGED)
        return cls(start, ranges, inner)


class _Maker(Generic[S]):
    """Makes the same statistic for each window.

    Args:
        factory: makes one.
        front: the public parameters of each.
    """

    __slots__ = ("_factory", "_front")

    def __init__(self, factory: Callable[[], S], front: bytes) -> None:
        self._factory, self._front = factory, front

    def another(self, current: S) -> S:
        """Return a statistic for the next window, as private as the current one.

        Raises:
            PlanError: the factory made something else, or one that has counted.
        """
        fresh = self._factory()
        check_unused([fresh])
        if fresh.ledger is current.ledger:
            message = "each window needs a ledger of its own: let the factory make the ledger too"
            raise PlanError(message)
        if fresh.internals.memory.front != self._front:
            message = "the factory must make the same statistic for each window"
            raise PlanError(message)
        return fresh


def _made_by(factory: Callable[[], S]) -> S:
    made: object = factory()
    if not isinstance(made, Private):
        message = "the factory of a Windowed must make a statistic, several Together, or groups"
        raise PlanError(message)
    check_unused([made])
    return cast("S", made)


def _expect(fresh: Private, ranges: tuple[LearnedRange, ...]) -> None:
    """Plan a program as a state says."""
    try:
        fresh.internals.windows.expect(ranges)
    except PlanError:
        raise InputError(_DAMAGED) from None


def _seconds(every: timedelta | int) -> int:
    """The length of a window."""
    whole = isinstance(every, timedelta) and not every % timedelta(seconds=1)
    seconds = every // timedelta(seconds=1) if isinstance(every, timedelta) and whole else every
    if isinstance(every, int) and _LONGEST_NUMBER < every <= LONGEST:
        message = (
            f"every is {every:,} seconds, {every // 86_400:,} days: if that is meant, say "
            f"timedelta(seconds={every}); if milliseconds are, divide by 1,000"
        )
        raise PlanError(message)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= LONGEST:
        message = "every must be a timedelta or a number, of whole seconds from 1 to 3,660 days"
        raise PlanError(message)
    return seconds


def _utc(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def _checked(moment: float) -> float:
    """Refuse a clock of another unit."""
    if not 0 <= moment <= _LAST_MOMENT - LONGEST:
        message = "clock must give seconds since 1970, as time.time does, not milliseconds"
        raise PlanError(message)
    return moment
