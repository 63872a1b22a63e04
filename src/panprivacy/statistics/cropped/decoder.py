"""The cropped sum of users that share hashed cells: of one level, and of many that halve in size.

The count of cells is unbiased for the sum of `min(state of a cell, tau)`, which is smaller than
that over users; how much smaller at most is known. What a level's cells add up to is at most the
cropped sum of the level's users, and at least what is left of it where each of them has tau or
nothing; crowded levels leave more open than sparse ones, which have more noise.
docs/guarantees/decoding.md has the proofs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.tables.decoders.blocks import CroppedModel
from panprivacy.tables.decoders.intervals import (
    Floats,
    Measuring,
    margin_beside,
    margins_beside,
    noise_quantiles,
    score_interval,
)
from panprivacy.tables.decoders.levels import level_shares

_LEAST_VARIANCE = 1e-30
"""At an enormous epsilon there is no noise that a float can hold."""

_CANDIDATES = 2_048
_UNLIKELY = 8.0
"""A sum whose likelihood is by so many powers of e below that of a larger one is not looked at."""


@dataclass(frozen=True, slots=True)
class SharedCellsModel(CroppedModel):
    """The sum over cells that users share; how users meet in cells varies."""

    @property
    def _unsampled_share(self) -> float:
        """Nothing: states of cells are no sample of states that stay as they are."""
        return 0.0


@dataclass(frozen=True, slots=True)
class HashedCroppedModel(SharedCellsModel):
    """The same of users that share hashed cells; states are at least 0, and `universe` is `cells`.

    The sum over cells is at most that over users, and least where each user has tau or nothing:
    then it is that of an occupancy problem. The estimate lies between the two.
    """

    def estimate(self, ones: ArrayLike) -> float:
        """About the middle of what the sum over users may be."""
        return min(max(self.unbiased(ones), 0.0), float(self._between(self.limit)))

    def unbiased(self, ones: ArrayLike) -> float:
        """The same where the sum over cells is below 0."""
        return float(self._between(CroppedModel.unbiased(self, ones)))

    def deviation(self, truth: ArrayLike) -> Floats:
        """The root mean square of the error, wherever in between the truth is."""
        return np.hypot(self.standard_error(truth), self.bias(truth))

    def standard_error(self, truth: ArrayLike) -> Floats:
        """The standard deviation alone."""
        least = self._least(truth)
        return CroppedModel.deviation(self, least) * self._slope(least)

    def bias(self, truth: ArrayLike) -> Floats:
        """Return the bound on the bias by collisions, as a distance from the middle."""
        most, least = np.asarray(truth, float), self._least(truth)
        bias: Floats = np.maximum(self._between(most) - most, most - self._between(least))
        return bias

    def _least(self, truth: ArrayLike) -> Floats:
        """The sum over cells where each user has tau or nothing."""
        least: Floats = self.limit * -np.expm1(-np.asarray(truth, float) / self.limit)
        return least

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return the interval of the sum over users; its end is infinite if all levels are full."""
        twice = 2 * self.limit
        cells = min(-twice * math.expm1(-estimate / twice), self.limit)
        over_cells = self._over_cells
        low, _ = over_cells.interval(cells, confidence)
        bias = (low + self.limit * math.expm1(-low / self.limit)) / 2
        part = margin_beside(bias, float(over_cells.deviation(cells)), confidence)
        low, high = over_cells.interval_at(cells, confidence, part)
        full = high >= self.limit
        return low, math.inf if full else -self.limit * math.log1p(-high / self.limit)

    def _between(self, cells: ArrayLike) -> Any:
        """The sum over users if they took twice as many cells to be alone in."""
        twice = 2 * self.limit
        return -twice * np.log1p(-np.minimum(cells, self.limit) / twice)

    def _slope(self, cells: Floats) -> Floats:
        """Return the slope of `_between` in the sum over cells."""
        return 1 / (1 - cells / (2 * self.limit))

    @property
    def _over_cells(self) -> SharedCellsModel:
        """The sum over cells, without what collisions hide."""
        sizes = self.universe, self.cells, self.tau
        return SharedCellsModel(*sizes, self.absent, self.contrast, self.noise_variance)


