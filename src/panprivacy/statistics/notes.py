"""Notes on answers that need care, and numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_MOST_NAMED = 5

BELOW = "users with a sum of deltas below 0"
"""Users that no table without room for them counts right."""
ROOM = "say below=, how low they go, or 0 for none"
"""What to do about them."""

USELESS = 10
"""Beyond so many times what is measured, an error says nothing."""

_FAR = 2
"""An interval that lies by such a factor outside of the planned range is said to: nearer by, errors
are hardly larger than planned."""


def note_on(
    low: float,
    high: float,
    planned: tuple[float, float] = (0.0, math.inf),
    unit: str = "users",
    caveat: str | None = None,
    value: float | None = None,
) -> str | None:
    """Return what needs care about an answer, a sentence for each thing; None if nothing does.

    Guarantee: it costs no privacy. It is a function of an answer that is released and of the
    public plan alone, so whoever reads the answer could write it.

    Args:
        low: lower end of the interval.
        high: its upper end; it may be infinite.
        planned: the lowest and the highest answer that the plan is made for.
        unit: of all of these.
        caveat: what all answers of the plan say.
        value: the estimate, which is cut to the interval; None for any value of the interval.
    """
    notes = _on_range(low, high, planned, unit), _on_noise(low, high, value), caveat
    return "; ".join(filter(None, notes)) or None


def _on_range(low: float, high: float, planned: tuple[float, float], unit: str) -> str | None:
    """Return whether the interval lies outside of the range that was planned for."""
    least, most = planned
    ends = [format_number(end, unit) for end in planned]
    told = f"range of {' to '.join(ends)}" if ends[0] != ends[1] else f"number of {ends[0]}"
    if _FAR * high < least:
        return f"below the planned {told}: the error is a larger share of the answer"
    endless = math.isinf(high) and math.isfinite(most) and low > 0
    if low > _FAR * most or endless:
        return f"beyond the planned {told}: plan for more, next time"
    return None


def _on_noise(low: float, high: float, value: float | None) -> str | None:
    """Return whether an answer is mostly noise: its interval holds 0, or is wider than it."""
    if low == high:
        return None
    if low <= 0 <= high:
        return f"{_NOISE} reaches {'down' if high > -low else 'up'} to 0"
    if value is not None and high - low > abs(min(max(value, low), high)):
        return f"{_NOISE} {'has no end' if math.isinf(high - low) else 'is wider than the answer'}"
    return None


_NOISE = "more noise than signal: the interval"
_WITH_DIGITS = "share", "events per", "mean"
_VALUE = "value"
"""The unit of answers in the unit of the data, which may be small."""
_SIGNIFICANT, _MOST_DIGITS = 4, 12


def format_number(value: float, unit: str) -> str:
    """A number for people: whole where it counts users, with digits where it is a share or mean.

    A value of the data has at least four significant digits.
    """
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    digits = 4 if unit.startswith(_WITH_DIGITS) else 0
    if unit == _VALUE and value:
        digits = min(max(_SIGNIFICANT - 1 - math.floor(math.log10(abs(value))), 0), _MOST_DIGITS)
    return f"{round(value, digits) + 0.0:,.{digits}f}"  # what rounds to -0 is 0


def names_by_note(answers: Mapping[T, Any]) -> dict[str, list[T]]:
    """Return the names of the answers of each note.

    Args:
        answers: answers by name; None for one that is lost.
    """
    found: dict[str, list[T]] = {}
    for name, one in answers.items():
        if one is not None and one.note is not None:
            found.setdefault(one.note, []).append(name)
    return found


def some_of(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def percent(margin: float) -> str:
    """Return a margin, as a share, in percent for people.

    >>> percent(0.0567), percent(0.567), percent(12)
    ('±5.7 %', '±57 %', 'over 1,000 %')
    """
    percents = 100 * margin
    if margin > USELESS:
        return f"over {100 * USELESS:,} %"
    return f"±{percents:.0f} %" if percents >= 10 else f"±{percents:.2g} %"
