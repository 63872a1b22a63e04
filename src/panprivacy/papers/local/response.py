"""Randomised response: the value itself, or any value at random.

Reference: S. Warner, "Randomized response", 1965, for two values; P. Kairouz, S. Oh, P.
Viswanath, "Extremal mechanisms for local differential privacy", 2014, for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.papers.local.frequencies import Spread
from panprivacy.papers.local.randomiser import (
    Randomiser,
    Reports,
    Values,
    keep_probability,
    keep_ratio,
    read_reports,
)
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Epsilon
from panprivacy.privacy.noise import wipe


@dataclass(frozen=True, init=False)
class RandomisedResponse(Randomiser):
    """Randomised response: the value with probability `keep`, else a uniformly random value.

    >>> from panprivacy import local
    >>> smokes = local.RandomisedResponse(2, epsilon="1/2")
    >>> reports = smokes.randomise([0, 1, 1, 0] * 2_500)
    >>> 3_000 < smokes.estimate(reports).of(1).value < 7_000
    True

    For two values it is Warner's: the truth with probability `e**epsilon/(1 + e**epsilon)`. Its
    error is least while there are at most about `3 e**epsilon + 2` values.

    Guarantee: as for each `Randomiser`. [tests/exact/test_local.py]

    Args:
        values: number of values, 2 to 2**20.
        epsilon: the loss of a report, in nats.

    Raises:
        PlanError: an argument out of range.
    """

    @property
    def keep(self) -> Fraction:
        """Probability that the value is reported in any case; `tanh(epsilon/2)` for two values."""
        return keep_probability(self.epsilon, self.values)

    @property
    def ratio(self) -> Fraction:
        """The probability of the value over that of another report."""
        return keep_ratio(self.keep, self.values)

    @property
    def bits(self) -> int:
        """The length of a number below the number of values."""
        return (self.values - 1).bit_length()

    @property
    def variance(self) -> float:
        """The same whatever users hold."""
        own, other = self._own_and_other()
        average = (own * (1 - own) + (self.values - 1) * other * (1 - other)) / self.values
        return average / float(self.keep) ** 2

    def _own_and_other(self) -> tuple[float, float]:
        other = (1 - self.keep) / self.values
        return float(self.keep + other), float(other)

    def _draw(self, values: Values, coins: Coins) -> Reports:
        reports = coins.categorical([1] * self.values, len(values))
        keeping = coins.bernoulli(self.keep, len(values))
        np.copyto(reports, values, where=keeping.view(bool), casting="unsafe")
        wipe(keeping)
        return reports

    def _scores(self, reports: Reports) -> NDArray[np.int64]:
        return read_reports(reports, self.values)

    def _spread(self, scores: NDArray[np.int64], users: int) -> Spread:
        return two_coins(scores, users, *self._own_and_other(), float(self.keep))


GRID = 1 << 16
"""A probability is a multiple of 1/GRID; a number of two bytes decides the coin."""


@dataclass(frozen=True, init=False)
class ShareResponse(RandomisedResponse):
    """Randomised response to a coin, which is 1 with probability v/GRID for the value v.

    Guarantee: as for each `Randomiser`: a coin of the user's own before a randomiser costs nothing.
    [tests/unit/test_statistical.py, docs/guarantees/local.md]

    Args:
        epsilon: the loss of a report, in nats.

    Raises:
        PlanError: epsilon is out of range.
    """

    def __init__(self, epsilon: Epsilon) -> None:
        super().__init__(2, epsilon)

    @property
    def inputs(self) -> int:
        """The probabilities 0 .. 1."""
        return GRID + 1

    def _draw(self, values: Values, coins: Coins) -> Reports:
        high, low = coins.categorical([1] * 256, 2 * len(values)).reshape(2, -1)
        tossed = (256 * high + low < values).astype(np.int64)
        wipe(high, low)
        try:
            return super()._draw(tossed, coins)
        finally:
            wipe(tossed)


def two_coins(
    scores: NDArray[np.int64], users: int, own: float, other: float, gain: float
) -> Spread:
    """Return estimates from counts to which each user adds a coin, of two probabilities.

    Args:
        scores: how many coins were 1, for each value.
        users: how many tossed one.
        own: the probability for a user that holds the value.
        other: the one for all others.
        gain: own less other, which floats may not tell.
    """
    unit, counted = np.ones(len(scores)), scores.astype(np.float64)
    noise, held = other * (1 - other), own * (1 - own)
    return Spread(
        (counted - users * other) / gain,
        unit * (users * noise / gain**2),
        unit * ((held - noise) / gain**2),
        unit / gain,
    )
