"""Amounts, such as seconds or cents, as whole deltas: what each user adds, in units.

An amount is divided by the unit, and rounded up with the probability of its fraction: so what a
user has in all is right on average, however small the amounts are. The coins of the rounding are
fresh for each row, and independent of the noise.

Guarantee: the guarantee of a table holds whatever the deltas of a user are, so it holds given any
outcome of the rounding, and therefore on average. [docs/guarantees/modular.md#amounts]
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError, PlanError
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.cells.threshold import rounded_to
from panprivacy.tables.numeric import read_values

_PARTS = 1 << 20
"""Of a unit: amounts are told to a millionth of it before they are rounded."""

_MOST_UNIT = 1e12


def read_unit(name: str, value: object) -> float:
    """Return a unit of amounts.

    Raises:
        PlanError: it is no number above 0, or very large or small.
    """
    found = math.nan
    if not isinstance(value, bool) and isinstance(value, str | numbers.Real | Decimal):
        try:
            found = float(Fraction(value)) if isinstance(value, str) else float(value)
        except (ValueError, OverflowError, ZeroDivisionError):
            found = math.nan
    if not 1 / _MOST_UNIT <= found <= _MOST_UNIT:
        message = f"{name} must be a number above 0, such as 60 for minutes of seconds"
        raise PlanError(message)
    return found


def unit_of(plan: Any) -> float | None:
    """Return the unit of the amounts that a plan reads; None if it reads whole deltas."""
    unit: float | None = getattr(plan, "amount", None)
    return unit


def in_units(unit: float) -> str:
    """Return how answers in a unit are called."""
    return f"units of {unit:.12g}"


def whole_units(
    amounts: Any, rows: int, unit: float, bound: int, *, signed: bool, coins: Coins
) -> Deltas:
    """Return the delta of each row: its amount in units, rounded by fresh coins.

    Args:
        amounts: whatever `read_values` takes.
        rows: how many there must be.
        unit: what an amount is divided by.
        bound: the largest sum of a user's deltas, in units.
        signed: whether amounts may be below 0.
        coins: source of the rounding.

    Raises:
        InputError: a null, NaN, no number, an amount below 0 or beyond the bound. The message names
            the row, and neither the id nor the amount.
    """
    read = read_values(amounts)
    if read.shape != (rows,):
        message = f"there must be one amount for each id: {rows:,} ids, {len(read):,} amounts"
        raise InputError(message)
    refuse_deltas(np.isnan(read), "the amount is not a number")
    if not signed:
        refuse_deltas(read < 0, "the amount is below 0: leave such rows out, or count with signed=")
    scaled: NDArray[np.float64] = read / unit
    most = 2 * bound if signed else bound
    refuse_deltas(
        np.abs(scaled) > most,
        f"the amount is beyond {most:,} units of {unit:.12g}, as the bound says: plan for larger "
        "ones with bound=",
    )
    parts = np.rint(scaled * _PARTS).astype(np.int64)
    deltas = rounded_to(parts, _PARTS, coins)
    wipe(scaled, parts)
    return deltas
