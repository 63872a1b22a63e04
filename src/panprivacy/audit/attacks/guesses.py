"""What an intruder says about people, and how often privacy lets him be right.

In every attack each person comes by the toss of a fair coin. If what the intruder sees costs
epsilon, then whatever he sees, and whatever he knows of all others, the odds of the toss lie within
`e**epsilon` of 1. So each guess is right with probability at most `e**epsilon/(1 + e**epsilon)`,
given all guesses before it, and the number of right ones is stochastically at most binomial,
however one cell ties the guesses about several people together.

Reference: T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run",
Proposition 5.1, which also allows an intruder to choose about whom he speaks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Truths = NDArray[np.bool_]

FALSE_ALARM = 1e-6
"""How often a program that keeps its promise is found to break it, for each finding."""


@dataclass(frozen=True, slots=True, eq=False)
class Guesses:
    """Whether each person came, by the toss of a fair coin, and whether the intruder says so."""

    came: Truths
    said: Truths

    @property
    def right(self) -> int:
        """How many guesses are right."""
        return int((self.came == self.said).sum())

    @property
    def share(self) -> float:
        """The share of guesses that are right."""
        return self.right / len(self.came)

    @property
    def advantage(self) -> float:
        """The share of right guesses less that of wrong ones.

        For fair coins its mean is that of the true less the false positive rate.
        """
        return 2 * self.share - 1

    @property
    def precision(self) -> float:
        """The share of those he names who came; 0 if he names nobody."""
        return float(self.came[self.said].mean()) if self.said.any() else 0.0

    @property
    def found(self) -> float:
        """The true positive rate: the share of those who came that he names."""
        return float(self.said[self.came].mean())

    @property
    def suspected(self) -> float:
        """The false positive rate: the share of those who did not come that he names."""
        return float(self.said[~self.came].mean())


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.12345)
    '12.35 %'
    """
    return f"{100 * share:.2f} %"


def right_probability(epsilon: Fraction | float) -> float:
    """How often a guess may be right that costs epsilon: `e**epsilon/(1 + e**epsilon)`."""
    return 1 / (1 + math.exp(-float(epsilon)))
