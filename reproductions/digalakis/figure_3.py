"""What is allocated, and what is lost: by the state alone, and by state and output together.

    python -m reproductions.digalakis.figure_3

The paper draws the state of Algorithm 1. The output's noise is too small in all three algorithms.
For Algorithm 3 there is a bound from below for each number k of appearances, and none from above.
"""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from reproductions.digalakis import (
    BITS,
    COLORS,
    GRID,
    PRINTED,
    REPAIRED,
    as_planned,
    printed,
    repaired,
    save,
)

APPEARANCES = [1, 5, 20]
USERS = 1_000


def ppds_loss(epsilon: float, appearances: int) -> float:
    """What Algorithm 3 loses at least to a user who appears so often.

    The sample is one short of full and the user is not in it. The level stays as it is if none of
    the appearances adds him, with probability `(1 - t)/2` each; without him it surely stays.
    """
    return -appearances * math.log((1 - math.tanh(epsilon / 2)) / 2)


def rows(epsilons: list[float]) -> list[dict[str, float]]:
    """The losses by epsilon."""
    return [
        {"epsilon": epsilon}
        | {f"{name} state": printed(name, epsilon).bits.loss for name in BITS}
        | {f"{name} printed": printed(name, epsilon).loss for name in BITS}
        | {f"{name} repaired": as_planned(repaired(name, 2 * epsilon, USERS)).loss for name in BITS}
        | {f"PPDS, k = {k}": ppds_loss(epsilon, k) for k in APPEARANCES}
        for epsilon in epsilons
    ]


def main() -> None:
    """Compute and draw."""
    table = rows(GRID.tolist())
    figure = Figure(figsize=(9.6, 4.4), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2)
    left.plot(GRID, GRID, color="0.8", linewidth=6, label="allocated: epsilon")
    for name, style in (("OptBern", REPAIRED), ("Dwork", PRINTED)):
        losses = [row[f"{name} state"] for row in table]
        left.plot(GRID, losses, color=COLORS[name], label=name, **style)
    right.plot(2 * GRID, 2 * GRID, "k:", label="allocated; all as repaired")
    for appearances, style in zip(APPEARANCES, ["-.", "--", "-"], strict=True):
        name = f"PPDS, k = {appearances}"
        look = {"color": COLORS["PPDS"], "linestyle": style, "label": f"{name}, at least"}
        right.plot(2 * GRID, [row[name] for row in table], **look)
    for name in BITS:
        losses = [row[f"{name} printed"] for row in table]
        right.plot(2 * GRID, losses, color=COLORS[name], label=f"{name}, printed", **PRINTED)
    left.set(xlabel="epsilon allocated to the state", ylabel="true loss of the state")
    left.set_title("One look at the state")
    right.set(yscale="log", xlabel="2 epsilon allocated to both", ylabel="true loss of both")
    right.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10, 20], ["0.1", "0.2", "0.5", *"125", "10", "20"])
    right.set_ylim(0.04, 60)
    right.minorticks_off()
    right.set_title("One look and the output")
    left.legend(frameon=False)
    right.legend(frameon=False, fontsize=8, loc="lower right")
    save("figure_3", figure, table)


if __name__ == "__main__":
    main()
