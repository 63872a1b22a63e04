"""The papers' own algorithms, repaired: baselines for the statistics that replace them.

Each keeps the claim of its docstring, and the audit walks it like any other. What is printed, what
of it fails and what was repaired is on docs/published.md. For answers take `Incidence`,
`CroppedSum`, `DistinctCount` and `HeavyHitterCount`, which err less.
"""

from panprivacy.published.mir_sketches import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
)
from panprivacy.published.naor_incidence import PrimeHistograms, PrimeIncidence, draw_primes

__all__ = [
    "CroppedDistinctCount",
    "CroppedFirstMoment",
    "CroppedHeavyHitters",
    "PrimeHistograms",
    "PrimeIncidence",
    "draw_primes",
]
