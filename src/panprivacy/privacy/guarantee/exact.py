"""Exact arithmetic: bounds of irrational numbers, and printed numbers.

Everything is a `Fraction`. Irrational numbers enter only through `exp_bounds` and `log_above`,
whose names and docstrings state the side of the bound. Bounds are printed by `format_rounded_up`
for people and by `float_above` for programs, which round them up.
"""

from __future__ import annotations

import functools
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

_DIGITS = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999)
_ULP = Fraction(1, 10**50)
LARGEST_EXPONENT = Fraction(10_000)
RANDOMISATION_BITS = 64


def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Return rational numbers below and above `e**exponent`, within a relative 1e-50 of it.

    `decimal` rounds exp correctly at 60 digits; the division before it adds an error of
    `|exponent| * 1e-59`, so that 1e-50 covers both for every exponent up to 10,000.
    """
    if abs(exponent) > LARGEST_EXPONENT:
        message = f"the exponent must lie within ±{int(LARGEST_EXPONENT):,}"
        raise ValueError(message)
    numerator, denominator = (_DIGITS.create_decimal(part) for part in exponent.as_integer_ratio())
    near = Fraction(_DIGITS.exp(_DIGITS.divide(numerator, denominator)))
    return near * (1 - _ULP), near * (1 + _ULP)


@functools.lru_cache(maxsize=1024)
def randomised_response(epsilon: Fraction) -> Fraction:
    """Return the largest `p` on a grid of 2**-64 with `p/(1-p) <= e**epsilon`.

    It is `(1+t)/2` with `t = tanh(epsilon/2)`, rounded so that the loss never exceeds epsilon.
    """
    exponent = min(epsilon, LARGEST_EXPONENT)
    below, _ = exp_bounds(exponent)
    grid = 1 << RANDOMISATION_BITS
    complement = -(-grid // (1 + below))  # ceiling of grid * 1/(1 + e^epsilon)
    return max(1 - Fraction(complement, grid), Fraction(1, 2))


def log_above(ratio: Fraction) -> Fraction:
    """Return a number above the logarithm, within 1e-50 and a relative 1e-50 of it."""
    parts = (_DIGITS.create_decimal(part) for part in ratio.as_integer_ratio())
    near = Fraction(_DIGITS.ln(_DIGITS.divide(*parts)))
    return near + (abs(near) + 1) * _ULP


def rounded_up(number: Fraction, digits: int) -> Decimal:
    """Return `digits` digits of a number, rounded up: a printed bound stays a bound."""
    return rounded(number, digits, ROUND_CEILING)


def rounded(number: Fraction, digits: int, direction: str) -> Decimal:
    """Return `digits` digits of a number, rounded in one of `decimal`'s directions."""
    rounding = Context(prec=digits, rounding=direction, Emax=999_999, Emin=-999_999)
    return rounding.divide(*map(Decimal, number.as_integer_ratio()))


_PLAIN = Decimal("1e-6"), Decimal("1e15")
"""Range of numbers that are shown without an exponent."""


def format_rounded_up(number: Fraction, digits: int = 6) -> str:
    """Return a bound for people, in `digits` digits, rounded up.

    >>> [format_rounded_up(Fraction(1, number)) for number in (1, 3, 10**9)]
    ['1', '0.333334', '1e-9']
    """
    return _written(rounded_up(number, digits))


def format_rounded_down(number: Fraction, digits: int = 6) -> str:
    """Return the rest of a budget for people, in `digits` digits, rounded down."""
    return _written(rounded(number, digits, ROUND_FLOOR))


def _written(number: Decimal) -> str:
    (low, high), short = _PLAIN, number.normalize()
    return f"{short:,f}" if not number or low <= number < high else f"{short:e}"


def float_above(number: Fraction) -> float:
    """Return the smallest float that is not below a number; infinity beyond the largest."""
    try:
        near = float(number)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


def float_below(number: Fraction) -> float:
    """Return the largest float that is not above a number of at least 0."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, 0)


def number_above(number: Fraction) -> float | str:
    """Return a bound for JSON, rounded up; "inf" if no float is as large."""
    near = float_above(number)
    return near if math.isfinite(near) else "inf"
