"""What options and configurations write as text: ranges, durations, prefixes, lists of states."""

from __future__ import annotations

from panprivacy.errors import PlanError
from panprivacy.sources import Prefixes

Expected = int | tuple[int, int]

_MOST_STATES = 100_000
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


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
    message = "expected must be a number of users, or LOW:HIGH, such as 1000:1000000"
    raise PlanError(message)


def parse_states(name: str, text: str | None) -> tuple[int, ...]:
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
        message = f"{name} must name states, such as 3, or 0,1,5, or 0:8 for 0 to 8"
        raise PlanError(message) from None
    if len(states) > _MOST_STATES:
        message = f"{name} must name at most {_MOST_STATES:,} states; without it all are shown"
        raise PlanError(message)
    return tuple(states)


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


def parse_prefixes(text: str) -> Prefixes:
    """Read `24:56`: how many bits of an IPv4 and of an IPv6 address to keep.

    Raises:
        ValueError: it is something else.
    """
    try:
        ipv4, ipv6 = map(int, text.split(":"))
        return Prefixes(ipv4, ipv6)
    except (ValueError, PlanError):
        message = f"{text!r} is not how many bits to keep of IPv4:IPv6, such as 24:56"
        raise ValueError(message) from None


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
