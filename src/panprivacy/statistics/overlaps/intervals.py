"""The estimate of a number of users or of a ratio of two, its standard error, and its interval.

A question is a sum over patterns of users, `c @ n`, or a ratio of two of them. The score of a
hypothesis is what the counts say beyond it, weighted as the estimate is: it has mean 0 if the
hypothesis is true, and the variance that it has then. An interval is all hypotheses that the score
does not reject. That of a ratio `t` is the hypothesis `(c - t d) @ n = 0`, as Fieller's.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from panprivacy.statistics.overlaps.occupancy import BitNoise, OccupancyModel
from panprivacy.statistics.overlaps.patterns import Floats, PatternCounts
from panprivacy.statistics.overlaps.weighing import weigh
from panprivacy.tables.decoders.intervals import (
    GRID,
    ZOOMS,
    Measured,
    noise_quantile,
    score_interval,
)

_NEAR = np.concatenate(
    ([0, 0.3, 0.6, 0.8], np.linspace(0.88, 1.2, 17), [1.3, 1.5, 2, 3, 5, 10, 30, 100, 1000])
)
"""Distances of hypotheses from the estimate, in half widths of a normal interval."""
_ALL_SHARES = np.linspace(0, 1, 17)
_LEAST_VARIANCE = 1e-30
_LEAST_FULL = 0.5
"""No share of empty cells is taken to be lower than by so many of its standard deviations."""
_MOST_BIAS = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class SetQuery:
    """A number of users, or a ratio of two numbers.

    Args:
        chosen: weight of each pattern of users in the number; float64[2**k].
        whole: the same of what the number is divided by; None for a number of users.
    """

    chosen: Floats
    whole: Floats | None = None

    def hypothesis(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the weights of a sum over patterns, and what it is if the answer is a value."""
        if self.whole is None:
            return np.broadcast_to(self.chosen, (*values.shape, len(self.chosen))), values
        return self.chosen - values[..., None] * self.whole, np.zeros_like(values)


