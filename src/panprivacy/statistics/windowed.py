"""How many in each hour, day or week? A fresh statistic for each window of the clock.

Whoever seizes the machine finds the state of the current window alone: earlier ones were wiped as
they ended, and live on in what they released. So a user who comes every day loses the whole epsilon
in a window that is seen, and far less in the others; docs/guarantees/windows.md has the proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from panprivacy._validate import whole_number
from panprivacy.errors import PlanError
from panprivacy.guarantee import Guarantee, Ledger

_ORIGIN = datetime(1970, 1, 5, tzinfo=UTC).timestamp()
"""A Monday, so that windows of a week begin on Mondays; days and hours begin as UTC has them."""
SHORTEST, LONGEST = 1, 3_660 * 86_400
"""Seconds of a window."""
_MOST_PASSED = 1_000
"""More windows than that do not pass: the clock was set."""


class Windowable(Protocol):
    """What can be made anew for each window: any statistic, or several."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user of one window."""

    @property
    def unseen(self) -> Fraction:
        """The loss if nobody ever sees the state."""

    @property
    def ledger(self) -> Ledger:
        """The budget of one window."""

    @property
    def update(self) -> Callable[..., None]:
        """Takes in one batch."""

    def forget(self) -> None:
        """Wipe the state."""


S = TypeVar("S", bound=Windowable)


@dataclass(frozen=True, slots=True)
class Window:
    """What came of one window; it is public.

    Args:
        start: when it began, in UTC; the first one begins when counting does.
        end: when it ended.
        release: what was released then.
    """

    start: datetime
    end: datetime
    release: Any


class Windowed(Generic[S]):
    """A statistic that starts afresh in each window of the clock, and keeps what it released.

    >>> from datetime import timedelta
    >>> import panprivacy as pp
    >>> def visitors():
    ...     return pp.DistinctCount(epsilon=1, expected=(100, 100_000))
    >>> daily = pp.Windowed(visitors, every=timedelta(days=1))
    >>> daily.update(["ada", "grace", "ada"])
    >>> today = daily.close()
    >>> [window.release.confidence for window in daily.releases]
    [0.95]

    Windows are cut on a fixed grid (of UTC, weeks on Mondays) by the clock alone, and each passed
    window releases, also one without updates. `advance` closes them; `update` calls it first, and
    a program that may be idle calls it on a timer. A clock that is set back prolongs the current
    window; if more than 1,000 windows seem to have passed at once, those between are left out.

    Guarantee: within a window, that of the statistic. Over several windows the loss of a user is
    at most `loss(windows, seen)`. [tests/exact/test_windows.py]

    Args:
        factory: makes the statistic of one window, with a ledger of its own.
        every: length of a window, or its seconds, from 1 second to ten years.
        release: what is released at the end of a window; None for `release()`.
        clock: seconds since 1970 in UTC.

    Raises:
        PlanError: a length out of range, or a factory whose statistics share a ledger.
    """

    __slots__ = ("_clock", "_current", "_end", "_every", "_factory", "_release", "_releases",
                 "_start")  # fmt: skip

    def __init__(
        self,
        factory: Callable[[], S],
        *,
        every: timedelta | float,
        release: Callable[[S], Any] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._every = _seconds(every)
        self._factory, self._clock = factory, clock
        self._release = release or (lambda statistic: statistic.release())  # type: ignore[attr-defined]
        self._releases: list[Window] = []
        self._current = factory()
        self._start = clock()
        self._end = self._end_of(self._start)

    @property
    def current(self) -> S:
        """The statistic of the current window; asking it for `state()` is an intrusion."""
        return self._current

    @property
    def ends(self) -> datetime:
        """When the current window ends."""
        return _utc(self._end)

    @property
    def releases(self) -> tuple[Window, ...]:
        """What all windows that have ended released."""
        return tuple(self._releases)

    def update(self, *columns: Any, **named: Any) -> None:
        """Take one batch into the window of this moment.

        Args:
            columns: what the statistic's `update` takes.
            named: the same.

        Raises:
            InputError: as for the statistic; no update is lost, none is counted.
        """
        self.advance()
        self._current.update(*columns, **named)

    def advance(self) -> list[Window]:
        """Close the windows that have passed.

        Returns:
            What they released, oldest first.
        """
        now, closed = self._clock(), []
        while now >= self._end:
            closed.append(self._close(self._end))
            if now - self._end > _MOST_PASSED * self._every:
                self._start = self._end_of(now) - self._every
                self._end = self._end_of(now)
        return closed

    def close(self) -> Window:
        """Close the current window before its time, as at the end of the stream.

        Returns:
            What it released. What comes later in the same window is counted anew: a user of both
            parts loses as in two windows.
        """
        self.advance()
        return self._close(max(self._clock(), self._start))  # the clock may have been set back

    def loss(self, windows: int, *, seen: int = 1) -> Fraction:
        """The most that a user of so many windows loses, in nats.

        Args:
            windows: in how many of them the user appears.
            seen: of how many of these somebody sees the state.
        """
        count = whole_number(1, 1_000_000_000, windows=windows)
        open_ones = whole_number(0, count, seen=seen)
        epsilon = self._current.guarantee.epsilon
        return open_ones * epsilon + (count - open_ones) * self._current.unseen

    def _close(self, end: float) -> Window:
        """Release, and wipe; a new statistic takes over."""
        window = Window(_utc(self._start), _utc(end), self._release(self._current))
        self._current.forget()
        self._releases.append(window)
        fresh = self._factory()
        if fresh.ledger is self._current.ledger:
            message = "each window needs a ledger of its own: let the factory make the ledger too"
            raise PlanError(message)
        self._current = fresh
        self._start = end
        self._end = self._end_of(self._start)
        return window

    def _end_of(self, moment: float) -> float:
        """The end of the window that holds a moment."""
        passed = (moment - _ORIGIN) // self._every
        return _ORIGIN + (passed + 1) * self._every

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        message = "a Windowed cannot be pickled or copied: a plain copy is a second intrusion"
        raise TypeError(message)


def _seconds(every: timedelta | float) -> float:
    """The length of a window."""
    seconds = every.total_seconds() if isinstance(every, timedelta) else every
    if not isinstance(seconds, (int, float)) or not SHORTEST <= seconds <= LONGEST:
        message = "every must be a timedelta, or a number of seconds, from 1 second to 3,660 days"
        raise PlanError(message)
    return float(seconds)


def _utc(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
