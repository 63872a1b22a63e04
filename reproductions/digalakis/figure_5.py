"""The mean squared error over epsilon: as measured, and as the theorems have it.

    python -m reproductions.digalakis.figure_5

300 runs for each point. The lines are exact; those of Theorems 3.2 and 4.2 are on top of the exact
ones of the printed forms.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from panprivacy.papers.published.digalakis_theory import theorem_3_2, theorem_4_2
from reproductions.digalakis import EPSILONS, UNIVERSE, label_epsilon, save
from reproductions.digalakis.errors import KINDS, LABELS, LOOKS, RUNS, predicted, simulated

SIZES = UNIVERSE // 1_000, UNIVERSE // 100
DENSITIES = {"uniform": 0.632, "zipf": 0.244}
NAMES = [name for name in LOOKS if not name.startswith("PPDS")]
THEOREMS = {"Dwork printed": theorem_3_2, "OptBern printed": theorem_4_2}


def main() -> None:
    """Simulate and draw."""
    figure = Figure(figsize=(11, 7.4), layout="constrained", dpi=90)
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    table = []
    for column, kind in enumerate(KINDS):
        settings = [(users, float(epsilon)) for users in SIZES for epsilon in EPSILONS]
        measured = simulated(kind, settings, RUNS, ppds=False)
        said = predicted(measured, DENSITIES[kind])
        for row, line in zip(measured, said, strict=True):
            bounds = {
                f"{name} theorem": theorem(int(str(row["users"])), float(str(row["epsilon"])))
                for name, theorem in THEOREMS.items()
            }
            exact = {f"{name} predicted": line[name] for name in NAMES}
            kept = {key: row[key] for key in ("stream", "users", "epsilon", *NAMES)}
            table.append(kept | bounds | exact)
        for axis, users in zip(axes[:, column], SIZES, strict=True):
            shown = [row for row in table if row["stream"] == kind and row["users"] == users]
            for name in NAMES:
                look = dict(LOOKS[name])
                marker = look.pop("marker")
                exact = [row[f"{name} predicted"] for row in shown]
                axis.plot(EPSILONS, exact, **look)
                points = [row[name] for row in shown]
                axis.plot(EPSILONS, points, marker, color=look["color"], markersize=4)
                axis.plot([], [], marker=marker, markersize=4, label=LABELS.get(name, name), **look)
            for name in THEOREMS:
                bound = [row[f"{name} theorem"] for row in shown]
                axis.plot(EPSILONS, bound, "k:", linewidth=1)
            axis.plot([], [], "k:", label="Theorems 3.2 and 4.2, printed")
            axis.set(yscale="log", title=f"{kind} stream, {users:,} users")
    for axis in axes[:, 0]:
        axis.set_ylabel("mean squared error")
    for axis in axes[1]:
        label_epsilon(axis)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    save("figure_5", figure, table)


if __name__ == "__main__":
    main()
