"""Weights of patterns and levels in an estimate of a sum over patterns of users.

Within a level there are as many unknown numbers as patterns, less one, so that a level has one
unbiased estimate of each. Levels are combined by the quasi-score of all unions together, with
matrices as weights: that is efficient. Of more tables than `MOST_JOINT` they are combined by one
weight each, that of the sum itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panprivacy.statistics.overlaps.occupancy import OccupancyModel
from panprivacy.statistics.overlaps.patterns import CellLayout, Floats

MOST_JOINT = 6
_LEAST_VARIANCE = 1e-30
_LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True, slots=True)
class Weighing:
    """The linear estimate of sums over patterns, near given numbers of users.

    Args:
        influence: change of the estimate by each share of patterns; float64[..., levels, 2**k].
        variance: of the estimate, if users came from Poisson laws; float64[...].
        along: covariance of the estimate with those of all unions; float64[..., 2**k].
    """

    influence: Floats
    variance: Floats
    along: Floats

    def noise(self, layout: CellLayout) -> Floats:
        """Return the variance that noise of variance 1 on each count of cells adds; float64[...].

        Counts of a level are made to add up, so that only differences of influences matter.

        Args:
            layout: of the tables.
        """
        centred = self.influence - self.influence.mean(axis=-1, keepdims=True)
        return np.asarray((centred**2).sum(axis=(-2, -1)) / layout.cells_per_level**2)


def weigh(model: OccupancyModel, users: Floats, chosen: Floats) -> Weighing:
    """Return the best linear estimate of `chosen @ n`.

    Args:
        model: the law of patterns.
        users: of each pattern, none below 0; float64[..., 2**k].
        chosen: weights of patterns, 0 for the users of no table; float64[..., 2**k].
    """
    several = model.layout.levels > 1 and model.tables <= MOST_JOINT
    return (_jointly if several else alone)(model, users, chosen)


def alone(model: OccupancyModel, users: Floats, chosen: Floats) -> Weighing:
    """Combine the estimates of levels by the inverse of their variances."""
    weights = model.weights(chosen)
    weights[..., 0] = 0
    empty = model.empty(model.unions(users))
    slopes = model.slopes(empty)
    by_level = model.noise.influence(weights[..., None, :] / slopes)
    law = model.noise.law(empty)
    product = law * by_level
    mean = product.sum(axis=-1)
    spread = (product * by_level).sum(axis=-1) - mean**2
    variances = np.maximum(spread, _LEAST_VARIANCE) / model.layout.cells_per_level
    variance = 1 / (1 / variances).sum(axis=-1)
    shares = (variance[..., None] / variances)[..., None]
    together = model.noise.debias(product) - empty * mean[..., None]
    along = (shares**2 * together / slopes).sum(axis=-2) / model.layout.cells_per_level
    return Weighing(shares * by_level, variance, along)


def _jointly(model: OccupancyModel, users: Floats, chosen: Floats) -> Weighing:
    """Combine the estimates of all unions by the inverse of their covariance matrices.

    The information of a level about its shares of empty cells is that of a multinomial law.
    """
    cells, weights = model.layout.cells_per_level, model.weights(chosen)[..., 1:]
    empty = model.empty(model.unions(users))
    law = np.maximum(model.noise.law(empty), _LEAST_PROBABILITY)
    by_union = model.noise.law(np.eye(1 << model.tables))[1:]
    rises = model.slopes(empty)[..., 1:, None] * by_union  # float64[..., levels, 2**k - 1, 2**k]
    scores = rises / law[..., None, :]
    information = cells * (scores @ np.swapaxes(rises, -1, -2)).sum(axis=-3)
    inner = _solved(information, weights)
    influence = cells * (inner[..., None, :, None] * scores).sum(axis=-2)
    along = np.concatenate((np.zeros_like(inner[..., :1]), inner), axis=-1)
    return Weighing(influence, (weights * inner).sum(axis=-1), along)


def _solved(information: Floats, weights: Floats) -> Floats:
    """Return the product of inverse matrices and vectors, where all diagonals are made 1 first."""
    size = np.sqrt(np.einsum("...ii->...i", information))
    size = np.maximum(size, np.max(size, axis=-1, keepdims=True) * _LEAST_PROBABILITY)
    scaled = information / size[..., None] / size[..., None, :]
    scaled = scaled + _LEAST_PROBABILITY * np.eye(scaled.shape[-1])
    solved = np.linalg.solve(scaled, (weights / size)[..., None])[..., 0]
    return np.asarray(solved / size)
