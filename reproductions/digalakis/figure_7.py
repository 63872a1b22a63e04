"""The mean squared error over the size of the sample, at epsilon 0.2.

    python -m reproductions.digalakis.figure_7       # a minute

300 runs for each point.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from reproductions.digalakis import UNIVERSE, save
from reproductions.digalakis.errors import KINDS, LOOKS, RUNS, draw, simulated

EPSILON = 0.2
SIZES = [UNIVERSE * share // 1_000 for share in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)]


def main() -> None:
    """Simulate and draw."""
    figure = Figure(figsize=(11, 4.6), layout="constrained", dpi=90)
    axes = figure.subplots(1, 2, sharey=True)
    table = []
    for axis, kind in zip(axes, KINDS, strict=True):
        found = simulated(kind, [(users, EPSILON) for users in SIZES], RUNS, ppds=True)
        table += found
        draw(axis, found, "users", LOOKS)
        axis.set(xscale="log", xlabel="users in the sample, or ids", title=f"{kind} stream")
    axes[0].set_ylabel(f"mean squared error at epsilon {EPSILON:g}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    save("figure_7", figure, table)


if __name__ == "__main__":
    main()
