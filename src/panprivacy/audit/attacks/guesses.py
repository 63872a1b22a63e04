"""Guesses of an intruder about people, and the largest hit rate that privacy allows.

In every attack each person comes by the toss of a fair coin. If the view of the intruder has
privacy loss epsilon, then for every view, and all knowledge of other people, the odds of the toss
lie within `e**epsilon` of 1. So each guess is right with probability at most `e**epsilon/(1 +
e**epsilon)`, given all guesses before it, and the number of right ones is stochastically at most
binomial, for every dependence between the guesses about several people.

Reference: T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run",
Proposition 5.1, which also allows an intruder to choose the people to guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Truths = NDArray[np.bool_]

FALSE_ALARM = 1e-6
"""False-alarm probability of each finding for a program that satisfies its guarantee."""


@dataclass(frozen=True, slots=True, eq=False)
class Guesses:
    """The fair coin tosses that decide who came, and the guesses of the intruder."""

    came: Truths
    said: Truths

    @property
    def right(self) -> int:
        """Number of right guesses."""
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
        """The share of the named people who came; 0 if nobody is named."""
        return float(self.came[self.said].mean()) if self.said.any() else 0.0

    @property
    def found(self) -> float:
        """The true positive rate: the share of those who came that are named."""
        return float(self.said[self.came].mean())

    @property
    def suspected(self) -> float:
        """The false positive rate: the share of those who did not come that are named."""
        return float(self.said[~self.came].mean())


def percent(share: float) -> str:
    """Return a share in words.

    >>> percent(0.12345)
    '12.35 %'
    """
    return f"{100 * share:.2f} %"


def right_probability(epsilon: Fraction | float) -> float:
    """Return the bound on the hit rate at loss epsilon: `e**epsilon/(1 + e**epsilon)`."""
    return 1 / (1 + math.exp(-float(epsilon)))
