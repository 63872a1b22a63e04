"""A privacy loss (epsilon, delta), and its consequences for beliefs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from panprivacy.privacy.guarantee.exact import (
    LARGEST_EXPONENT,
    exp_bounds,
    format_rounded_up,
    number_above,
)

_RARER: Final = (101, 11)
_OFTEN: Final = 2
"""Multiple of delta for the probability of outcomes that may change odds more than `odds`."""
_SELDOM: Final = Fraction(1, 100)
"""Maximum probability of exceptions for which larger multiples of delta are used."""
_FEW: Final = 3
"""Number of digits of a delta, and of the probability of exceptions."""
_WEAK: Final = 20
"""Beyond this epsilon, odds may change by a factor of 485 million."""


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """A privacy loss: epsilon in nats, and delta.

    Guarantee: for neighbouring streams whose outcomes have the distributions P and P', and for
    every set S of outcomes, `P(S) <= e**epsilon P'(S) + delta`. This bounds the hockey-stick
    divergence. It does not bound the probability of ratios beyond `e**epsilon` by delta; `odds`
    bounds it. [docs/guarantees/beliefs.md, tests/exact/test_beliefs.py]

    Args:
        epsilon: at least 0.
        delta: 0 for pure differential privacy.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        """Return the loss of two independent outcomes."""
        return PrivacyLoss(self.epsilon + other.epsilon, min(self.delta + other.delta, Fraction(1)))

    def times(self, count: int | Fraction) -> PrivacyLoss:
        """Return the loss of `count` independent outcomes, each with this loss."""
        return PrivacyLoss(count * self.epsilon, min(count * self.delta, Fraction(1)))

    @classmethod
    def total(cls, losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
        """Return the loss of several independent outcomes."""
        return sum(losses, cls(Fraction(0)))

    @property
    def weak(self) -> bool:
        """Whether epsilon is so large that it protects nobody."""
        return self.epsilon > _WEAK

    def of_people(self, count: int) -> PrivacyLoss:
        """Return the loss of a group of k people.

        It is `(k epsilon, (1 + e**epsilon + ... + e**((k-1) epsilon)) delta)`. Replacing one user
        by another is a removal and an addition: a group of two.
        """
        total, delta = count * self.epsilon, self.delta
        if delta and (count - 1) * self.epsilon > LARGEST_EXPONENT:
            delta = Fraction(1)
        elif delta:
            delta *= 1 + sum(exp_bounds(step * self.epsilon)[1] for step in range(1, count))
        return PrivacyLoss(total, min(delta, Fraction(1)))

    def share_of(self, whole: PrivacyLoss) -> Fraction:
        """Return the share of the epsilon of another loss."""
        return self.epsilon / whole.epsilon

    @property
    def exceptions(self) -> Fraction:
        """Probability of outcomes that may change odds by more than `odds`.

        It is 0 without a delta, else a multiple of delta.
        """
        return min(self._multiple * self.delta, Fraction(1))

    @property
    def odds(self) -> Fraction | None:
        """Largest factor by which odds change, except in `exceptions`; None if it is unbounded.

        Without a delta it is `e**epsilon`. With one, outcomes that change odds by more than
        `(c e**epsilon + 1)/(c - 1)` have a probability of at most `c delta`, for every c above 1.
        """
        if self.epsilon > LARGEST_EXPONENT or self.exceptions == 1:
            return None
        pure, times = exp_bounds(self.epsilon)[1], self._multiple
        return (times * pure + 1) / (times - 1) if self.delta else pure

    @property
    def _multiple(self) -> int:
        """The c of `odds`: the largest multiple of delta that stays rare."""
        return next((each for each in _RARER if each * self.delta <= _SELDOM), _OFTEN)

    def posterior(self, prior: Fraction) -> tuple[Fraction, Fraction]:
        """Return the range of a belief that was `prior` before, except for `exceptions`.

        By Bayes the odds are multiplied by the ratio of the probabilities of the outcome, with the
        person and without.
        """
        factor, other = self.odds, 1 - prior
        if factor is None:
            return Fraction(0), Fraction(1)
        return prior / (prior + other * factor), prior * factor / (prior * factor + other)

    def average(self, prior: Fraction) -> tuple[Fraction, Fraction]:
        """Return the range of the mean of that belief, over all outcomes without exception.

        The upper end is for a person who is in the stream, the lower end for a person who is not.
        """
        if self.epsilon > LARGEST_EXPONENT:
            return Fraction(0), Fraction(1)
        pure, other = exp_bounds(self.epsilon)[1], 1 - prior
        low = prior * (1 - self.delta) / (prior + other * pure)
        return low, (prior * pure + other * self.delta) / (prior * pure + other)

    def document(self) -> dict[str, float | str]:
        """Return both numbers for JSON, rounded up."""
        return {"epsilon": number_above(self.epsilon), "delta": number_above(self.delta)}

    def text(self, digits: int = 6) -> str:
        """Return both numbers for people, rounded up, without the word epsilon.

        Args:
            digits: digits of epsilon; delta has 3.
        """
        delta = f" and delta {format_rounded_up(self.delta, _FEW)}" if self.delta else ""
        return f"{format_rounded_up(self.epsilon, digits)}{delta}"

    def says_of_odds(self, digits: int = 6) -> str:
        """Return the bound on the change of odds for people, as "a factor of ...".

        Args:
            digits: digits of the factor; the probability of exceptions has 3.
        """
        if self.odds is None:
            return "a factor that is too large to write"
        rarely = ""
        if self.delta:
            rarely = f", but for outcomes of probability {format_rounded_up(self.exceptions, _FEW)}"
        return f"a factor of {format_rounded_up(self.odds, digits)}{rarely}"

    def __str__(self) -> str:
        return f"epsilon {self.text()}"
