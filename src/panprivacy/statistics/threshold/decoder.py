"""How many users are beyond a threshold, from what their counters count for.

Where it is soft, a cell whose user is in state `a` counts with an expectation of
`absent + contrast * g(a/L)`, exactly, where `g(x) = min(max(x - 1, 0), 1)` and `L` is the lower
threshold; docs/guarantees/heavy.md has the proof. Where it is hard, a cell has a score by its
value, whose expectation is `absent`, or `absent + contrast` where the user counts, up to rounding;
docs/guarantees/thresholds.md has the proof. So both counts are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.decoders.blocks import CroppedModel
from panprivacy.decoders.intervals import Floats


@dataclass(frozen=True, slots=True)
class ThresholdModel(CroppedModel):
    """The sum over users of what each counts, 0 to 1; a cell may count for more than that.

    Args:
        below: the variance of what a cell counts for whose user does not count, at most.
        above: the same where the user counts.
    """

    below: float
    above: float

    def deviation(self, truth: ArrayLike) -> Floats:
        """Cells, output noise, and sampling without replacement, at most.

        Users of a sample differ most from one another where each counts in full or not at all.
        """
        mean = np.asarray(truth, float) / (self.tables * self.universe)
        left_out = (self.universe - self.cells) / max(self.universe - 1, 1)
        sampling = left_out * self.contrast**2 * np.maximum(mean * (1 - mean), 0)
        each = self.below + (self.above - self.below) * np.clip(mean, 0, 1)
        variance = self.tables * self.cells * (each + sampling) + self.noise_variance
        return np.sqrt(variance) * self._unit
