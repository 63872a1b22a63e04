"""How many users a sample needs, by the bounds of Theorems 3.3 and 4.3 and by what happens.

    python -m reproductions.digalakis.figure_1

The paper does not say for which alpha and beta it drew the figure: these are ours.
"""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from reproductions.digalakis import (
    BITS,
    COLORS,
    GRID,
    ID_BYTES,
    PRINTED,
    REPAIRED,
    UNIVERSE,
    as_planned,
    label_epsilon,
    printed,
    repaired,
    save,
)

ALPHA, BETA = 0.1, 0.05


def fewest_by_bound(name: str, epsilon: float) -> int | float:
    """The fewest users with whom the bound says so of a repaired estimator; nan if all are too few.

    The split of epsilon depends on the number of users, and with it the bound.
    """
    users, needed = UNIVERSE + 1, UNIVERSE
    while needed < users:
        users = needed
        needed = as_planned(repaired(name, 2 * epsilon, users)).sample_size(ALPHA, BETA)
    return users if needed <= users else math.nan


def fewest_as_predicted(epsilon: float) -> int | float:
    """The fewest cells with which a `Density` errs by alpha so seldom, by its own prediction.

    For the density that is the hardest.
    """
    low, high = 1, UNIVERSE + 1
    while low < high:
        middle = (low + high) // 2
        if repaired("Density", 2 * epsilon, middle).absolute_margin(1 - BETA) <= ALPHA:
            high = middle
        else:
            low = middle + 1
    return low if low <= UNIVERSE else math.nan


def rows(epsilons: list[float]) -> list[dict[str, float]]:
    """The numbers of users by epsilon."""
    return [
        {"epsilon": epsilon}
        | {f"{name} printed": printed(name, epsilon).sample_size(ALPHA, BETA) for name in BITS}
        | {f"{name} repaired": fewest_by_bound(name, epsilon) for name in BITS}
        | {"Density as predicted": fewest_as_predicted(epsilon)}
        for epsilon in epsilons
    ]


def main() -> None:
    """Compute and draw."""
    table = rows(GRID.tolist())
    figure = Figure(figsize=(9.6, 4.4), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2)
    for name in BITS:
        for kind, style in (("printed", PRINTED), ("repaired", REPAIRED)):
            users = [row[f"{name} {kind}"] for row in table]
            look = {"color": COLORS[name], **style, "label": f"{name}, {kind}"}
            left.plot(GRID, users, **look)
            right.plot(GRID, [ID_BYTES * one + one / 8 for one in users], **look)
    for name, kind, style in (
        ("OptBern", "repaired", REPAIRED),
        ("Density", "as predicted", {"linestyle": ":"}),
    ):
        cells = [row[f"{name} {kind}"] for row in table]
        look = {"color": COLORS["Density"], **style}
        right.plot(GRID, [one / 8 for one in cells], **look)
        if name == "Density":
            left.plot(GRID, cells, label=f"Density, {kind}", **look)
    left.plot([], [], color=COLORS["Density"], label="Density, by the bound of OptBern repaired")
    left.axhline(UNIVERSE, color="0.6", label="all users")
    for axis, what in ((left, "users in the sample"), (right, "bytes")):
        axis.set(yscale="log", ylabel=what)
        label_epsilon(axis)
    left.set_title(f"Errors of {ALPHA:g} in at most {BETA:.0%} of cases")
    right.set_title("The same in memory: ids and bits, or bits alone")
    left.legend(frameon=False, fontsize=8)
    save("figure_1", figure, table)


if __name__ == "__main__":
    main()
