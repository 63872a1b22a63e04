"""The share of a universe, from the number of ones in a table of bits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.tables.decoders.intervals import EstimateModel, Floats, confidence_interval


@dataclass(frozen=True, slots=True)
class DensityModel(EstimateModel):
    """The share of a universe, from the noised number of ones in a table of one user a cell.

    Args:
        universe: number of possible users.
        cells: number of users that have a cell.
        contrast: `c`, by how much the mean of a cell rises when its user appears.
        noise_variance: variance of the output noise on the count.
        tables: how many such tables are counted together, each of other users.
    """

    universe: int
    cells: int
    contrast: float
    noise_variance: float
    tables: int = field(default=1, kw_only=True)

    def estimate(self, ones: ArrayLike) -> float:
        """The unbiased estimate, cut to 0 .. 1."""
        return min(max(self.unbiased(ones), 0.0), 1.0)

    def unbiased(self, ones: ArrayLike) -> float:
        """The estimate before it is cut."""
        mean = float(np.sum(ones)) / self.cells
        return (mean - self.tables * self.absent_mean) / self.contrast

    @property
    def absent_mean(self) -> float:
        """The mean of a cell whose user did not appear."""
        return (1 - self.contrast) / 2

    def deviation(self, truth: ArrayLike) -> Floats:
        """Bits, output noise, and sampling without replacement."""
        share = np.asarray(truth, float)
        left_out = (self.universe - self.cells) / max(self.universe - 1, 1)
        sampling = share * (1 - share / self.tables) / self.cells * left_out
        return np.sqrt(self._noise_variance(share) + sampling)

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        output = self.noise_variance / (self.contrast * self.cells) ** 2
        total = float(self.deviation(truth)) ** 2
        return output / total if total else 0.0

    def _noise_variance(self, share: Floats) -> Floats:
        bits = self.tables * self.cells * self.cell_variance(share)
        return (bits + self.noise_variance) / (self.contrast * self.cells) ** 2

    def cell_variance(self, share: Floats) -> Floats:
        """The variance of a cell, given whether its user appeared, on average over users."""
        return np.full_like(share, (1 - self.contrast**2) / 4)

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval within 0 .. 1; half a count covers that counts are whole."""
        half_count = 0.5 / (self.contrast * self.cells)
        return confidence_interval(
            self, estimate, confidence, limit=1.0, beyond=1.0, slack=half_count
        )
