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
_ALL_SHARES = np.linspace(0, 1, 33)
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
        shares = observed.counts / observed.layout.cells_per_level
        self._empty, self._squares = noise.debias(shares), noise.squares(shares)
        self.unions = self._likely_unions()
        self._users = self.model.possible(self.unions)

    def measure(self, query: SetQuery) -> Measured:
        """Return the estimate, which may be negative or above 1, and its standard error."""
        model, corrected = self.model, self.unions - self._bias()
        if query.whole is None:
            number = float(model.weights(query.chosen) @ corrected)
            score = self._scores(self.unions, self._users, query.chosen)
            return Measured(number + float(score.score), math.sqrt(score.variance))
        whole = max(float(model.weights(query.whole) @ corrected), 1.0)
        ratio = float(model.weights(query.chosen) @ corrected) / whole
        score = self._scores(self.unions, self._users, query.chosen - ratio * query.whole)
        return Measured(ratio + float(score.score) / whole, math.sqrt(score.variance) / whole)

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
        unions = self._restricted(query, measured, values)
        score = self._scores(unions, self.model.possible(unions), chosen)
        scores = np.array(score.score)
        scores[-1] = min(scores[-1], 0.0)
        estimate = min(max(measured.estimate, 0.0), float(values[-1]))
        _, low, high = score_interval(estimate, values, scores, reach * np.sqrt(score.variance))
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

    def _restricted(self, query: SetQuery, measured: Measured, values: Floats) -> Floats:
        """Return the unions that are likeliest under each hypothesis, to first order."""
        at_estimate, _ = query.hypothesis(np.array(measured.estimate))
        shares = self._scores(self.unions, self._users, at_estimate).shares
        chosen, goals = query.hypothesis(values)
        steps = self._covariances(query.chosen, shares)
        if query.whole is not None:
            steps = steps - values[:, None] * self._covariances(query.whole, shares)
        weights = self.model.weights(chosen)
        lengths = np.maximum((weights * steps).sum(axis=-1), _LEAST_VARIANCE)
        misses = goals - weights @ self.unions
        return self.unions + steps * (misses / lengths)[:, None]

    def _covariances(self, chosen: Floats, shares: Floats) -> Floats:
        """Return the covariance of all estimated unions with that of a sum over patterns."""
        model = self.model
        unions = model.unions(self._users)
        empty = model.empty(unions)
        slopes = model.slopes(empty)
        influence = model.noise.influence(_inner(model.weights(chosen)) / slopes)
        law = model.noise.law(empty)
        mean = (law * influence).sum(axis=-1, keepdims=True)
        together = model.noise.debias(law * influence) - empty * mean
        each = together / slopes / model.layout.cells_per_level
        return np.asarray((shares[:, None] ** 2 * each).sum(axis=-2))

    def _scores(self, unions: Floats, users: Floats, chosen: Floats) -> _Score:
        """Return the score of sums over patterns, where unions and users are these."""
        model = self.model
        weights = _inner(model.weights(chosen))[..., None, :]
        steps = weights / model.slopes(model.empty(model.unions(users)))
        by_level = model.variances(users, model.noise.influence(steps))
        residuals = (steps * (self._empty - model.empty(unions))).sum(axis=-1)
        information = (1 / by_level).sum(axis=-1)
        shares = 1 / by_level / information[..., None]
        variance = 1 / information - model.fixed(users, chosen)
        return _Score(
            (shares * residuals).sum(axis=-1), np.maximum(variance, _LEAST_VARIANCE), shares
        )

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


@dataclass(frozen=True, slots=True)
class _Score:
    """What the counts say beyond hypotheses.

    Args:
        score: in users; float64[...].
        variance: of the score if the hypothesis is true.
        shares: of the levels in it; float64[..., levels].
    """

    score: Floats
    variance: Floats
    shares: Floats


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
    found = grid.mean(axis=-1)
    nobody = grid[:, 0] <= 0
    at_zero = _union_scores(model, empty, np.zeros((len(grid), 1)))[:, 0]
    information = _union_information(model, np.zeros((len(grid), 1)), empty.shape[-1])[:, 0]
    return np.where(nobody, np.minimum(at_zero / information, grid[:, -1]), found)


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
