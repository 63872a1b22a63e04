"""The plan of a `RunningHeavyHitters`: how many cells, and how they and the sums share epsilon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panprivacy.statistics.heavy.decoder import CellsModel, HeavyModel
from panprivacy.statistics.heavy.plan import Heavy
from panprivacy.statistics.release import Name
from panprivacy.statistics.running.sketch import EpsilonSplit, SketchPlan

_NEAR = np.linspace(-12, 12, 97)
"""Places around a corner where the noise of a cell is looked at, in scales of it."""


@dataclass(frozen=True, slots=True)
class RunningHeavyPlan(Heavy, SketchPlan):
    """The parameters of a `RunningHeavyHitters`.

    All of epsilon is the state's; the noise of the split is that of the worst step.

    Args:
        horizon: how many steps there are at most, each with an answer; the releases of the request.
        bound: the most that one event adds.
        spent: how cells and sums share epsilon.
    """

    horizon: int
    bound: int
    spent: EpsilonSplit

    proofs = ("running-cropped", "heavy", "running")
    checks = ("exact/test_running_sketches", "statistical/test_running_sketches")

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return (
            f"how many users hold at least 1/{self.k:,} of a public total of {self.total:,} by "
            f"now, at the end of each of up to {self.horizon:,} steps?"
        )

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "running_heavy_hitters", (("k", self.k),))

    @property
    def low(self) -> int:
        """A user counts from this state on; `total / 2k`, rounded down."""
        return self.total // (2 * self.k)

    @property
    def corners(self) -> tuple[int, ...]:
        """A cell counts from the second one to the first."""
        return self.high, self.low

    def model_of(self, noise_variance: float) -> HeavyModel:
        """Return the model of the sum, for this noise variance beside that of the cells.

        Cells add up to the total at most. So what their variance is above that of empty ones is
        at most what it is of the state that costs least for it.
        """
        scale = float(self.inner.scale)
        near = [corner + scale * _NEAR for corner in self.corners]
        states = np.unique(np.round(np.concatenate([*near, [self.low * 1.5]])))
        states = np.append(0.0, states[states >= 1])
        empty, *others = self.inner.variance(states)
        above = float(np.max((np.array(others) - empty) / states[1:]))
        each = (float(empty) + self.total * max(above, 0.0) / self.cells) / self.full**2
        return HeavyModel(CellsModel(self.cells, self.limit, 0.0, 1.0, each, noise_variance), 0.0)
