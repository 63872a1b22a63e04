"""Estimates of all unions of the tables of one shard, and the score of hypotheses about them."""

from __future__ import annotations

import functools
import math

import numpy as np

from panprivacy.statistics.overlaps.occupancy import BitNoise, OccupancyModel
from panprivacy.statistics.overlaps.patterns import Floats, PatternCounts
from panprivacy.statistics.overlaps.weighing import weigh
from panprivacy.tables.decoders.intervals import GRID, ZOOMS

_LEAST_VARIANCE = 1e-30
_LEAST_FULL = 0.5
"""No share of empty cells is taken to be lower than by so many of its standard deviations."""
_MOST_BIAS = 0.5


class UnionEstimates:
    """What the pattern counts of one shard say about its users.

    Args:
        observed: the counts.

    Attributes:
        model: the law of the counts.
        unions: estimate of each union alone; it may be below 0.
        users: possible numbers of users near them.
    """

    def __init__(self, observed: PatternCounts) -> None:
        noise = observed.pair or BitNoise(observed.absent, observed.present)
        self._noise_variance = observed.noise_variance
        self.model = OccupancyModel(observed.layout, noise)
        self._shares = observed.counts / observed.layout.cells_per_level
        self._empty, self._squares = noise.debias(self._shares), noise.squares(self._shares)
        self.unions = self._likely_unions()
        self.users = self.model.possible(self.unions)

    @property
    def size(self) -> int:
        """Numbers of patterns of all levels."""
        return int(self._shares.size)

    def along(self, chosen: Floats | None) -> Floats:
        """Return the covariance of estimated unions with that of a sum over patterns; 0 of none."""
        if chosen is None:
            return np.zeros_like(self.unions)
        return weigh(self.model, self.users, chosen).along

    def score(self, unions: Floats, users: Floats, chosen: Floats) -> tuple[Floats, Floats, Floats]:
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
        if self._noise_variance:
            variance = variance + self._noise_variance * weighing.noise(model.layout)
        steps = np.ptp(weighing.influence, axis=-1).max(axis=-1)
        slack = steps / 2 / model.layout.cells_per_level
        return score, np.maximum(variance, _LEAST_VARIANCE), slack

    def output_variance(self, chosen: Floats) -> float:
        """Return the variance that noise on counts adds to a sum over patterns."""
        if not self._noise_variance:
            return 0.0
        weighing = weigh(self.model, self.users, chosen)
        return float(self._noise_variance * weighing.noise(self.model.layout))

    def bias(self) -> Floats:
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
            noise = np.sqrt(np.maximum(self._squares[0], 0) / layout.cells)
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