class OverlapEstimator:
    """What pattern counts say about users.

    Args:
        observed: the counts.
    """

    def __init__(self, observed: PatternCounts) -> None:
        noise = BitNoise(observed.absent, observed.present)
        self.model = OccupancyModel(observed.layout, noise)
        self._shares = observed.counts / observed.layout.cells_per_level
        self._empty, self._squares = noise.debias(self._shares), noise.squares(self._shares)
        self.unions = self._likely_unions()
        self._users = self.model.possible(self.unions)

    def measure(self, query: SetQuery) -> Measured:
        """Return the estimate, which may be negative or above 1, and its standard error."""
        model, corrected = self.model, self.unions - self._bias()
        if query.whole is None:
            number = float(model.weights(query.chosen) @ corrected)
            score, variance, _ = self._score(self.unions, self._users, query.chosen)
            return Measured(number + float(score), math.sqrt(variance))
        whole = max(float(model.weights(query.whole) @ corrected), 1.0)
        ratio = float(model.weights(query.chosen) @ corrected) / whole
        chosen = query.chosen - ratio * query.whole
        score, variance, _ = self._score(self.unions, self._users, chosen)
        return Measured(ratio + float(score) / whole, math.sqrt(variance) / whole)

    def interval(
        self, query: SetQuery, measured: Measured, confidence: float
    ) -> tuple[float, float]:
        """Return both ends of all possible answers that the counts do not reject.

        Args:
            query: the question.
            measured: what was measured of it.
            confidence: probability that the interval covers the truth.
        """
        most = self.most(query)
        reach = noise_quantile(confidence, 0.0)
        values = self._hypotheses(query, measured, reach)
        chosen, _ = query.hypothesis(values)
        unions = self._restricted(query, values)
        scores, variances, slack = self._score(unions, self.model.possible(unions), chosen)
        scores[-1] = min(scores[-1], 0.0)
        estimate = min(max(measured.estimate, 0.0), float(values[-1]))
        _, low, high = score_interval(estimate, values, scores, reach * np.sqrt(variances) + slack)
        return min(max(low, 0.0), most), min(high, most)

    def most(self, query: SetQuery) -> float:
        """Return the largest answer that is possible."""
        if query.whole is not None:
            return 1.0
        return math.inf if self.model.layout.universe is None else self.model.limit

    def _hypotheses(self, query: SetQuery, measured: Measured, reach: float) -> Floats:
        """Return candidates, from 0 to the largest one."""
        limit = self.model.limit if query.whole is None else 1.0
        estimate = min(max(measured.estimate, 0.0), limit)
        width = min(measured.standard_error, limit) * reach
        near = np.concatenate((estimate - width * _NEAR, estimate + width * _NEAR))
        return np.unique(np.concatenate((np.clip(near, 0, limit), limit * _ALL_SHARES)))

    def _restricted(self, query: SetQuery, values: Floats) -> Floats:
        """Return the unions that are likeliest under each hypothesis, to first order."""
        chosen, goals = query.hypothesis(values)
        steps = weigh(self.model, self._users, query.chosen).along
        if query.whole is not None:
            steps = steps - values[:, None] * weigh(self.model, self._users, query.whole).along
        weights = self.model.weights(chosen)
        lengths = np.maximum((weights * steps).sum(axis=-1), _LEAST_VARIANCE)
        misses = goals - weights @ self.unions
        return self.unions + steps * (misses / lengths)[:, None]

    def _score(
        self, unions: Floats, users: Floats, chosen: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return what the counts say beyond sums over patterns, and the variance of that.

        The third number is half of what one cell may say: counts are whole.

        Args:
            unions: the hypotheses; float64[..., 2**k].
            users: possible ones near them.
            chosen: weights of patterns in the sums.
        """
        model = self.model
        weighing = weigh(model, users, chosen)
        residuals = self._shares - model.noise.law(model.empty(unions))
        score = (weighing.influence * residuals).sum(axis=(-2, -1))
        variance = weighing.variance - model.fixed(users, chosen)
        steps = np.ptp(weighing.influence, axis=-1).max(axis=-1)
        slack = steps / 2 / model.layout.cells_per_level
        return score, np.maximum(variance, _LEAST_VARIANCE), slack

    def _bias(self) -> Floats:
        """Return the bias of the logarithm, to second order: of one level of hashed cells."""
        model = self.model
        if model.layout.universe is not None or model.layout.levels > 1:
            return np.zeros_like(self.unions)
        rate, empty = model.rates[0], model.empty(self.unions)[0]
        variance = (self._squares[0] - empty**2) / model.layout.cells / empty**2
        excess = variance - rate**2 * np.maximum(self.unions, 0)
        return _inner(np.clip(excess, 0, _MOST_BIAS) / (2 * rate))

    def _likely_unions(self) -> Floats:
        """Return the estimate of each union alone."""
        model, layout = self.model, self.model.layout
        if layout.universe is not None:
            return _inner(layout.universe * (1 - self._empty[0]))
        if layout.levels == 1:
            noise = np.sqrt(self._squares[0] / layout.cells)
            least = np.maximum(_LEAST_FULL * noise, math.exp(-10) / layout.cells)
            return _inner(-np.log(np.maximum(self._empty[0], least)) / model.rates[0])
        return _inner(_likeliest(model, self._empty))


def _inner(values: Floats) -> Floats:
    """Return values of sets of tables, where the empty set has 0."""
    inner = np.array(values)
    inner[..., 0] = 0
    return inner


def _likeliest(model: OccupancyModel, empty: Floats) -> Floats:
    """Return the maximum quasi-likelihood estimate of each union, across levels.

    A union below 0 is that of the slope at 0.
    """
    grid = np.concatenate(([0.0], np.geomspace(0.5, model.limit, 4 * GRID)))
    grid = np.broadcast_to(grid, (empty.shape[-1], len(grid)))
    for _ in range(ZOOMS):
        score = _union_scores(model, empty, grid)
        areas = (score[:, 1:] + score[:, :-1]) * np.diff(grid)
        best = np.argmax(np.pad(np.cumsum(areas, axis=-1), ((0, 0), (1, 0))), axis=-1)
        rows = np.arange(len(grid))
        low = grid[rows, np.maximum(best - 1, 0)]
        high = grid[rows, np.minimum(best + 1, grid.shape[-1] - 1)]
        grid = np.linspace(low, high, GRID + 1, axis=-1)
    found = np.minimum(grid.mean(axis=-1), _fullest(model, empty.shape[-1]))
    nobody = grid[:, 0] <= 0
    at_zero = _union_scores(model, empty, np.zeros((len(grid), 1)))[:, 0]
    information = _union_information(model, np.zeros((len(grid), 1)), empty.shape[-1])[:, 0]
    return np.where(nobody, np.minimum(at_zero / information, grid[:, -1]), found)


def _fullest(model: OccupancyModel, sets: int) -> Floats:
    """Return the largest unions that are told better than by a factor of two; float64[2**k]."""
    users = np.broadcast_to(np.geomspace(0.5, model.limit, 4 * GRID), (sets, 4 * GRID))
    known = users**2 * _union_information(model, users, sets)
    told = known >= np.minimum(known.max(axis=-1, keepdims=True), 1)
    return np.where(told, users, 0).max(axis=-1)


def _union_scores(model: OccupancyModel, empty: Floats, users: Floats) -> Floats:
    """Return the quasi-score of each union at its candidates; float64[2**k, candidates]."""
    expected = np.exp(-model.rates * users[..., None])
    slopes = -model.rates * expected
    variances = _union_variances(model, expected, empty.shape[-1])
    return ((empty.T[:, None, :] - expected) * slopes / variances).sum(axis=-1)


def _union_information(model: OccupancyModel, users: Floats, sets: int) -> Floats:
    expected = np.exp(-model.rates * users[..., None])
    return ((model.rates * expected) ** 2 / _union_variances(model, expected, sets)).sum(axis=-1)


def _union_variances(model: OccupancyModel, expected: Floats, sets: int) -> Floats:
    """Return variances of the share of empty cells, as if all tables were equally full.

    They are used as weights of levels, of which only the ratios matter.
    """
    sizes = _set_sizes(sets)[:, None, None]
    squares = (expected ** (1 / np.maximum(sizes, 1)) + model.noise.spread) ** sizes
    return np.maximum(squares - expected**2, 1e-30) / model.layout.cells_per_level


@functools.lru_cache(maxsize=16)
def _set_sizes(sets: int) -> Floats:
    return np.bitwise_count(np.arange(sets)).astype(float)
