"""From noised counts to estimates and intervals: pure functions, no randomness.

A model says what the noised counts are expected to be, and how far an estimate strays, when the
truth is given. Planning asks it before anything is collected, releases ask it after. Nothing here
sees the table: the inputs are released numbers and public parameters.

Notation: `c` is the contrast (the mean of a present bit in units of ±1; `t` unless intrusions
were announced), `m` the number of cells, `n` the number of users, `q` a level's probability.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_GRID = 64
_ZOOMS = 4


class Model(Protocol):
    """What released counts say about one quantity, and how its estimate strays from the truth."""

    def estimate(self, ones: ArrayLike) -> float:
        """The estimate, from the noised number of ones of each group of cells."""

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """The confidence interval around an estimate."""

    def deviation(self, truth: ArrayLike) -> Floats:
        """The standard deviation of the estimate, for each true value."""

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes, 0 to 1."""


@dataclass(frozen=True, slots=True)
class DensityModel:
    """The share of a universe, from the noised number of ones in a table of one user a cell.

    Args:
        universe: number of possible users.
        cells: number of users that have a cell.
        contrast: `c`.
        noise_variance: variance of the output noise on the count.
    """

    universe: int
    cells: int
    contrast: float
    noise_variance: float

    def estimate(self, ones: ArrayLike) -> float:
        """The unbiased estimate, cut to 0 .. 1."""
        mean = float(np.sum(ones)) / self.cells
        share = (mean - (1 - self.contrast) / 2) / self.contrast
        return min(max(share, 0.0), 1.0)

    def deviation(self, truth: ArrayLike) -> Floats:
        """Bits, output noise, and sampling without replacement."""
        share = np.asarray(truth, float)
        left_out = (self.universe - self.cells) / max(self.universe - 1, 1)
        sampling = share * (1 - share) / self.cells * left_out
        return np.sqrt(self._noise_variance() + sampling)

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        output = self.noise_variance / (self.contrast * self.cells) ** 2
        total = float(self.deviation(truth)) ** 2
        return output / total if total else 0.0

    def _noise_variance(self) -> float:
        bits = self.cells * (1 - self.contrast**2) / 4
        return (bits + self.noise_variance) / (self.contrast * self.cells) ** 2

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval within 0 .. 1; half a count covers that counts are whole."""
        half_count = 0.5 / (self.contrast * self.cells)
        return confidence_interval(
            self, estimate, confidence, limit=1.0, beyond=1.0, slack=half_count
        )


@dataclass(frozen=True, slots=True)
class LevelModel:
    """The number of users, from the noised numbers of ones in levels of hashed bits.

    Level `l` of `levels` has `cells_per_level` cells and takes a user with probability
    `2**-(l+1)`, the last one the rest. Cells are counted as if users came from a Poisson law
    with mean `n`; since `n` is fixed, the estimate varies by `n` less (Sherman-Morrison on the
    negative covariance of the levels).
    """

    levels: int
    cells_per_level: int
    contrast: float
    noise_variance: float

    def estimate(self, ones: ArrayLike) -> float:
        """The maximum quasi-likelihood estimate: where the weighted residuals balance."""
        counts = np.asarray(ones, float)
        grid = np.concatenate(([0.0], np.geomspace(0.5, self.limit, 4 * _GRID)))
        for _ in range(_ZOOMS):
            best = int(np.argmax(self._quasi_likelihood(counts, grid)))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
            grid = np.linspace(low, high, _GRID + 1)
        return float((grid[0] + grid[-1]) / 2) if grid[0] > 0 else float(grid[0])

    @property
    def limit(self) -> float:
        """So many users fill every cell of every level."""
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
        _, variance, _ = self._moments(np.asarray(truth, float))
        information = self._information(np.asarray(truth, float))
        total = float(information.sum())
        return float((information * self.noise_variance / variance).sum() / total) if total else 1.0

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval; its upper end is infinite once all levels are full."""
        return confidence_interval(self, estimate, confidence, limit=self.limit, beyond=math.inf)

    def _quasi_likelihood(self, ones: Floats, users: Floats) -> Floats:
        """The integral of the quasi-score, which is unbiased whatever the counts' law.

        A normal likelihood would also read the squares of the residuals, which sparse levels
        do not have in normal proportion.
        """
        mean, variance, slope = self._moments(users)
        score = ((ones - mean) * slope / variance).sum(axis=-1)
        areas = (score[1:] + score[:-1]) / 2 * np.diff(users)
        return np.concatenate(([0.0], np.cumsum(areas)))

    def _information(self, users: Floats) -> Floats:
        _, variance, slope = self._moments(users)
        information: Floats = slope**2 / variance
        return information

    def _moments(self, users: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of each level's count, and the mean's slope in the number of users."""
        rates = -np.log1p(-self._probabilities() / self.cells_per_level)
        empty = np.exp(-users[..., None] * rates)
        mean = (1 + self.contrast) / 2 - self.contrast * empty
        variance = self.cells_per_level * mean * (1 - mean) + self.noise_variance
        slope = self.cells_per_level * self.contrast * rates * empty
        return self.cells_per_level * mean, variance, slope

    def _probabilities(self) -> Floats:
        probabilities = 2.0 ** -np.arange(1, self.levels + 1)
        probabilities[-1] *= 2
        # One cell that takes everybody is full after one user: keep its rate finite.
        return np.minimum(probabilities, self.cells_per_level * (1 - 1e-9))


def confidence_interval(
    model: Model,
    estimate: float,
    confidence: float,
    *,
    limit: float,
    beyond: float,
    slack: float = 0.0,
) -> tuple[float, float]:
    """The true values from which `estimate` is not surprisingly far.

    The deviation is that of the candidate truth, not of the estimate, so intervals are right
    where the deviation changes fast.

    Args:
        model: how estimates stray from the truth.
        estimate: the estimate, 0 .. limit.
        confidence: probability that the interval covers the truth.
        limit: the largest candidate.
        beyond: the upper end when even `limit` is not surprising.
        slack: added to what is not yet surprising.
    """
    quantile = noise_quantile(confidence, model.output_share(estimate))

    def surprising(truth: Floats) -> NDArray[np.bool_]:
        return np.abs(truth - estimate) > quantile * model.deviation(truth) + slack

    step = float(quantile * model.deviation(estimate)) + slack
    low = _first(surprising, estimate, -step, 0.0)
    high = _first(surprising, estimate, step, limit)
    return (0.0 if low is None else low), (beyond if high is None else high)


def _first(
    condition: Callable[[Floats], NDArray[np.bool_]], start: float, step: float, end: float
) -> float | None:
    """The value nearest to `start` on the way to `end` that meets the condition."""
    span = abs(end - start)
    if span == 0:
        return None
    distances = np.append(np.geomspace(min(abs(step) / 8, span / 2), span, _GRID), span)
    points = start + math.copysign(1, step) * np.concatenate(([0.0], distances))
    for _ in range(_ZOOMS):
        met = condition(points)
        if not met.any():
            return None
        first = max(int(np.argmax(met)), 1)
        points = np.linspace(points[first - 1], points[first], _GRID + 1)
    return float(points[-1])


def discrete_laplace_variance(scale: float) -> float:
    """The variance of integer noise with `P(k)` proportional to `exp(-|k|/scale)`."""
    ratio = math.exp(-1 / scale)
    return 2 * ratio / math.expm1(-1 / scale) ** 2 if scale < 1e8 else 2 * scale**2


@functools.lru_cache(maxsize=4096)
def noise_quantile(confidence: float, output_share: float) -> float:
    """How many standard deviations a two-sided interval must reach.

    The error is a normal part (bits, sampling, hashing) plus a Laplace part with `output_share`
    of the variance, whose tails are heavier.
    """
    normal = -NormalDist().inv_cdf((1 - confidence) / 2)
    if output_share < 0.01:
        return normal
    low, high = 0.0, 8 * normal + 8
    for _ in range(60):
        middle = (low + high) / 2
        below = 2 * _upper_tail(middle, min(output_share, 1 - 1e-9)) > 1 - confidence
        low, high = (middle, high) if below else (low, middle)
    return high


def _upper_tail(x: float, output_share: float) -> float:
    """`P(X > x)` for a normal plus a Laplace variable, of total variance 1."""
    deviation, scale = math.sqrt(1 - output_share), math.sqrt(output_share / 2)
    ratio = deviation / scale
    spread = math.exp(ratio**2 / 2)
    falling = math.exp(-x / scale) * _phi(x / deviation - ratio)
    rising = math.exp(x / scale) * _phi(-x / deviation - ratio)
    return _phi(-x / deviation) + spread * (falling - rising) / 2


def _phi(x: float) -> float:
    """The normal distribution function, accurate in the lower tail."""
    return math.erfc(-x / math.sqrt(2)) / 2
