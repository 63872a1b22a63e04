"""The base class of local randomisers: values in, reports out, and estimates from all reports.

Only the user sees the value. The output of the device is a report, whose law changes by a
factor of at most `e**epsilon` between any two values.

Reference: C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", Definition
12.1; docs/guarantees/local.md proves the claims.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import positive_fraction, proportion, whole_number
from panprivacy.papers.local.frequencies import Frequencies, Spread, intervals
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import (
    LARGEST_EXPONENT,
    RANDOMISATION_BITS,
    Epsilon,
    exp_bounds,
    float_above,
    warn_if_weak,
)
from panprivacy.tables.planning.request import LEAST_EPSILON

MOST_VALUES = 1 << 20

Values = NDArray[np.int64]
Reports = NDArray[Any]

PIECE = 1 << 24
"""Bits that are drawn or counted at a time."""


@dataclass(frozen=True, init=False)
class Randomiser(ABC):
    """A local randomiser of values 0 .. values-1.

    Args:
        values: number of values.
        epsilon: the largest privacy loss of a report, in nats.
    """

    values: int
    epsilon: Fraction

    most_values: ClassVar[int] = MOST_VALUES
    """The most values, where their number is given."""

    def __init__(self, values: int, epsilon: Epsilon) -> None:
        object.__setattr__(self, "values", whole_number(2, self.most_values, values=values))
        object.__setattr__(self, "epsilon", read_epsilon(epsilon))

    @property
    def inputs(self) -> int:
        """The number of values that `randomise` takes: 0 .. inputs-1."""
        return self.values

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The largest ratio of two probabilities of one report: at most `e**epsilon`, exactly."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """The length of a report, in bits."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of an estimated share, on average over values, times the number of users."""

    @abstractmethod
    def _draw(self, values: Values, coins: Coins) -> Reports:
        """Return a report for each value."""

    @abstractmethod
    def _scores(self, reports: Reports) -> NDArray[np.int64]:
        """Return whole-number sums over all checked reports; all estimates follow from them."""

    @abstractmethod
    def _spread(self, scores: NDArray[np.int64], users: int) -> Spread:
        """Return unbiased estimates and their spread."""

    def randomise(self, values: ArrayLike, coins: Coins | None = None) -> Reports:
        """Return a report for each user, drawn independently of all others.

        Guarantee: for any two values of a user the law of the report changes by a factor of at most
        `ratio`, and so of `e**epsilon`. [tests/exact/test_local.py]

        Args:
            values: one for each user, whole numbers of 0 .. inputs-1, [n].
            coins: source of all randomness; None for the operating system's.

        Returns:
            The reports, n of them along the first axis.

        Raises:
            InputError: something else than such values; no coin was tossed.
        """
        return self._draw(read_values(values, self.inputs), coins or SystemCoins())

    def estimate(self, reports: Reports, confidence: float = 0.95) -> Frequencies:
        """Return the estimated number of users that hold each value.

        Accuracy: unbiased; the variance is known except for the truth, and the intervals follow
        from it by the normal law, with an extra half report. Each interval separately has the
        stated coverage. [tests/statistical/test_local.py]

        Args:
            reports: the reports of all users, from `randomise`.
            confidence: confidence of the interval of each value.

        Raises:
            InputError: the reports are not reports of this randomiser.
        """
        sure = proportion(confidence=confidence)
        scores = self._scores(reports)
        spread = self._spread(scores, len(reports))
        low, high = intervals(spread, len(reports), sure)
        return Frequencies(
            spread.estimates,
            low,
            high,
            len(reports),
            sure,
            float_above(self.epsilon),
            tuple(scores.tolist()),
            spread.errors(len(reports)),
        )

    @property
    def loss(self) -> float:
        """Privacy loss of a report in nats, rounded; `ratio` is exact."""
        return math.log(self.ratio)


def read_epsilon(epsilon: Epsilon) -> Fraction:
    """Return the loss of a report, in nats.

    Raises:
        PlanError: no positive number, or so small that no number of reports would tell anything.
    """
    exact = positive_fraction(epsilon=epsilon)
    if exact < LEAST_EPSILON:
        message = f"epsilon must be at least {float(LEAST_EPSILON):g}"
        raise PlanError(message)
    warn_if_weak(exact)
    return exact


@functools.lru_cache(maxsize=1024)
def keep_probability(epsilon: Fraction, outcomes: int, chosen: int = 1) -> Fraction:
    """Return the probability that a report is uniform in the `chosen` for the value.

    Otherwise the report is uniform in all `outcomes`.

    The result is the largest `q` on a grid of 2**-64 for which `q/chosen + (1-q)/outcomes` is at
    most `e**epsilon (1-q)/outcomes`.
    """
    below, _ = exp_bounds(min(epsilon, LARGEST_EXPONENT))
    odds = (below - 1) * chosen / outcomes
    grid = 1 << RANDOMISATION_BITS
    return 1 - Fraction(-(-grid // (1 + max(odds, Fraction(0)))), grid)


def keep_ratio(keep: Fraction, outcomes: int, chosen: int = 1) -> Fraction:
    """Return the ratio of the probabilities of a chosen outcome and of another one."""
    return 1 + keep * outcomes / (chosen * (1 - keep))


def read_values(values: ArrayLike, count: int) -> Values:
    """Read whole numbers of 0 .. count-1.

    Raises:
        InputError: something else, by row where one is to blame; the message shows no value.
    """
    column = integer_column(values, "values")
    check_below(column, count, "a value")
    return column.astype(np.int64)


def read_reports(reports: Reports, count: int) -> NDArray[np.int64]:
    """Return how often each of `count` reports occurs, int64[count].

    Raises:
        InputError: a report is out of range.
    """
    column = integer_column(reports, "reports")
    check_below(column, count, "a report")
    return np.bincount(column.astype(np.int64), minlength=count)


def integer_column(numbers: ArrayLike, named: str) -> NDArray[Any]:
    """Return whole numbers in one dimension, of any width."""
    column = np.asarray(numbers)
    if column.ndim != 1 or (column.size and column.dtype.kind not in "biu"):
        message = f"{named} must be whole numbers in a one-dimensional array or sequence"
        raise InputError(message)
    return column


def check_below(column: NDArray[Any], count: int, named: str) -> None:
    """Refuse numbers outside of 0 .. count-1, by the row of the first."""
    outside = np.flatnonzero((column < 0) | (column >= count))
    if outside.size:
        message = f"{named} must be a whole number from 0 to {count - 1:,}"
        raise InputError(message, row=int(outside[0]) + 1)


def pieces(rows: int, width: int) -> Iterator[slice]:
    """Yield runs of rows that hold about `PIECE` numbers together."""
    step = max(PIECE // width, 1)
    for start in range(0, rows, step):
        yield slice(start, start + step)
