"""Notes on answers of set operations that are noise."""

from __future__ import annotations

import math

from panprivacy.tables.decoders.intervals import Measured

_SURE = 2
"""An estimate of fewer standard errors is noise."""
_CONTRADICTED = "levels contradict each other: are all tables whole, and of one addressing key?"
_NOISE = "more noise than signal"
FULL = "more users than the tables can tell apart: plan for more with expected="


def note_of(
    measured: Measured, low: float, high: float, most: float, *, contradicted: bool = False
) -> str | None:
    """Return what to beware of in an answer; None if nothing.

    Guarantee: it costs no privacy, as a function of a public answer.

    Args:
        measured: the estimate and its standard error.
        low: lower end of the interval.
        high: upper end.
        most: the largest possible answer; the lowest is 0.
        contradicted: whether levels of the tables contradict each other.
    """
    if contradicted:
        return _CONTRADICTED
    if low <= 0 and high >= most:
        return f"{_NOISE}: the interval covers all that is possible"
    if math.isinf(high):
        return f"{_NOISE}: the interval has no end"
    if measured.estimate < _SURE * measured.standard_error:
        return f"{_NOISE}: the estimate is within two standard errors of 0"
    return None
