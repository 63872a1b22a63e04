"""How often an answer is off by alpha or more, over epsilon.

    python -m reproductions.digalakis.figure_4

A sample of a twentieth of the users, alpha 0.1, 1,000 runs for each epsilon. The paper says that
its bounds are far above; they are drawn as well.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from reproductions.digalakis import (
    BITS,
    COLORS,
    EPSILONS,
    PRINTED,
    REPAIRED,
    SEED,
    UNIVERSE,
    as_planned,
    fitting,
    label_epsilon,
    printed,
    repaired,
    save,
)
from reproductions.digalakis.simulated import (
    distinct,
    printed_answers,
    repaired_answers,
    streams,
)

USERS, ALPHA, RUNS = UNIVERSE // 20, 0.1, 1_000


def failures(
    epsilon: float, came: NDArray[np.int64], generator: np.random.Generator
) -> dict[str, float]:
    """The share of runs that are off, of each estimator."""
    answers = {
        f"{name} printed": printed_answers(printed(name, epsilon), USERS, came, generator)
        for name in BITS
    }
    for label, name, cells in (
        ("Dwork repaired", "Dwork", USERS),
        ("OptBern repaired", "OptBern", USERS),
        ("Density equal memory", "Density", fitting(USERS)),
    ):
        one = as_planned(repaired(name, 2 * epsilon, cells))
        answers[label] = repaired_answers(one, cells, came, generator)
    return {
        name: float(np.mean(abs(some - came / UNIVERSE) >= ALPHA)) for name, some in answers.items()
    }


def rows(kind: str, epsilons: list[float], runs: int) -> list[dict[str, object]]:
    """The shares and the bounds by epsilon."""
    generator = np.random.default_rng(SEED)
    came = np.array([distinct(stream) for stream in streams(kind, runs, generator)])
    return [
        {"stream": kind, "epsilon": epsilon}
        | failures(epsilon, came, generator)
        | {f"{name} bound": printed(name, epsilon).min_beta(ALPHA, USERS) for name in BITS}
        for epsilon in epsilons
    ]


def main() -> None:
    """Simulate and draw."""
    figure = Figure(figsize=(11, 4.4), layout="constrained", dpi=90)
    axes = figure.subplots(1, 2, sharey=True)
    table = []
    for axis, kind in zip(axes, ("uniform", "zipf"), strict=True):
        found = rows(kind, EPSILONS.tolist(), RUNS)
        table += found
        for name in BITS:
            for what, style in (("printed", PRINTED), ("repaired", REPAIRED)):
                shares = [row[f"{name} {what}"] for row in found]
                look = {"color": COLORS[name], "marker": "o", "markersize": 3, **style}
                label = f"{name}, {what}"
                if label == "OptBern, repaired":
                    label += "\n= Density, equal users"
                axis.plot(EPSILONS, shares, label=label, **look)
            bounds = [row[f"{name} bound"] for row in found]
            look = {"color": COLORS[name], "linestyle": ":"}
            axis.plot(EPSILONS, bounds, label=f"{name}, bound", **look)
        shares = [row["Density equal memory"] for row in found]
        look = {"color": COLORS["Density"], "marker": "D", "markersize": 4}
        axis.plot(EPSILONS, shares, label="Density, equal memory", **look)
        label_epsilon(axis)
        axis.set_title(f"{kind} stream")
    axes[0].set_ylabel(f"share of runs that are off by {ALPHA:g} or more")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    save("figure_4", figure, table)


if __name__ == "__main__":
    main()
