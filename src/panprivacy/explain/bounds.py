"""How far a belief about one person can move, in exact numbers rounded away from the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from panprivacy.guarantee import LARGEST_EXPONENT, exp_bounds

PRIORS = tuple(Fraction(text) for text in ("1/1000000", "1/1000", "1/100", "1/10", "1/2", "9/10"))
"""What somebody may have believed before; the bounds hold for every other belief too."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How far anybody's belief about one person can move.

    Args:
        epsilon: the loss, in nats.
    """

    epsilon: Fraction

    @property
    def odds(self) -> Fraction | None:
        """By what factor odds change at most; None where it is beyond e**10000."""
        return None if self.epsilon > LARGEST_EXPONENT else exp_bounds(self.epsilon)[1]

    @property
    def replaced(self) -> Bound:
        """The same for whether it was this person or another one: an add and a remove."""
        return Bound(2 * self.epsilon)

    def posterior(self, prior: Fraction) -> tuple[Fraction, Fraction]:
        """Between what probabilities a belief ends up that was `prior` before.

        By Bayes the odds are multiplied by the ratio of two probabilities of what was seen, with
        the person and without, which lies within a factor of `e**epsilon` of 1.
        """
        factor = self.odds
        if factor is None:
            return Fraction(0), Fraction(1)
        other = 1 - prior
        return prior / (prior + other * factor), prior * factor / (prior * factor + other)


def float_above(number: Fraction) -> float:
    """The smallest float that is not below a number; infinite beyond the largest."""
    try:
        near = float(number)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


def float_below(number: Fraction) -> float:
    """The largest float that is not above a number of at least 0."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, 0)
