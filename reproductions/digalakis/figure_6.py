"""The mean squared error of all three algorithms over epsilon.

    python -m reproductions.digalakis.figure_6       # a minute

300 runs for each point.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from reproductions.digalakis import EPSILONS, UNIVERSE, label_epsilon, save
from reproductions.digalakis.errors import KINDS, LOOKS, RUNS, draw, simulated

SIZES = UNIVERSE // 1_000, UNIVERSE // 100


def main() -> None:
    """Simulate and draw."""
    figure = Figure(figsize=(11, 7.4), layout="constrained", dpi=90)
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    table = []
    for column, kind in enumerate(KINDS):
        settings = [(users, float(epsilon)) for users in SIZES for epsilon in EPSILONS]
        found = simulated(kind, settings, RUNS, ppds=True)
        table += found
        for axis, users in zip(axes[:, column], SIZES, strict=True):
            draw(axis, [row for row in found if row["users"] == users], "epsilon", LOOKS)
            axis.set_title(f"{kind} stream, {users:,} users or ids")
    for axis in axes[:, 0]:
        axis.set_ylabel("mean squared error")
    for axis in axes[1]:
        label_epsilon(axis)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    save("figure_6", figure, table)


if __name__ == "__main__":
    main()
