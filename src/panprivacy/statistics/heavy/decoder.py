"""How many users hold much of a total, from how many counters are outside of their high values.

A cell whose users add up to `x` times the lower threshold counts with an expectation of
`absent + contrast * g(x)`, exactly, where `g(x) = min(max(x - 1, 0), 1)`. So the count is unbiased
for the sum of `g` over cells. How far that may be from the sum over users, because of collisions
and of rounding, is known: docs/guarantees/decoding.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.tables.decoders.intervals import (
    EstimateModel,
    Floats,
    confidence_interval,
    margin_beside,
)


@dataclass(frozen=True, slots=True)
class CellsModel(EstimateModel):
    """The sum of `g` over cells, from the noised count.

    Args:
        cells: number of counters.
        limit: the largest possible sum.
        absent: what a cell of `g` 0 counts for, on average.
        contrast: how much more one of `g` 1 does.
        variance: of what a cell counts for, at most, on average over cells.
        noise_variance: variance of the output noise on the count.
    """

    cells: int
    limit: float
    absent: float
    contrast: float
    variance: float
    noise_variance: float

    def estimate(self, ones: ArrayLike) -> float:
        """The unbiased estimate, cut to 0 .. limit."""
        return min(max(self.unbiased(ones), 0.0), self.limit)

    def unbiased(self, ones: ArrayLike) -> float:
        """The estimate before it is cut."""
        return (float(np.sum(ones)) - self.absent * self.cells) / self.contrast

    def deviation(self, truth: ArrayLike) -> Floats:
        """At most: cells, output noise, and where users go, for each mean of the sum."""
        full = np.minimum(np.asarray(truth, float) / self.cells, 0.5)
        hashing = self.contrast**2 * full * (1 - full)
        counted = self.cells * (self.variance + hashing) + self.noise_variance
        return np.sqrt(counted) / self.contrast

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        return self.noise_variance / float(self.contrast * self.deviation(truth)) ** 2

    def interval(
        self, estimate: float, confidence: float, part: float = 1.0
    ) -> tuple[float, float]:
        """For the mean of the sum; half a count covers that counts are whole."""
        ends = {"limit": self.limit, "beyond": self.limit, "slack": 0.5 / self.contrast}
        return confidence_interval(self, estimate, confidence, part=part, **ends)


@dataclass(frozen=True, slots=True)
class HeavyModel(EstimateModel):
    """The sum of `g` over users; `truth` is that sum everywhere.

    Args:
        over_cells: what the count says about the sum over cells.
        rounding: by how much rounding may move the mean of that sum.
        tables: how many equal tables the cells are of, each of other users.
    """

    over_cells: CellsModel
    rounding: float
    tables: int = 1

    @property
    def _cells(self) -> float:
        """Among so many cells two users of one table meet."""
        return self.over_cells.cells / self.tables

    @property
    def lift(self) -> float:
        """The bound on the mean over cells less the sum over users: collisions and rounding.

        A pair of users lifts it by at most the product of their states in units of the lower
        threshold. All pairs together have at most half of the square of the whole stream.
        """
        return 2 * self.over_cells.limit**2 / self._cells + self.rounding

    def estimate(self, ones: ArrayLike) -> float:
        """The sum over cells."""
        return self.over_cells.estimate(ones)

    def unbiased(self, ones: ArrayLike) -> float:
        """The sum over cells before it is cut."""
        return self.over_cells.unbiased(ones)

    def deviation(self, truth: ArrayLike) -> Floats:
        """The root mean square of the error, however the stream is spread over users, at most."""
        return np.hypot(self.standard_error(truth), self.bias(truth))

    def standard_error(self, truth: ArrayLike) -> Floats:
        """The standard deviation alone, at most."""
        return self.over_cells.deviation(self._most(truth))

    def bias(self, truth: ArrayLike) -> Floats:
        """Return the bound on the bias of the mean by collisions and rounding."""
        users = np.asarray(truth, float)
        least = np.maximum(users - users**2 / (2 * self._cells) - self.rounding, 0)
        bias: Floats = np.maximum(self._most(users) - users, users - least)
        return bias

    def _most(self, truth: ArrayLike) -> Floats:
        """The largest mean of the sum over cells."""
        return np.minimum(np.asarray(truth, float) + self.lift, self.over_cells.limit)

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        return self.over_cells.output_share(truth)

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return the interval from the lowest mean less its bias, to the most hidden users."""
        _, high = self.over_cells.interval(estimate, confidence)
        most = float(self.over_cells.deviation(high))
        part = margin_beside((self.lift + self.rounding) / 2, most, confidence)
        low, high = self.over_cells.interval(estimate, confidence, part)
        cells, limit = self._cells, self.over_cells.limit
        left = 1 - 2 * (high + self.rounding) / cells
        users = limit if left <= 0 else cells * (1 - math.sqrt(left))
        return max(low - self.lift, 0.0), min(users, limit)
