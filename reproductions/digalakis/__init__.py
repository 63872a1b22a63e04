"""Figures 1 to 7 of Digalakis et al., as printed, as repaired, and beside `Density`.

    python -m reproductions.digalakis              # all of them, three minutes
    python -m reproductions.digalakis.figure_6     # one

V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream density estimation". The
paper gives epsilon to the state and epsilon to the output, and so claims `2 epsilon`. That is what
the repaired estimators and `Density` lose in truth: *equal true loss*. *Equal memory* gives
`Density` as many bytes as a sample of ids takes, at four bytes an id.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from panprivacy.papers.published.digalakis_density import OptBernSizes, PPDSSizes
from panprivacy.papers.published.digalakis_theory import (
    BitProbabilities,
    Estimator,
    dwork_bits,
    printed_noise,
    repaired_noise,
    tuned_bits,
)
from panprivacy.papers.published.dwork_density import DworkSizes
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.statistics.density.sizes import DensitySizes
from panprivacy.tables.planning.request import Request

FOLDER = Path(__file__).parent
UNIVERSE = STEPS = 100_000
ID_BYTES = 4
SEED = 2018

GRID = np.arange(1, 26) / 50
"""The epsilons of what is computed."""

EPSILONS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5])
"""The epsilons of what is simulated."""

COLORS = {"Dwork": "C3", "OptBern": "C1", "PPDS": "C4", "Density": "C0"}
PRINTED, REPAIRED = {"linestyle": "--"}, {"linestyle": "-"}

BITS: Mapping[str, Callable[[float], BitProbabilities]] = {
    "Dwork": dwork_bits,
    "OptBern": tuned_bits,
}
SIZES = {"Dwork": DworkSizes, "OptBern": OptBernSizes, "PPDS": PPDSSizes, "Density": DensitySizes}


def printed(name: str, epsilon: float) -> Estimator:
    """An estimator as printed, with this epsilon for each of its two halves."""
    bits = BITS[name](epsilon)
    return Estimator(bits, printed_noise(bits, epsilon))


def repaired(name: str, total: float, cells: int) -> DensityPlan:
    """The plan of the class that is the repaired estimator, and loses so much in all.

    Args:
        name: which of `SIZES`.
        total: state and release together.
        cells: users in the sample; of PPDS the ids that it has room for.
    """
    request = Request(Fraction(str(round(total, 9))))
    return SIZES[name](universe=UNIVERSE, cells=cells).plan(request)


def as_planned(plan: DensityPlan) -> Estimator:
    """What the formulas need to know of a plan: its bits and its noise."""
    model = plan.model(0)
    bits = BitProbabilities(model.absent_mean, model.absent_mean + model.contrast)
    return Estimator(bits, repaired_noise(float(plan.split.budget.release)))


def fitting(ids: int) -> int:
    """How many cells a `Density` has in the memory of so many ids: one a user is enough."""
    return min(UNIVERSE, 8 * ID_BYTES * ids)


def save(name: str, figure: Figure, rows: Iterable[Mapping[str, object]]) -> None:
    """Write the picture and its numbers beside the script, and print the numbers."""
    listed = list(rows)
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, listed[0], lineterminator="\n")
        table.writeheader()
        table.writerows({key: shown(value) for key, value in row.items()} for row in listed)
    print((FOLDER / f"{name}.csv").read_text(), end="")
    figure.savefig(FOLDER / f"{name}.png", metadata={"Software": None})


def shown(value: object) -> object:
    """Six digits of a float: so many are the same on every machine."""
    return f"{value:.6g}" if isinstance(value, float) else value


def label_epsilon(axis: Axes) -> None:
    """Say what epsilon is, in all figures alike."""
    axis.set(xlabel="epsilon of each half; 2 epsilon is claimed")
