"""What several commands read from their arguments."""

from __future__ import annotations

from enum import StrEnum

from panprivacy.errors import PlanError

Expected = int | tuple[int, int]


class Statistics(StrEnum):
    """The statistics that the command line offers."""

    distinct = "distinct"
    density = "density"


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


def _whole(text: str) -> int:
    number = float(text)
    if number != int(number):
        message = "not a whole number"
        raise ValueError(message)
    return int(text) if "e" not in text.lower() and "." not in text else int(number)
