"""The number of users, from levels of hashed cells that halve in popularity."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.tables.decoders.intervals import (
    GRID,
    ZOOMS,
    Floats,
    Measuring,
    noise_quantiles,
    score_interval,
)
from panprivacy.tables.decoders.levels import level_shares

_CANDIDATES = 4_096
_HALVINGS = 60
"""Of an interval that holds an estimate below 0."""
_LEAST_VARIANCE = 1e-30
"""At an enormous epsilon a full or empty level has no noise that a float can hold."""


@dataclass(frozen=True, slots=True)
class LevelModel(Measuring):
    """The number of users, from the noised number of ones in each level of hashed cells.

    Level `l` of `levels` has `cells_per_level` cells and takes a user with probability
    `2**-(l+1)`, the last one the rest. A cell that meets `x` users on average is a one with
    probability `full - contrast * exp(-decay * x)`.

    Cells are counted as if users came from a Poisson law with mean `n`; since `n` is fixed, the
    estimate varies by `n` less (Sherman-Morrison on the negative covariance of the levels).

    Args:
        levels: number of levels.
        cells_per_level: cells of each.
        contrast: by how much a full cell is more often a one than an empty one.
        full: how often a cell with very many users is a one.
        decay: how fast cells fill up; 1 if the first user of a cell fills it.
        noise_variance: variance of the output noise on each count.
    """

    levels: int
    cells_per_level: int
    contrast: float
    full: float
    decay: float
    noise_variance: float

    def estimate(self, ones: ArrayLike) -> float:
        """The maximum quasi-likelihood estimate: where the weighted residuals balance."""
        counts = np.asarray(ones, float)
        grid = np.concatenate(([0.0], np.geomspace(0.5, self.limit, 4 * GRID)))
        for _ in range(ZOOMS):
            best = int(np.argmax(self._quasi_likelihood(counts, grid)))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
            grid = np.linspace(low, high, GRID + 1)
        return float((grid[0] + grid[-1]) / 2) if grid[0] > 0 else float(grid[0])

    def unbiased(self, ones: ArrayLike) -> float:
        """The same, also below 0: there levels have the weights that they have at 0.

        The mean of a level is the same function of the number of users there, so that counts that
        are lower than expected of nobody say how much lower.
        """
        value, counts = self.estimate(ones), np.asarray(ones, float)
        if value > 0:
            return value
        _, variance, slope = self.moments(np.zeros(()))
        weights = slope / variance

        def below(users: float) -> bool:
            with np.errstate(over="ignore"):  # of far fewer users than nobody
                mean, _, _ = self.moments(np.asarray(users))
            return float(((counts - mean) * weights).sum()) > 0

        low, high = -float(self.deviation(0)), 0.0
        while not below(low):
            low, high = 2 * low, low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if below(middle) else (low, middle)
        return high

    def bias(self, truth: ArrayLike) -> Floats:
        """The mean of the estimate less the truth, to second order: it is never below 0.

        It is half of the variance times the mean rate at which levels fill up, weighted by what
        each tells. [docs/guarantees/decoding.md]
        """
        users = np.asarray(truth, float)
        information = self._information(users)
        rate = (information * self._rates()).sum(axis=-1) / information.sum(axis=-1)
        bias: Floats = self.deviation(users) ** 2 * rate / 2
        return bias

    @property
    def limit(self) -> float:
        """The number of users that fill every cell of every level."""
        return (
            (math.log(self.cells_per_level) + 10) * self.cells_per_level * 2.0 ** (self.levels - 1)
        )

    def deviation(self, truth: ArrayLike) -> Floats:
        """One over the root of the Fisher information, corrected for a fixed number of users."""
        users = np.asarray(truth, float)
        with np.errstate(divide="ignore", over="ignore"):
            poisson = 1 / self._information(users).sum(axis=-1)
        return np.sqrt(np.maximum(poisson - users, 0))

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        _, variance, _ = self.moments(np.asarray(truth, float))
        information = self._information(np.asarray(truth, float))
        total = float(information.sum())
        return float((information * self.noise_variance / variance).sum() / total) if total else 1.0

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """The estimate, and the interval of all numbers of users from which the counts are not far.

        Its upper end is infinite if that is so of a number that fills every cell.
        """
        value, curves = self.estimate(ones), _curves(self)
        score = ((np.asarray(ones, float) - curves.mean) * curves.weights).sum(axis=-1)
        reach = noise_quantiles(confidence, curves.shares) * curves.spread + curves.slack
        score[-1] = min(score[-1], 0.0)  # nobody tells more than the limit from the limit
        return score_interval(value, curves.users, score, reach)

    def _quasi_likelihood(self, ones: Floats, users: Floats) -> Floats:
        """Twice the integral of the quasi-score, which is unbiased whatever the counts' law.

        A normal likelihood would also read the squares of the residuals, which sparse levels
        do not have in normal proportion.
        """
        mean, variance, slope = self.moments(users)
        score = ((ones - mean) * slope / variance).sum(axis=-1)
        areas = (score[1:] + score[:-1]) * np.diff(users)
        return np.concatenate(([0.0], np.cumsum(areas)))

    def _information(self, users: Floats) -> Floats:
        _, variance, slope = self.moments(users)
        return slope**2 / variance

    def moments(self, users: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of each level's count, and the mean's slope in the number of users."""
        rates = self._rates()
        empty = np.exp(-users[..., None] * rates)
        mean = self.full - self.contrast * empty
        variance = self.cells_per_level * mean * (1 - mean) + self.noise_variance
        slope = self.cells_per_level * self.contrast * rates * empty
        return self.cells_per_level * mean, np.maximum(variance, _LEAST_VARIANCE), slope

    def _rates(self) -> Floats:
        """Return the decrease of the logarithm of the share of empty cells by each user."""
        return _fill_rates(self.levels, self.cells_per_level, self.decay)


