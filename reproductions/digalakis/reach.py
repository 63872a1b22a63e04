"""By which factor `Density` errs less than the repaired estimators, in the same memory.

    python -m reproductions.digalakis.reach

The mean squared error in 400 bytes: 100 ids for PPDS, 96 ids with a bit each for Dwork et al., and
3,200 bits for `Density`. At equal true loss, state and release together; right over the loss, left
as measured at 0.4. The answers are not cut to 0 .. 1, which would hide errors beyond 1.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from panprivacy.papers.published.dwork_density import DworkSizes, loss_of_bias
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.tables.planning.request import Request
from reproductions.digalakis import (
    COLORS,
    ID_BYTES,
    SEED,
    UNIVERSE,
    as_planned,
    fitting,
    repaired,
    save,
)
from reproductions.digalakis.simulated import repaired_answers

TOTAL, BYTES, RUNS = 0.4, 400, 100_000
TOTALS = np.geomspace(0.02, 2, 25)
SHARE = 0.632
PACKED = math.ceil(math.log2(UNIVERSE))
"""Bits of an id, if none is wasted: 17."""


def users_in(bits: int) -> int:
    """How many entries of so many bits fit."""
    return 8 * BYTES // bits


def compared(total: float) -> dict[str, DensityPlan]:
    """What is compared at this loss, in this memory."""
    return {
        "Density": repaired("Density", total, fitting(BYTES // ID_BYTES)),
        "PPDS": repaired("PPDS", total, users_in(8 * ID_BYTES)),
        "PPDS, packed ids": repaired("PPDS", total, users_in(PACKED)),
        "Dwork": repaired("Dwork", total, users_in(8 * ID_BYTES + 1)),
        "Dwork, packed ids": repaired("Dwork", total, users_in(PACKED + 1)),
    }


def in_the_papers_split(total: float | None = None) -> DensityPlan:
    """Dwork et al. with as much for the state over the release as they have.

    The paper has bits of bias `epsilon/4` and noise of scale `1/epsilon` on their sum.

    Args:
        total: what state and release add up to; None for epsilon 0.2, which Theorem 3.1 charges
            0.4, and which costs less.
    """
    epsilon = TOTAL / 2
    state, release = float(loss_of_bias(str(epsilon / 4))), epsilon
    scale = 1 if total is None else total / (state + release)
    budget = Budget(str(round(state * scale, 9)), str(round(release * scale, 9)))
    request = Request(budget.state + budget.release, budget=budget)
    return DworkSizes(universe=UNIVERSE, cells=users_in(8 * ID_BYTES + 1)).plan(request)


def in_their_split() -> dict[str, DensityPlan]:
    """Dwork et al. where the paper's split is kept; the loss is below what is claimed."""
    return {
        "Dwork, their split, claims 0.4": in_the_papers_split(TOTAL),
        "Dwork, as Theorem 3.1 charges": in_the_papers_split(),
    }


def predicted(plan: DensityPlan) -> float:
    """The mean squared error that the plan states."""
    return float(plan.model(0).deviation(SHARE)) ** 2


def rows(runs: int) -> list[dict[str, object]]:
    """The errors at the loss of the claim: predicted, measured, and over that of `Density`."""
    generator = np.random.default_rng(SEED)
    came = np.full(runs, round(SHARE * UNIVERSE))
    found: list[dict[str, object]] = []
    own = None
    for name, plan in (compared(TOTAL) | in_their_split()).items():
        one = as_planned(plan)
        answers = repaired_answers(one, plan.cells, came, generator)
        measured = float(np.mean((answers - SHARE) ** 2))
        own = own or measured
        row = {"estimator": name, "true loss": one.loss, "users": plan.cells}
        errors = {"predicted": predicted(plan), "measured": measured, "ratio": measured / own}
        found.append(row | errors)
    return found


def ratios(total: float) -> dict[str, float]:
    """By which factor others err more than `Density`, as predicted."""
    plans = compared(total) | {"Dwork, their split": in_the_papers_split(total)}
    own = predicted(plans.pop("Density"))
    return {name: predicted(plan) / own for name, plan in plans.items()}


def main() -> None:
    """Measure and draw."""
    table = rows(RUNS)
    figure = Figure(figsize=(10, 4.2), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2)
    names = [str(row["estimator"]) for row in table][::-1]
    names[:2] = ["Dwork, as Theorem\n3.1 charges", "Dwork, their split,\nclaims 0.4"]
    errors = [float(str(row["measured"])) for row in table][::-1]
    bars = left.barh(names, errors, color=[COLORS[name.split(",")[0]] for name in names])
    factors = [f"{float(str(row['ratio'])):.0f}" for row in table][::-1]
    left.bar_label(bars, factors, padding=3)
    left.set(xscale="log", xlabel="mean squared error; beside it, over that of Density")
    left.set_xlim(1e-3, 10)
    left.set_title(f"{BYTES} bytes, true loss {TOTAL:g}, the last two less")
    curves = [ratios(float(total)) for total in TOTALS]
    for name in curves[0]:
        color = COLORS[name.split(",")[0]]
        style = "--" if "split" in name else ":" if "packed" in name else "-"
        right.plot(TOTALS, [one[name] for one in curves], style, color=color, label=name)
    for level in (40, 400):
        right.axhline(level, color="0.7", linewidth=1)
    right.set(xscale="log", yscale="log", xlabel="true loss of state and release")
    right.set_yticks([20, 40, 100, 400, 1_000], ["20", "40", "100", "400", "1,000"])
    right.set_xticks([0.02, 0.1, 0.4, 1, 2], ["0.02", "0.1", "0.4", "1", "2"])
    right.minorticks_off()
    right.set_ylim(15, 10_000)
    right.set(ylabel="error over that of Density", title=f"{BYTES} bytes")
    right.legend(frameon=False)
    save("reach", figure, table)


if __name__ == "__main__":
    main()
