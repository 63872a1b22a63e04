"""How many users are beyond a soft threshold, from how many counters are outside of their values.

A cell whose user is in state `a` counts with an expectation of `absent + contrast * g(a/L)`,
exactly, where `g(x) = min(max(x - 1, 0), 1)` and `L` is the lower threshold. So the count is
unbiased for the sum of `g`; docs/guarantees/heavy.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.decoders.blocks import CroppedModel
from panprivacy.decoders.intervals import Floats


@dataclass(frozen=True, slots=True)
class ThresholdModel(CroppedModel):
    """The sum of `g` over users; a cell may count twice.

    Args:
        variance: of what a cell counts for, given its user's state, at most.
    """

    variance: float

    def deviation(self, truth: ArrayLike) -> Floats:
        """Cells, output noise, and sampling without replacement, at most.

        Users of a sample differ most from one another where each counts in full or not at all.
        """
        mean = np.asarray(truth, float) / self.universe
        left_out = (self.universe - self.cells) / max(self.universe - 1, 1)
        sampling = left_out * self.contrast**2 * np.maximum(mean * (1 - mean), 0)
        variance = self.cells * (self.variance + sampling) + self.noise_variance
        return np.sqrt(variance) * self._unit
