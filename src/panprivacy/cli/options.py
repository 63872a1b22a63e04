"""What several commands read from their arguments."""

from __future__ import annotations

from enum import StrEnum

from panprivacy.errors import PlanError

Expected = int | tuple[int, int]

_MOST_STATES = 100_000


class Statistics(StrEnum):
    """The statistics that the command line offers."""

    distinct = "distinct"
    density = "density"
    incidence = "incidence"


def parse_expected(text: str) -> Expected:
    """Read `N` or `LOW:HIGH`; 1e6 and 1_000_000 are whole numbers too.

    Raises:
        PlanError: it is neither.
    """
    try:
        ends = [_whole(end) for end in text.split(":")]
    except (ValueError, OverflowError):
        ends = []
    if len(ends) == 1:
        return ends[0]
    if len(ends) == 2:
        return ends[0], ends[1]
    message = "--expected must be a number of users, or LOW:HIGH, such as 1000:1000000"
    raise PlanError(message)


def parse_states(option: str, text: str | None) -> tuple[int, ...]:
    """Read `3`, `0,1,5` or `0:8`, which includes 8.

    Raises:
        PlanError: it is none of them, or names too many.
    """
    states: list[int] = []
    try:
        for part in text.split(",") if text is not None else ():
            low, colon, high = part.partition(":")
            last = int(high) if colon else int(low)
            states += range(int(low), min(last, int(low) + _MOST_STATES) + 1)
            if last < int(low):
                raise ValueError  # noqa: TRY301 - told below
    except ValueError:
        message = f"{option} must name states, such as 3, or 0,1,5, or 0:8 for 0 to 8"
        raise PlanError(message) from None
    if len(states) > _MOST_STATES:
        message = f"{option} names more than {_MOST_STATES:,} states; without it all are shown"
        raise PlanError(message)
    return tuple(states)


def parse_whole(text: str) -> int:
    """Read a whole number; 1e6 and 1_000_000 are some too.

    Raises:
        ValueError: it is none.
    """
    try:
        return _whole(text)
    except (ValueError, OverflowError):
        message = f"{text!r} is not a whole number"
        raise ValueError(message) from None


def _whole(text: str) -> int:
    number = float(text)
    if number != int(number):
        message = "not a whole number"
        raise ValueError(message)
    return int(text) if "e" not in text.lower() and "." not in text else int(number)
