"""Exponentials and logarithms of rational numbers, to sixty digits.

The audit has its own: it does not take over a number from the code that it checks.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Final

_PRECISION: Final = 60
_BITS: Final = 112
CLOSE: Final = Fraction(1, 10**30)
"""Largest difference of two numbers that count as equal."""


def exp(exponent: Fraction) -> Fraction:
    """Return a rational number within a relative 1e-58 of `e**exponent`."""
    with localcontext(prec=_PRECISION):
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


def short_exp(exponent: Fraction) -> Fraction:
    """Return a number of 112 bits over a power of two, within a relative 1e-33 of `e**exponent`.

    Its powers stay short, and exact: noise at distance k has it as a factor k times.
    """
    close = exp(exponent)
    places = _BITS - close.numerator.bit_length() + close.denominator.bit_length()
    return Fraction(round(close * Fraction(2) ** places), 1) / Fraction(2) ** places


def ln(ratio: Fraction | float) -> float:
    """Return the logarithm, of infinity too."""
    if not isinstance(ratio, Fraction):
        return math.log(ratio)
    with localcontext(prec=_PRECISION):
        return float((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())
