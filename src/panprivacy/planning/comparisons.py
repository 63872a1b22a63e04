"""What many noised comparisons cost together, where at most so many of them are answered.

A comparison is answered where a noised number has moved far enough; most are not. Each one that is
answered costs its own epsilon. All that are not cost `kappa` times their hazard together, and the
sum of hazards before the last answer is rarely large. [docs/guarantees/moves.md]
"""

from __future__ import annotations

import functools
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Final

from panprivacy.guarantee import exp_bounds, log_above

MOST_UPDATES: Final = 5_000
"""More would have hazards beyond what exponentials are computed for."""
_HAZARD_GRID: Final = 64
_UP: Final = Context(prec=40, rounding=ROUND_CEILING, Emax=999_999, Emin=-999_999)
_DIGITS: Final = 7
"""Of the epsilon of a comparison: so few that its noise is drawn in machine words."""


def comparison_cost(each: Fraction, updates: int, hazard: Fraction) -> Fraction:
    """What comparisons cost of which so many are answered: a number above it.

    It is `(updates + 1) each + kappa hazard`: of one more the noised numbers may be seen. With
    `kappa = each/ln(1 + exp(-each))` a comparison that costs `each` in either direction multiplies
    a hazard by at most `1 + kappa`.

    Args:
        each: epsilon of one comparison.
        updates: how many are answered at most.
        hazard: of all that are not.
    """
    remaining = 1 + exp_bounds(-each)[0]
    kappa = each / -log_above(1 / remaining)
    return (updates + 1) * each + kappa * hazard


@functools.lru_cache(maxsize=64)
def largest_hazard(updates: int, delta: Fraction) -> Fraction:
    """A multiple of 1/64 that the hazard of comparisons exceeds with a probability of delta.

    The hazard before so many answers is at most a sum of exponential variables of mean 1, and that
    exceeds `g` where a Poisson variable of mean `g` is below `updates`.
    """
    low, high = 0, updates * _HAZARD_GRID
    while not _is_rare(Fraction(high, _HAZARD_GRID), updates, delta):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        rare = _is_rare(Fraction(middle, _HAZARD_GRID), updates, delta)
        low, high = (low, middle) if rare else (middle, high)
    return Fraction(high, _HAZARD_GRID)


def _is_rare(hazard: Fraction, updates: int, delta: Fraction) -> bool:
    """Whether a Poisson variable of this mean is below `updates` with delta at most."""
    mean = _UP.divide(*map(_UP.create_decimal, hazard.as_integer_ratio()))
    term = total = _UP.create_decimal(1)
    for number in range(1, updates):
        term = _UP.divide(_UP.multiply(term, mean), _UP.create_decimal(number))
        total = _UP.add(total, term)
    return Fraction(total) <= delta * exp_bounds(hazard)[0]


@functools.lru_cache(maxsize=256)
def comparison_epsilon(epsilon: Fraction, updates: int, delta: Fraction) -> Fraction:
    """The epsilon of each comparison, for which all of them cost `epsilon` and delta at most."""
    hazard = largest_hazard(updates, delta)
    low, high = Fraction(0), epsilon / updates
    grid = high / 10**_DIGITS
    while high - low > grid:
        middle = (low + high) / 2
        fits = comparison_cost(middle, updates, hazard) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return _rounded_down(low)


def _rounded_down(number: Fraction) -> Fraction:
    """So few digits of a number, no larger than it."""
    scale = 1
    while number * scale < 10 ** (_DIGITS - 1):
        scale *= 10
    return Fraction(int(number * scale), scale)
