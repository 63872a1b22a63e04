"""Checks of arguments, one a function; the keyword that is passed becomes the message."""

from __future__ import annotations

import numbers
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from panprivacy.errors import PlanError

MOST_BYTES = 1 << 36
"""The largest table, 64 GiB: a slip of the hand is refused before any memory is touched."""

_MOST_DIGITS = 400
_MOST_BITS = 4_000
_RATIO = re.compile(r"\d{1,400}/\d{1,400}", re.ASCII)


def _single(named: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = named.items()
    return name, value


def positive_fraction(**named: object) -> Fraction:
    """Read a positive finite number exactly; a float means the decimal it prints as.

    >>> positive_fraction(epsilon=0.1)
    Fraction(1, 10)
    >>> positive_fraction(epsilon="1/3")
    Fraction(1, 3)
    """
    name, value = _single(named)
    message = f"{name} must be a positive finite number"
    if isinstance(value, bool) or not isinstance(value, (Fraction, str, Decimal, numbers.Real)):
        raise PlanError(message)
    try:
        if type(value) is Fraction:  # as most are, and read before
            fraction = _of_moderate_length(value)
        elif isinstance(value, str) and _RATIO.fullmatch(value):
            fraction = Fraction(value)
        elif isinstance(value, numbers.Rational):
            fraction = _of_moderate_length(Fraction(int(value.numerator), int(value.denominator)))
        else:
            fraction = Fraction(_of_moderate_size(Decimal(str(value))))
    except (InvalidOperation, ValueError, OverflowError, ZeroDivisionError):
        raise PlanError(message) from None
    if fraction <= 0:
        raise PlanError(message)
    return fraction


def _of_moderate_length(number: Fraction) -> Fraction:
    """Refuse what no state could write down in digits."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        message = "out of range"
        raise ValueError(message)
    return number


def _of_moderate_size(number: Decimal) -> Decimal:
    """Refuse 1e400000000, whose exact fraction would fill the memory."""
    if number.is_finite() and number and abs(number.adjusted()) > _MOST_DIGITS:
        message = "out of range"
        raise ValueError(message)
    return number


def positive_integer(most: int = 1 << 62, /, **named: object) -> int:
    """Read a whole number from 1 to `most`."""
    return whole_number(1, most, **named)


def whole_number(least: int, most: int, /, **named: object) -> int:
    """Read a whole number from `least` to `most`."""
    name, value = _single(named)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | numbers.Integral)
        or int(value) < least
    ):
        message = f"{name} must be a whole number of at least {least}"
        raise PlanError(message)
    if int(value) > most:
        message = f"{name} must be at most {most:,}"
        raise PlanError(message)
    return int(value)


def hexadecimal(size: int, /, **named: str) -> None:
    """Check that a text is `size` bytes in lower-case hexadecimal digits."""
    ((name, text),) = named.items()
    if len(text) != 2 * size or not set(text) <= set("0123456789abcdef"):
        message = f"{name} must be {size} bytes in lower-case hexadecimal digits"
        raise PlanError(message)


def truth(**named: object) -> bool:
    """Read True or False, and nothing that only counts as one of them."""
    name, value = _single(named)
    if not isinstance(value, bool):
        message = f"{name} must be True or False"
        raise PlanError(message)
    return value


def proportion(**named: object) -> float:
    """Read a number strictly between 0 and 1."""
    name, value = _single(named)
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        message = f"{name} must lie strictly between 0 and 1"
        raise PlanError(message)
    return float(value)


def expected_range(expected: object, name: str = "expected") -> tuple[int, int]:
    """Read the expected number of users: one whole number, or a pair (lowest, highest).

    Args:
        expected: the value given.
        name: name of its field, where that is another one.
    """
    pair = expected if isinstance(expected, (tuple, list)) else (expected, expected)
    if len(pair) != 2:
        message = f"{name} must be one number of users or a pair (lowest, highest)"
        raise PlanError(message)
    low, high = (
        # 1e6 is meant as a whole number.
        positive_integer(**{name: int(end) if isinstance(end, float) and end.is_integer() else end})
        for end in pair
    )
    if low > high:
        message = f"{name} must run from low to high, not from {low:,} to {high:,}"
        raise PlanError(message)
    return low, high