@uncounted
def _fill_rates(levels: int, cells_per_level: int, decay: float) -> Floats:
    """Return the decrease of the logarithm of the share of empty cells by each user, by level."""
    rates = _rates_of(levels, cells_per_level, decay)
    rates.flags.writeable = False
    return rates


def _rates_of(levels: int, cells_per_level: ArrayLike, decay: ArrayLike) -> Floats:
    """Return the same of one model, or of several whose numbers are arrays."""
    cells, decays = np.asarray(cells_per_level), np.asarray(decay)
    # One cell that takes everybody is full after one user: keep its rate finite.
    probabilities = np.minimum(level_shares(levels), cells * (1 - 1e-9) / decays)
    rates: Floats = -np.log1p(-decays * probabilities / cells)
    return rates


class _SeveralModels(LevelModel):
    """Several models of equally many levels, whose numbers are arrays: float64[models, 1, 1]."""

    __slots__ = ()

    def _rates(self) -> Floats:
        return _rates_of(self.levels, self.cells_per_level, self.decay)


def deviations(models: Sequence[LevelModel], truths: Floats) -> Floats:
    """Return the deviations of models of equally many levels, at once; float64[models, truths].

    Args:
        models: some.
        truths: numbers of users, for all models or for each; float64[..., truths].
    """
    numbers = [
        (one.cells_per_level, one.contrast, one.full, one.decay, one.noise_variance)
        for one in models
    ]
    columns: Any = np.array(numbers, float).T[..., None, None]
    return _SeveralModels(models[0].levels, *columns).deviation(truths)


@dataclass(frozen=True, slots=True)
class _UserCurves:
    """The expected counts of a model, for many numbers of users.

    Args:
        users: the numbers, from 0.
        mean: of each level's count.
        weights: of the levels in the score, up to a factor for each number of users.
        spread: standard deviation of the weighted counts.
        slack: what half a count of the heaviest level weighs, for counts are whole.
        shares: the part of their variance that output noise causes.
    """

    users: Floats
    mean: Floats
    weights: Floats
    spread: Floats
    slack: Floats
    shares: Floats


@functools.lru_cache(maxsize=16)
def _curves(model: LevelModel) -> _UserCurves:
    users = np.concatenate(([0.0], np.geomspace(0.25, model.limit, _CANDIDATES)))
    mean, variance, slope = model.moments(users)
    # Slopes vanish together where all levels are full: only their ratios matter to a score.
    largest = slope.max(axis=-1, keepdims=True)
    weights = slope / largest / variance
    information = (weights**2 * variance).sum(axis=-1)
    fixed = users * ((weights * slope).sum(axis=-1)) ** 2
    return _UserCurves(
        users,
        mean,
        weights,
        np.sqrt(np.maximum(information - fixed, 0)),
        weights.max(axis=-1) / 2,
        (weights**2).sum(axis=-1) * model.noise_variance / information,
    )
