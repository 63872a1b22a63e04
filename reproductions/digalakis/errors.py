"""Mean squared errors of all estimators, which figures 5 to 7 draw."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from panprivacy.papers.published.digalakis_theory import Estimator
from reproductions.digalakis import (
    BITS,
    COLORS,
    PRINTED,
    REPAIRED,
    SEED,
    UNIVERSE,
    as_planned,
    fitting,
    printed,
    repaired,
)
from reproductions.digalakis.simulated import (
    distinct,
    ppds_answer,
    printed_answers,
    repaired_answers,
    streams,
)

RUNS = 300
KINDS = ("uniform", "zipf")
EQUAL_MEMORY = "Density equal memory"
LOOKS = {
    "Dwork printed": {"color": COLORS["Dwork"], "marker": "o", **PRINTED},
    "Dwork repaired": {"color": COLORS["Dwork"], "marker": "o", **REPAIRED},
    "OptBern printed": {"color": COLORS["OptBern"], "marker": "s", **PRINTED},
    "OptBern repaired": {"color": COLORS["OptBern"], "marker": "s", **REPAIRED},
    "PPDS printed": {"color": COLORS["PPDS"], "marker": "^", **PRINTED},
    "PPDS repaired": {"color": COLORS["PPDS"], "marker": "^", **REPAIRED},
    EQUAL_MEMORY: {"color": COLORS["Density"], "marker": "D", **REPAIRED},
}

LABELS = {"OptBern repaired": "OptBern repaired\n= Density, equal users"}

Row = dict[str, object]


def all_repaired(users: int, epsilon: float) -> dict[str, tuple[Estimator, int]]:
    """What loses `2 epsilon` in truth: the estimators and the number of users that they sample.

    Args:
        users: in the sample; of PPDS the ids that it has room for.
        epsilon: half of the loss.
    """
    cells = dict.fromkeys(("Dwork", "OptBern", "PPDS"), users) | {"Density": fitting(users)}
    plans = {name: repaired(name, 2 * epsilon, size) for name, size in cells.items()}
    labels = {name: f"{name} repaired" for name in plans} | {"Density": EQUAL_MEMORY}
    return {labels[name]: (as_planned(plan), plan.cells) for name, plan in plans.items()}


def simulated(
    kind: str, settings: Iterable[tuple[int, float]], runs: int, *, ppds: bool
) -> list[Row]:
    """The mean squared errors for each number of users and epsilon, over the same streams."""
    generator = np.random.default_rng(SEED)
    points = list(settings)
    came = np.empty(runs, np.int64)
    adaptive = np.empty((len(points), runs))
    for run, stream in enumerate(streams(kind, runs, generator)):
        came[run] = distinct(stream)
        for place, (users, epsilon) in enumerate(points if ppds else []):
            adaptive[place, run] = ppds_answer(stream, users, epsilon, generator)
    rows = []
    for answers, (users, epsilon) in zip(adaptive, points, strict=True):
        row = {"stream": kind, "users": users, "epsilon": epsilon}
        for name in BITS:
            known = printed_answers(printed(name, epsilon), users, came, generator)
            row[f"{name} printed"] = error(known, came)
        if ppds:
            row["PPDS printed"] = error(answers, came)
        for name, (one, sampled) in all_repaired(users, epsilon).items():
            row[name] = error(repaired_answers(one, sampled, came, generator), came)
        rows.append(row)
    return rows


def error(answers: NDArray[np.float64], came: NDArray[np.int64]) -> float:
    """The mean squared error about the density of each stream."""
    return float(np.mean((answers - came / UNIVERSE) ** 2))


def predicted(rows: list[Row], share: float) -> list[Row]:
    """What the formulas say of the same settings, at this density."""
    found = []
    for row in rows:
        users, epsilon = int(str(row["users"])), float(str(row["epsilon"]))
        ones = {f"{name} printed": (printed(name, epsilon), users) for name in BITS}
        ones |= all_repaired(users, epsilon)
        said = {name: one.error(size, share, UNIVERSE) for name, (one, size) in ones.items()}
        found.append({"stream": row["stream"], "users": users, "epsilon": epsilon} | said)
    return found


def draw(axis: Axes, rows: list[Row], over: str, names: Iterable[str]) -> None:
    """The measured errors of some estimators."""
    for name in names:
        errors = [row[name] for row in rows]
        look = LOOKS[name] | {"markersize": 4, "label": LABELS.get(name, name)}
        axis.plot([row[over] for row in rows], errors, **look)
    axis.set(yscale="log")
