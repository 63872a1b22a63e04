"""The cropped sum of users that share hashed cells.

The count of cells is unbiased for the sum of `min(state of a cell, tau)`, which is smaller than
that over users; how much smaller at most is known. docs/decoding.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.decoders.blocks import CroppedModel
from panprivacy.decoders.intervals import Floats


@dataclass(frozen=True, slots=True)
class HashedCroppedModel(CroppedModel):
    """The same of users that share hashed cells; states are at least 0, and `universe` is `cells`.

    The sum over cells is at most that over users, and least where each user has tau or nothing:
    then it is that of an occupancy problem. The estimate lies between the two.
    """

    def estimate(self, ones: ArrayLike) -> float:
        """About the middle of what the sum over users may be."""
        return float(self._between(CroppedModel.estimate(self, ones)))

    def deviation(self, truth: ArrayLike) -> Floats:
        """The root mean square of the error, wherever in between the truth is."""
        most = np.asarray(truth, float)
        least = self.limit * -np.expm1(-most / self.limit)
        bias = np.maximum(self._between(most) - most, most - self._between(least))
        return np.hypot(CroppedModel.deviation(self, least) * self._slope(least), bias)

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """From the lowest sum over cells to the largest over users; infinite if all are full."""
        twice = 2 * self.limit
        cells = min(-twice * math.expm1(-estimate / twice), self.limit)
        low, high = CroppedModel.interval(self, cells, confidence)
        full = high >= self.limit
        return low, math.inf if full else -self.limit * math.log1p(-high / self.limit)

    def _between(self, cells: ArrayLike) -> Any:
        """The sum over users if they took twice as many cells to be alone in."""
        twice = 2 * self.limit
        return -twice * np.log1p(-np.minimum(cells, self.limit) / twice)

    def _slope(self, cells: Floats) -> Floats:
        """By how much `_between` moves with the sum over cells."""
        return 1 / (1 - cells / (2 * self.limit))

    @property
    def _kept(self) -> float:
        """Nothing: how users meet in cells varies."""
        return 0.0
