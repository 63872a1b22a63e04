"""The cropped sum of states, from levels of hashed cells that halve in popularity.

What a level's cells add up to is at most the cropped sum of the level's users, and at least what
is left of it where each of them has tau or nothing; crowded levels leave more open than sparse
ones, which have more noise. docs/decoding.md has the proofs.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.decoders.intervals import GRID, ZOOMS, Floats, interval_within, noise_quantile
from panprivacy.decoders.levels import level_shares

_RATIOS = np.geomspace(1 / 4, 4, 129)
"""Of an estimate to the truth."""

_LEAST_VARIANCE = 1e-30
"""At an enormous epsilon there is no noise that a float can hold."""


@dataclass(frozen=True, slots=True)
class LevelledCroppedModel:
    """The sum of `min(state, tau)`, from the noised number of cells that count in each level.

    A cell whose users add up to `a` counts with probability
    `absent + contrast * min(a, tau)/tau`; no state is below 0. A level is weighted by how much its
    count says, after the noise and all that collisions may hide.

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
        """With so large a sum the last level is crowded too, and no level tells it any more."""
        return self.tau * self.cells_per_level * 2.0 ** (self.levels - 1)

    def estimate(self, ones: ArrayLike) -> float:
        """The largest sum that the counts are not below: where their weighted residuals balance.

        It is looked for from above, where crowded levels have no weight: whatever their cells
        pass for, they have no part in it.
        """
        counts = np.asarray(ones, float)
        grid = np.concatenate(([0.0], np.geomspace(self.tau / 64, self.limit, 4 * GRID)))
        for _ in range(ZOOMS):
            above = np.flatnonzero(self._score(counts, grid) > 0)
            if not len(above):
                return float(grid[0])
            last = int(above[-1])
            grid = np.linspace(grid[last], grid[min(last + 1, len(grid) - 1)], GRID + 1)
        return float(grid[0])

    def deviation(self, truth: ArrayLike) -> Floats:
        """The root mean square of the error, at most, however collisions fall."""
        spread, hidden = self._errors(np.asarray(truth, float))
        return np.hypot(spread, hidden)

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        _, _, noise, _ = self._parts(np.asarray(truth, float))
        squares = self._weights(np.asarray(truth, float)) ** 2
        total = float((squares * noise).sum())
        return float(squares.sum()) * self.noise_variance / total if total else 1.0

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval; its upper end is infinite once all levels are full."""
        quantile = noise_quantile(confidence, self.output_share(estimate))

        truths, up, down = _shifts(self)

        def reach(truth: Floats) -> Floats:
            spread, _ = self._errors(truth)
            shifts = np.interp(truth, truths, up), np.interp(truth, truths, down)
            return quantile * spread + np.where(estimate > truth, *shifts)

        return interval_within(reach, estimate, limit=self.limit, beyond=math.inf)

    def _errors(self, truth: Floats) -> tuple[Floats, Floats]:
        """The standard deviation of an estimate, and by how much collisions may shift it."""
        _, slope, noise, hidden = self._parts(truth)
        weights = self._weights(truth)
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = 1 / (weights * slope).sum(axis=-1)
            spread = np.sqrt((weights**2 * noise).sum(axis=-1)) * unit
            shifted = (weights * hidden).sum(axis=-1) * unit
        return np.nan_to_num(spread, nan=math.inf), np.nan_to_num(shifted, nan=math.inf)

    def shifted(self, truth: Floats, side: int) -> Floats:
        """The estimate from counts without noise, if collisions hide nothing (1) or all (-1)."""
        middle, _, _, hidden = self._parts(truth)
        score = self._score((middle + side * hidden)[..., None, :], truth[..., None] * _RATIOS)
        after = len(_RATIOS) - np.argmax(score[..., ::-1] > 0, axis=-1)
        nearest = np.clip(after if side > 0 else after - 1, 0, len(_RATIOS) - 1)
        found: Floats = truth * _RATIOS[nearest]
        return found

    def _score(self, counts: Floats, truth: Floats) -> Floats:
        """By how much the counts are above what a sum lets expect, each by how much it says."""
        middle, *_ = self._parts(truth)
        score: Floats = ((counts - middle) * self._weights(truth)).sum(axis=-1)
        return score

    def _weights(self, truth: Floats) -> Floats:
        """By how much each level's count moves an estimate, up to a factor."""
        _, slope, noise, hidden = self._parts(truth)
        weights: Floats = slope / (noise + hidden**2)
        return weights

    def _parts(self, truth: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Of each level's count: the middle of its mean, that one's slope, variance, half-width."""
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
        least: Floats = np.maximum(-np.expm1(-load) - beyond, 0)
        return least


@functools.lru_cache(maxsize=16)
def _shifts(model: LevelledCroppedModel) -> tuple[Floats, Floats, Floats]:
    """By how much collisions may shift an estimate up and down, for many true sums."""
    truths = np.geomspace(model.tau / 64, model.limit, 256)
    up, down = (np.abs(model.shifted(truths, side) - truths) for side in (1, -1))
    return truths, up, down
