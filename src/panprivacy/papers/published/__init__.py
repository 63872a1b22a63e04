"""The papers' own algorithms, repaired: baselines for the statistics that replace them.

Each keeps the claim of its docstring, and the audit walks it like any other. What is printed, what
of it fails and what was repaired is on docs/published.md. For answers take `Density`,
`Incidence`, `CroppedSum`, `DistinctCount` and `HeavyHitterCount`, which err less.
"""

from typing import Any

from panprivacy.papers.published.digalakis_density import (
    ContinuousDensity,
    OptBernDensity,
    PPDSDensity,
)
from panprivacy.papers.published.dwork_density import DworkDensity, loss_of_bias
from panprivacy.papers.published.dwork_roth_density import DworkRothDensity
from panprivacy.papers.published.mir_calibrated_distinct import CalibratedDistinctCount
from panprivacy.papers.published.mir_calibrated_norm import CalibratedNorm
from panprivacy.papers.published.mir_exponential import StableDistinctCount
from panprivacy.papers.published.mir_laplace import CalibratedTotal, LaplaceNorm
from panprivacy.papers.published.mir_sketches import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
)
from panprivacy.papers.published.naor_incidence import PrimeHistograms, PrimeIncidence, draw_primes

PUBLISHED: list[type[Any]] = [
    CroppedFirstMoment,
    CroppedDistinctCount,
    CroppedHeavyHitters,
    PrimeIncidence,
    DworkDensity,
    OptBernDensity,
    PPDSDensity,
    ContinuousDensity,
    DworkRothDensity,
    CalibratedNorm,
    LaplaceNorm,
    CalibratedTotal,
    CalibratedDistinctCount,
    StableDistinctCount,
]
"""Classes that the audit walks and that the contract suite runs, one class a line. The `entry` of
each has `walks` and `trials`."""

__all__ = [
    "PUBLISHED",
    "CalibratedDistinctCount",
    "CalibratedNorm",
    "CalibratedTotal",
    "ContinuousDensity",
    "CroppedDistinctCount",
    "CroppedFirstMoment",
    "CroppedHeavyHitters",
    "DworkDensity",
    "DworkRothDensity",
    "LaplaceNorm",
    "OptBernDensity",
    "PPDSDensity",
    "PrimeHistograms",
    "PrimeIncidence",
    "StableDistinctCount",
    "draw_primes",
    "loss_of_bias",
]
