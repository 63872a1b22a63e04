"""Sums of what users count, from how many counters are outside of the high values of their law.

A cell whose user is in state `a` counts with probability `absent + contrast * min(|a|, tau)/tau`,
exactly. So the count is unbiased, and only its variance depends on how the sum is spread over
users: it is largest where all are in nearly one state.
docs/laws.md and docs/guarantees/decoding.md have the proofs.

Of thresholds, and where values have scores, a cell counts for more than 0 or 1:
docs/guarantees/heavy.md has the proof for soft thresholds, thresholds.md beside it for scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.tables.decoders.intervals import EstimateModel, Floats, confidence_interval


@dataclass(frozen=True, slots=True)
class CroppedModel(EstimateModel):
    """The sum of `min(|state|, tau)`, from the noisy count of cells, one user a cell.

    Args:
        universe: number of possible users.
        cells: number of users that have a cell.
        tau: the crop of states.
        absent: probability that a cell of state 0 counts.
        contrast: how much more often a cell of a state of tau or more does.
        noise_variance: variance of the output noise on the count.
        tables: how many such tables are counted together, each of other users.
    """

    universe: int
    cells: int
    tau: int
    absent: float
    contrast: float
    noise_variance: float
    tables: int = field(default=1, kw_only=True)

    @property
    def limit(self) -> float:
        """The largest possible sum."""
        return float(self.tau * self.universe)

    def estimate(self, ones: ArrayLike) -> float:
        """Return the unbiased estimate, cut to 0 .. limit."""
        return min(max(self.unbiased(ones), 0.0), self.limit)

    def unbiased(self, ones: ArrayLike) -> float:
        """Return the estimate before it is cut."""
        mean = float(np.sum(ones)) / self.cells
        return (mean - self.tables * self.absent) / self.contrast * self.limit

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the variance: cells, output noise, and sampling without replacement.

        The variance of the count is that of as many coins of the mean probability, less what the
        states differ from one another; they differ least where all are the two whole numbers
        around their mean.
        """
        mean = np.asarray(truth, float) / (self.tables * self.universe)
        coin = self.absent + self.contrast * mean / self.tau
        left = mean - np.floor(mean)
        least = self._unsampled_share * (self.contrast / self.tau) ** 2 * left * (1 - left)
        cells = self.tables * self.cells
        variance = cells * np.maximum(coin * (1 - coin) - least, 0) + self.noise_variance
        return np.sqrt(variance) * self._unit

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that output noise causes."""
        total = float(self.deviation(truth)) ** 2
        return self.noise_variance * self._unit**2 / total if total else 0.0

    @property
    def _unsampled_share(self) -> float:
        """The part of the variance of states that sampling does not bring back."""
        return (self.cells - 1) / max(self.universe - 1, 1)

    @property
    def _unit(self) -> float:
        """Change of the estimate when one more cell counts."""
        return self.limit / (self.contrast * self.cells)

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return a confidence interval within 0 .. limit."""
        return self.interval_at(estimate, confidence)

    def interval_at(
        self, estimate: float, confidence: float, part: float = 1.0
    ) -> tuple[float, float]:
        """Return both ends of an interval of this part of the quantile, cut to 0 .. limit.

        Half a count covers that counts are whole.
        """
        ends = {"limit": self.limit, "beyond": self.limit, "slack": self._unit / 2}
        return confidence_interval(self, estimate, confidence, part=part, **ends)


@dataclass(frozen=True, slots=True)
class ScoredModel(CroppedModel):
    """The sum over users of what each counts, 0 to tau; a cell may count for more than that.

    Args:
        below: the variance of what a cell counts for whose user does not count, at most.
        above: the same where the user counts.
    """

    below: float
    above: float

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return a variance bound: cells, output noise, and sampling without replacement.

        Users of a sample differ most from one another where each counts in full or not at all.
        """
        mean = np.asarray(truth, float) / (self.tables * self.limit)
        left_out = (self.universe - self.cells) / max(self.universe - 1, 1)
        sampling = left_out * self.contrast**2 * np.maximum(mean * (1 - mean), 0)
        each = self.below + (self.above - self.below) * np.clip(mean, 0, 1)
        variance = self.tables * self.cells * (each + sampling) + self.noise_variance
        return np.sqrt(variance) * self._unit
