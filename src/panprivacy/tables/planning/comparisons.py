"""The joint privacy loss of many noisy comparisons, with a bounded number of positive ones.

A comparison is positive where a noisy number has moved far enough; most are not. Their number does
not matter: each negative comparison reveals a little, and all of them together are bounded by the
positive ones, and by delta.
[docs/guarantees/moves.md]
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Final

from panprivacy.privacy.guarantee import exp_bounds, log_above

MOST_UPDATES: Final = 5_000
"""Maximum number of positive comparisons in a plan; a number that moves more often has a clock."""
_EXPONENTS: Final = [Fraction(number, 32) for number in range(1, 23)]
"""Orders of moments, times the distance of a comparison from its reference: below the logarithm of
2."""
_DIGITS: Final = 7
"""Digits of the epsilon of a comparison: few, so that its noise is drawn in machine words."""


def comparison_cost(
    each: Fraction, updates: int, delta: Fraction, total: Fraction, looks: int = 1
) -> Fraction:
    """Return an upper bound on the loss of comparisons with at most `updates` positive ones.

    With `t = each/2`, `m = x/t`, `s = ln((e**x - 2 x + 2 t)/(2 - e**x))` and
    `n = s updates + ln(2/delta) - 1 - ln(m - 1)` it is
    `2 looks each + (max(0, n) + max(0, n + total))/(m - 1)`, for the x that makes it least. At
    each look the noisy numbers of one comparison may be seen: that is the first term.

    Args:
        each: epsilon of one comparison.
        updates: maximum number of positive comparisons.
        delta: total delta of the outputs.
        total: total epsilon of the outputs.
        looks: number of intrusions into the memory: one more than are announced.
    """
    apart = each / 2
    known = log_above(2 / delta) - 1
    found = []
    for exponent in _EXPONENTS:
        if exponent < 2 * apart:  # of moments below the second nothing is proved
            continue
        further, most = exponent / apart - 1, exp_bounds(exponent)[1]
        answered = log_above((most - 2 * exponent + 2 * apart) / (2 - most))
        beyond = known + updates * answered + log_above(1 / further)
        found.append((max(beyond, Fraction(0)) + max(beyond + total, Fraction(0))) / further)
    return 2 * looks * each + min(found)


@functools.lru_cache(maxsize=256)
def comparison_epsilon(
    epsilon: Fraction, updates: int, delta: Fraction, total: Fraction, looks: int = 1
) -> Fraction:
    """Return the epsilon of each comparison, for which all of them cost `epsilon` at most."""
    low, high = Fraction(0), min(epsilon / 2, _EXPONENTS[-1])
    while high - low > low / 10**_DIGITS:
        middle = (low + high) / 2
        fits = comparison_cost(middle, updates, delta, total, looks) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return _rounded_down(low)


def _rounded_down(number: Fraction) -> Fraction:
    """Return the number rounded down to few digits."""
    scale = 1
    while number * scale < 10 ** (_DIGITS - 1):
        scale *= 10
    return Fraction(int(number * scale), scale)
