"""Parsers of options and configurations: whole numbers, ranges, states, durations."""

from __future__ import annotations

from panprivacy.errors import PlanError

Users = int | tuple[int, int]
"""A number of users, or the lowest and the highest that are expected."""

_MOST_STATES = 100_000
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def parse_integer(text: str) -> int:
    """Read a whole number; 1e6 and 1_000_000 are some too.

    Raises:
        ValueError: it is none.
    """
    try:
        return _integer(text)
    except (ValueError, OverflowError):
        message = f"{text!r} is not a whole number"
        raise ValueError(message) from None


def _integer(text: str) -> int:
    number = float(text)
    if number != int(number):
        message = "not a whole number"
        raise ValueError(message)
    return int(text) if "e" not in text.lower() and "." not in text else int(number)


def parse_users(text: str) -> Users:
    """Read `N` or `LOW:HIGH`; 1e6 and 1_000_000 are whole numbers too.

    Raises:
        PlanError: it is neither.
    """
    try:
        ends = [_integer(end) for end in text.split(":")]
    except (ValueError, OverflowError):
        ends = []
    if len(ends) == 1:
        return ends[0]
    if len(ends) == 2:
        return ends[0], ends[1]
    message = "expected must be a number of users, or LOW:HIGH, such as 1000:1000000"
    raise PlanError(message)


def parse_states(name: str, text: str) -> tuple[int, ...]:
    """Read `3`, `0,1,5` or `0:8`, which includes 8.

    Raises:
        PlanError: it is none of them, or names too many.
    """
    states: list[int] = []
    try:
        for part in text.split(","):
            low, colon, high = part.partition(":")
            last = int(high) if colon else int(low)
            states += range(int(low), min(last, int(low) + _MOST_STATES) + 1)
            if last < int(low):
                raise ValueError  # noqa: TRY301 - told below
    except ValueError:
        message = f"{name} must name states, such as 3, or 0,1,5, or 0:8 for 0 to 8"
        raise PlanError(message) from None
    if len(states) > _MOST_STATES:
        message = f"{name} must name at most {_MOST_STATES:,} states; without it all are shown"
        raise PlanError(message)
    return tuple(states)


def parse_powers(name: str, text: str) -> tuple[tuple[int, int], ...]:
    """Read `10**2` or `10**2,5**3`: where states are cropped, and the power that is summed.

    Raises:
        PlanError: it is something else.
    """
    try:
        pairs = [part.split("**") for part in text.split(",")]
        return tuple((int(tau), int(power)) for tau, power in pairs)
    except ValueError:
        message = f"{name} must name powers, such as 10**2, or 10**2,5**3"
        raise PlanError(message) from None


def parse_duration(text: str) -> float:
    """Read seconds from `30s`, `15m`, `12h`, `1d` or `1w`.

    Raises:
        ValueError: it is none.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _SECONDS or not number.isdecimal() or not int(number):
        message = f"{text!r} is not a length of time, such as 30s, 15m, 12h, 1d or 1w"
        raise ValueError(message)
    return float(int(number) * _SECONDS[unit])


def format_duration(seconds: int) -> str:
    """Return a length of time as `parse_duration` reads it, in the longest unit that fits."""
    unit = next(unit for unit in reversed(_SECONDS) if seconds % _SECONDS[unit] == 0)
    return f"{seconds // _SECONDS[unit]}{unit}"
