"""When windows begin and end: the grid of a length, on the clock of a time zone.

All of it follows from the length, the name of the zone, the public database of zones and the clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from panprivacy.errors import PlanError

_MONDAY = int(datetime(1970, 1, 5, tzinfo=UTC).timestamp())
_HOUR = 3_600
_LONGEST_NAME = 100
_MOST_PASSED = 1_000
"""More windows than that do not pass: the clock was set."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Windows of a length, one after another without a gap.

    Windows longer than an hour are cut where the clock of the zone first shows a multiple of the
    length, or skips it: days begin at midnight and weeks on Mondays, so a day may have 23 or 25
    hours. Windows of an hour or less are all of that length, and begin where that clock shows a
    multiple of it; where it is set by something else than a multiple, one of them is cut short.

    Args:
        every: the length in seconds, of days of 24 hours.
        zone: name of the time zone.
        origin: from where multiples are counted, as seconds from 1970 to what the clock of the
            zone shows. A Monday, unless told.

    Raises:
        PlanError: there is no such zone.
    """

    every: int
    zone: str = "UTC"
    origin: int = _MONDAY

    def __post_init__(self) -> None:
        time_zone(self.zone)

    def around(self, moment: float) -> tuple[int, int]:
        """The start of the window that holds a moment, and its end, in seconds since 1970."""
        second = math.floor(moment)
        return self._short(second) if self.every <= _HOUR else self._long(second)

    def passed(self, start: float, end: float, now: float) -> tuple[float, float] | None:
        """Return the bounds of a window that has passed by the clock, which may have been set.

        A clock that was set back by more than a window ends the current one where it began; one
        that was set forward leaves windows out.

        Args:
            start: when it began to be counted.
            end: when it ends, on the grid.
            now: what the clock says.

        Returns:
            When it ended, and when the next one begins; None if it has not ended.
        """
        if now < start - self.every:
            return start, now
        if now < end:
            return None
        set_forward = now - end > _MOST_PASSED * self.every
        return end, float(self.around(now)[0]) if set_forward else end

    def within(self, start: float, every: int) -> Grid:
        """The grid of another length in the same zone, counted from a moment."""
        return Grid(every, self.zone, self._local_second(math.floor(start)))

    def _long(self, second: int) -> tuple[int, int]:
        first = self.origin + (self._local_second(second) - self.origin) // self.every * self.every
        start, following = self._reached(first), first + self.every
        while (end := self._reached(following)) <= second:  # the clock was set back, or skips it
            start, following = end, following + self.every
        return start, end

    def _short(self, second: int) -> tuple[int, int]:
        offset = self._offset(second)
        start = second - (second + offset - self.origin) % self.every
        end = start + self.every
        if (self._offset(start) - offset) % self.every:
            start = _first(start, second, lambda at: self._offset(at) == offset)
        if (self._offset(end) - offset) % self.every:
            end = _first(second, end, lambda at: self._offset(at) != offset)
        return start, end

    def _reached(self, shown: int) -> int:
        """Return the first time at which the clock of the zone shows this value or more."""
        naive = datetime.fromtimestamp(shown, UTC).replace(tzinfo=time_zone(self.zone))
        early, late = sorted(shown - _seconds_of(naive.replace(fold=fold)) for fold in (0, 1))
        if self._local_second(early) >= shown:
            return early
        return _first(early, late, lambda at: self._local_second(at) >= shown)  # it is skipped

    def _local_second(self, second: int) -> int:
        """Return the value of the clock of the zone at a time."""
        return second + self._offset(second)

    def _offset(self, second: int) -> int:
        return _seconds_of(datetime.fromtimestamp(second, time_zone(self.zone)))


def time_zone(name: str) -> tzinfo:
    """The time zone of a name; UTC needs no database.

    Raises:
        PlanError: there is none.
    """
    if name == "UTC":
        return UTC
    if isinstance(name, str) and name in _names():
        return ZoneInfo(name)
    zones = sorted(_names())
    likely = {zone.rpartition("/")[2].casefold(): zone for zone in zones}
    likely |= {zone.casefold(): zone for zone in zones}
    close = get_close_matches(str(name)[:_LONGEST_NAME].casefold(), likely, 1)
    message = "zone must be the name of a time zone, such as Europe/Paris or UTC"
    raise PlanError(f"{message}; did you mean {likely[close[0]]}?" if close else message)


@cache
def _names() -> set[str]:
    """The zones that are the same on all machines."""
    return available_timezones() - {"localtime"}


def _first(early: int, late: int, holds: Callable[[int], bool]) -> int:
    """The first second from which on something holds that holds at the late one."""
    return early + bisect_left(range(early, late + 1), True, key=holds)  # noqa: FBT003


def _seconds_of(moment: datetime) -> int:
    """Return the offset of a clock of its zone from UTC."""
    return (moment.utcoffset() or timedelta()) // timedelta(seconds=1)
