"""The plan of a `RunningCroppedSum`: noisy sums of users' deltas, and a tree of steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.statistics.cropped.decoder import HashedCroppedModel
from panprivacy.statistics.cropped.plan import Cropped
from panprivacy.statistics.release import Name
from panprivacy.statistics.running.sketch import EpsilonSplit, SketchPlan
from panprivacy.tables.decoders.blocks import CroppedModel
from panprivacy.tables.decoders.intervals import Floats, confidence_interval


@dataclass(frozen=True, slots=True)
class RunningCroppedModel(CroppedModel):
    """The sum of `min(state, tau)`, from that over cells, one user a cell.

    Sums are in units of tau. Noise does not depend on states, but for the sample.
    """

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of all noise, and of sampling users of tau or nothing."""
        share = np.asarray(truth, float) / self.limit
        sampled = self.cells * (1 - self._unsampled_share) * share * (1 - share)
        return np.sqrt(sampled + self.noise_variance) * self._unit

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval within 0 .. limit."""
        ends = {"limit": self.limit, "beyond": self.limit}
        return confidence_interval(self, estimate, confidence, **ends)


@dataclass(frozen=True, slots=True)
class RunningCroppedPlan(Cropped, SketchPlan):
    """The parameters of a `RunningCroppedSum`.

    All of epsilon is the state's; the noise of the split is that of the worst step.

    Args:
        horizon: how many steps there are at most, each with an answer; the releases of the request.
        bound: the most that one event adds.
        spent: how cells and sums share epsilon.
    """

    expected: int | None
    horizon: int
    bound: int
    spent: EpsilonSplit

    proofs = ("running-cropped", "running")
    checks = ("exact/test_running_sketches", "statistical/test_running_sketches")

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return (
            f"how much have all users done so far, if nobody counts for more than {self.tau:,}, "
            f"at the end of each of up to {self.horizon:,} steps?"
        )

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "running_cropped_sum", (("tau", self.tau),))

    @property
    def corners(self) -> tuple[int, ...]:
        """Tau."""
        return (self.tau,)

    def model_of(self, noise_variance: float) -> CroppedModel:
        """Return the model of the sum, for this noise variance beside that of the cells."""
        variance = self.inner.variance(np.array([-np.inf, self.tau])).max()
        noise = self.cells * float(variance) / self.tau**2 + noise_variance
        sizes = self.universe or self.cells, self.cells, self.tau
        kind = RunningCroppedModel if self.universe else HashedCroppedModel
        return kind(*sizes, 0.0, 1.0, noise)
