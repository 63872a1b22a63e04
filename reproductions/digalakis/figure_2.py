"""By which factor an appearance changes the probability of a bit: the loss of a look at the state.

    python -m reproductions.digalakis.figure_2

The paper draws Algorithms 1 and 2. Beside them are the bits of `Density`, from its own cells, and
those of section 4.2 with `c = 4/5`, which it allows.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from panprivacy.papers.published.digalakis_theory import BitProbabilities, dwork_bits, tuned_bits
from panprivacy.tables.cells.bits import BitCells
from reproductions.digalakis import COLORS, GRID, save

OFF_CENTRE = "OptBern, c = 4/5"


def density_bits(epsilon: float) -> BitProbabilities:
    """The bits of a `Density` of which a look costs epsilon."""
    present = float(BitCells(1, Fraction(str(epsilon))).presence(0))
    return BitProbabilities(1 - present, present)


def rows(epsilons: list[float]) -> list[dict[str, float]]:
    """The two factors by epsilon."""
    kinds = {
        "Dwork": dwork_bits,
        "OptBern": tuned_bits,
        OFF_CENTRE: lambda epsilon: tuned_bits(epsilon, 0.8),
        "Density": density_bits,
    }
    return [
        {"epsilon": epsilon}
        | {
            f"R({bit}) {name}": ratio
            for name, bits in kinds.items()
            for bit, ratio in enumerate(bits(epsilon).ratios)
        }
        for epsilon in epsilons
    ]


def main() -> None:
    """Compute and draw."""
    table = rows(GRID.tolist())
    figure = Figure(figsize=(6.4, 4.6), layout="constrained", dpi=90)
    axis = figure.subplots()
    grid = np.linspace(0, GRID[-1], 50)
    axis.fill_between(grid, np.exp(-grid), np.exp(grid), color="0.92", label="epsilon allows")
    for name, style in (
        ("Dwork", {"color": COLORS["Dwork"], "linestyle": "--"}),
        (OFF_CENTRE, {"color": "C5", "linestyle": ":"}),
        ("OptBern", {"color": COLORS["OptBern"]}),
        ("Density", {"color": COLORS["Density"], "linestyle": "", "marker": "o", "markersize": 3}),
    ):
        for bit in (0, 1):
            ratios = [row[f"R({bit}) {name}"] for row in table]
            axis.plot(GRID, ratios, label=name if bit else None, **style)
    axis.annotate("R(1)", (0.44, 1.9))
    axis.annotate("R(0)", (0.44, 0.46))
    axis.set_ylim(0.008, 3)
    axis.set(yscale="log", ylabel="probability after over probability before")
    axis.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2])
    axis.set_yticklabels(["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"])
    axis.minorticks_off()
    axis.set(xlabel="epsilon that the state may cost")
    axis.set_title("What one appearance does to a bit")
    axis.legend(frameon=False, loc="lower left")
    save("figure_2", figure, table)


if __name__ == "__main__":
    main()
