"""Shares of what is counted, of which quantiles are asked."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal

from panprivacy.errors import PlanError

MOST_QUANTILES = 1_000


def read_shares(name: str, given: object) -> tuple[float, ...]:
    """Return one share, or several, each from 0 to 1.

    Raises:
        PlanError: something is no such number.
    """
    message = f"{name}=: name a share from 0 to 1, or several, such as 0.5,0.95"
    if isinstance(given, str):
        parts: list[object] = list(given.split(","))
    elif isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
        parts = list(given)
    else:
        parts = [given]
    found = []
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, str | numbers.Real | Decimal):
            raise PlanError(message)
        try:
            found.append(float(part))
        except (ValueError, OverflowError):
            raise PlanError(message) from None
    if len(found) > MOST_QUANTILES or not all(0 <= one <= 1 for one in found):
        raise PlanError(message)
    return tuple(dict.fromkeys(found))
