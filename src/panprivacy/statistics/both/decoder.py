"""Users of two streams, from the noised numbers of cells that show each pair of bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.occupancy import OccupancyModel
from panprivacy.statistics.overlaps.pairs import PairNoise
from panprivacy.statistics.overlaps.patterns import CellLayout, Floats, PatternCounts, members
from panprivacy.statistics.overlaps.weighing import weigh
from panprivacy.statistics.release import Release
from panprivacy.tables.cells.pairs import PAIRS
from panprivacy.tables.decoders.intervals import Measured

LEFT, RIGHT = members(2)
BOTH = LEFT & RIGHT


@dataclass(frozen=True, slots=True)
class BothModel:
    """The number of users of both streams, of noised counts of cells.

    Truths are numbers of users of either stream, of whom a given share is in both.

    Args:
        layout: of the cells.
        noise: of the two bits of a cell.
        noise_variance: of the output noise on each count.
        share: of the users of a stream who are in the other one too, for predictions.
        tables: how many tables of other users there are, whose counts stand side by side.
    """

    layout: CellLayout
    noise: PairNoise
    noise_variance: float
    share: float
    tables: int = 1

    def observed(self, counts: ArrayLike) -> list[PatternCounts]:
        """Return what each table shows, where noise does not change the number of cells.

        Args:
            counts: of each table, level and pair of bits.
        """
        noised = np.asarray(counts, float).reshape(self.tables, self.layout.levels, PAIRS)
        missing = self.layout.cells_per_level - noised.sum(axis=-1, keepdims=True)
        known = self.noise.absent, self.noise.present, self.noise, self.noise_variance
        return [PatternCounts(self.layout, one, *known) for one in noised + missing / PAIRS]

    def measured(self, ones: ArrayLike) -> Measured:
        """Return the estimate before it is cut, its standard error and its bias."""
        found = self._both(ones, 0.95)
        return Measured(found.estimate, found.standard_error)

    def estimate(self, ones: ArrayLike) -> float:
        """Return the estimate of users of both streams, not below 0."""
        return self._both(ones, 0.95).value

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """Return the estimate, and both ends of its confidence interval."""
        found = self._both(ones, confidence)
        return found.value, found.low, found.high

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of users of both, for users of either stream."""
        return self._deviation(truth, self.noise_variance)

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that output noise causes, 0 to 1."""
        whole = float(self._deviation(truth, self.noise_variance))
        return 1 - (float(self._deviation(truth, 0.0)) / whole) ** 2 if whole else 0.0

    def _deviation(self, truth: ArrayLike, noise_variance: float) -> Floats:
        model, chosen = OccupancyModel(self.layout, self.noise), BOTH.astype(float)
        users = np.maximum(np.asarray(truth, float), 1.0) / self.tables
        only, both = (1 - self.share) * users, self.share * users
        patterns = np.stack([np.zeros_like(users), only, only, both], axis=-1)
        weighing = weigh(model, patterns, np.broadcast_to(chosen, patterns.shape))
        variance = weighing.variance - model.fixed(patterns, chosen)
        output = noise_variance * weighing.noise(self.layout)
        return np.asarray(np.sqrt(self.tables * np.maximum(variance + output, 0.0)))

    def _both(self, counts: ArrayLike, confidence: float) -> Release:
        return operations.intersection(self.observed(counts), confidence=confidence)