@dataclass(frozen=True, slots=True)
class LevelledCroppedModel(Measuring):
    """The sum of `min(state, tau)`, from the noised number of cells that count in each level.

    A cell whose users add up to `a` counts with probability
    `absent + contrast * min(a, tau)/tau`; no state is below 0. The weights of the levels make the
    largest mean squared error smallest, over noise and all that collisions may hide. `bias` bounds
    what collisions do to the mean of an answer.

    Args:
        levels: number of levels.
        cells_per_level: cells of each.
        noise_variance: variance of the output noise on each count.
        tau: where states are cropped.
        absent: how often a cell of state 0 counts.
        contrast: how much more often a cell of a state of tau or more does.
        sharing: so many users of one cell that have the largest state are told from none.
    """

    levels: int
    cells_per_level: int
    noise_variance: float
    tau: int
    absent: float
    contrast: float
    sharing: int

    @property
    def limit(self) -> float:
        """The largest sum that can be estimated: above it the last level is crowded too."""
        return self.tau * self.cells_per_level * 2.0 ** (self.levels - 1)

    def estimate(self, ones: ArrayLike) -> float:
        """The maximum quasi-likelihood estimate.

        It is looked for from above, where crowded levels have no weight, and no further down than
        is likely: what their cells may pass for has no part in it.
        """
        curves = _curves(self)
        score = curves.score(np.asarray(ones, float))
        rises = (score[1:] + score[:-1]) / 2 * np.diff(curves.truths)
        likelihood = np.concatenate(([0.0], np.cumsum(rises)))
        downwards = likelihood[::-1]
        unlikely = np.maximum.accumulate(downwards) - downwards >= _UNLIKELY
        end = int(np.argmax(unlikely)) if unlikely.any() else len(downwards)
        best = len(downwards) - 1 - int(np.argmax(downwards[: end or 1]))
        return _crossing(curves.truths, score, best)

    def unbiased(self, ones: ArrayLike) -> float:
        """The estimate, which is straight below 0."""
        value, curves = self.estimate(ones), _curves(self)
        if value > 0:
            return value
        _, slope, _, _ = self.parts(curves.truths[:1])
        below = float(curves.score(np.asarray(ones, float))[0])
        return min(below / float((curves.weights[0] * slope).sum()), 0.0)

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """The estimate, and the interval of all sums from which the counts are not too far.

        The upper end is infinite if that is so of the largest sum that the levels tell.
        """
        value, curves = self.estimate(ones), _curves(self)
        score = curves.score(np.asarray(ones, float))
        part = margins_beside(curves.hidden, curves.spread, confidence)
        quantiles = part * noise_quantiles(confidence, curves.shares)
        reach = curves.hidden + quantiles * curves.spread
        return score_interval(value, curves.truths, score, reach)

    def deviation(self, truth: ArrayLike) -> Floats:
        """The root mean square of the error, to first order, where collisions hide most or least.

        Where it is a large share of the truth, errors are larger.
        """
        return np.hypot(*self._errors(truth))

    def standard_error(self, truth: ArrayLike) -> Floats:
        """The standard deviation alone."""
        return self._errors(truth)[0]

    def bias(self, truth: ArrayLike) -> Floats:
        """Return how far collisions may move the mean: `sum w hidden / sum w slope`."""
        return self._errors(truth)[1]

    def _errors(self, truth: ArrayLike) -> tuple[Floats, Floats]:
        """Return the standard deviation, and how far collisions may move the mean."""
        weights, slope, noise, hidden = self._weighted(np.asarray(truth, float))
        spread = np.sqrt((weights**2 * noise).sum(axis=-1))
        slopes = weights * slope
        return _over(spread, slopes), _over((weights * hidden).sum(axis=-1), slopes)

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        weights, _, noise, _ = self._weighted(np.asarray(truth, float))
        total = float((weights**2 * noise).sum())
        return float((weights**2).sum()) * self.noise_variance / total if total else 1.0

    def _weighted(self, truth: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the weight, slope, variance and half-width of each level's count."""
        _, slope, noise, hidden = self.parts(truth)
        return _best_weights(slope, noise, hidden), slope, noise, hidden

    def parts(self, truth: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return each level's middle of the mean count, its slope, variance and half-width."""
        cells = self.cells_per_level
        rate = level_shares(self.levels) / (self.tau * cells)
        load = truth[..., None] * rate
        most, least = np.minimum(load, 1), self._least(load)
        middle = self.absent + self.contrast * (most + least) / 2
        hidden = self.contrast * (most - least) / 2
        slope = self.contrast * rate * np.where(load < 1, 1 + np.exp(-load), 0) / 2
        coin = np.clip(0.5, middle - hidden, middle + hidden)  # of the largest variance
        noise = np.maximum(cells * coin * (1 - coin) + self.noise_variance, _LEAST_VARIANCE)
        return cells * middle, cells * slope, noise, cells * hidden

    def _least(self, load: Floats) -> Floats:
        """The least mean of a cell, in units of tau, from the mean of its users' sums.

        A cell of more users than are told from none may pass for an empty one.
        """
        share = np.minimum(load / self.sharing, 1)
        beyond = (share * np.exp(1 - share)) ** self.sharing
        return np.maximum(-np.expm1(-load) - beyond, 0)


def deviations(models: Sequence[LevelledCroppedModel], truths: Floats) -> Floats:
    """Return the deviations of models of equally many levels, at once; float64[models, truths].

    They have one tau. Their other numbers are put side by side.
    """
    numbers = [
        (one.cells_per_level, one.noise_variance, one.absent, one.contrast) for one in models
    ]
    columns: Any = np.array(numbers, float).T[..., None, None]
    cells, noise, absent, contrast = columns
    one = models[0]
    several = LevelledCroppedModel(one.levels, cells, noise, one.tau, absent, contrast, one.sharing)
    return several.deviation(truths)


def _best_weights(slope: Floats, noise: Floats, hidden: Floats) -> Floats:
    """Return the weights of levels for which the largest mean squared error is smallest.

    An estimate with weights `w` has the variance `sum w**2 noise / (sum w slope)**2`, and a bias of
    at most `sum w hidden / sum w slope`. The minimum is at `w = max(slope - price hidden, 0)/noise`
    with `price = sum w hidden`. A sum of positive parts is the largest sum over any subset, so the
    price is the largest price of a subset. That one holds the levels with the largest ratios of
    slope to hidden, which are the last ones.

    [docs/guarantees/decoding.md]
    """
    last_first = (..., slice(None, None, -1))
    gained = np.cumsum((hidden * slope / noise)[last_first], axis=-1)
    paid = np.cumsum((hidden**2 / noise)[last_first], axis=-1)
    price = (gained / (1 + paid)).max(axis=-1, keepdims=True)
    weights: Floats = np.maximum(slope - price * hidden, 0) / noise
    return weights


def _over(score: Floats, slopes: Floats) -> Floats:
    """Return the change of the estimate by a score; infinite where no level is informative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(score / slopes.sum(axis=-1), nan=math.inf, posinf=math.inf)


@dataclass(frozen=True, slots=True)
class _SumCurves:
    """The expected counts of a model, for many sums.

    Args:
        truths: the sums, from 0.
        middle: of each level's mean count.
        weights: of the levels.
        spread: standard deviation of the weighted counts.
        hidden: by how much collisions may move them.
        shares: the part of the variance that output noise causes.
    """

    truths: Floats
    middle: Floats
    weights: Floats
    spread: Floats
    hidden: Floats
    shares: Floats

    def score(self, counts: Floats) -> Floats:
        """Return the weighted excess of the counts over their expectation for each sum."""
        return ((counts - self.middle) * self.weights).sum(axis=-1)


@functools.lru_cache(maxsize=16)
def _curves(model: LevelledCroppedModel) -> _SumCurves:
    beyond = model.limit * (1 - 1e-9)  # at the limit itself no level has a weight
    truths = np.concatenate(([0.0], np.geomspace(model.tau / 64, beyond, _CANDIDATES)))
    middle, slope, noise, hidden = model.parts(truths)
    weights = _best_weights(slope, noise, hidden)
    variance = (weights**2 * noise).sum(axis=-1)
    output = (weights**2).sum(axis=-1) * model.noise_variance
    return _SumCurves(
        truths,
        middle,
        weights,
        np.sqrt(variance),
        (weights * hidden).sum(axis=-1),
        np.clip(output / variance, 0, 1),
    )


def _crossing(truths: Floats, score: Floats, near: int) -> float:
    """Return the zero of the score next to a candidate."""
    before = near if score[near] > 0 else near - 1
    if before < 0 or before == len(truths) - 1:
        return float(truths[near])
    above, below = score[before], score[before + 1]
    if not above > 0 >= below:
        return float(truths[near])
    share = above / (above - below)
    return float(truths[before] + share * (truths[before + 1] - truths[before]))
