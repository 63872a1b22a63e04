"""Measures what docs/continual.md says of sums of users at every step: `make continual`.

    python -m benchmarks.running_sketches

The events are the flights that ship with the repository, week by week; a user is an aircraft, or
an aircraft on a day. The error is the root mean square over all answers of some runs with
production coins. Beside it stand what the plan predicts for the worst step of the worst stream, and
what the statistic that hides users predicts for one answer and no more. Writes the table of the
page, and exits with 1 if a measured error is above what is predicted. It takes about two minutes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.continual import PAGE, fill
from benchmarks.counters import table

FLIGHTS = Path(__file__).parents[1] / "examples" / "flights.parquet"
WEEKS = 53
RUNS = 60
STANDARD_ERRORS = 5
EPSILONS = 1, 2

PLANS = {
    "aircraft, tau 100": ("cropped-sum", "aircraft", {"tau": 100, "universe": 4_096}),
    "aircraft on a day, tau 2": ("cropped-sum", "aircraft_day", {"tau": 2, "universe": 300_000}),
    "aircraft of 1/500 of all": ("heavy-hitters", "aircraft", {"k": 500, "total": 336_776}),
}


def events() -> dict[str, list[NDArray[np.int64]]]:
    """The users of each week's flights, as numbers, by what a user is."""
    read = pq.read_table(FLIGHTS, columns=["scheduled", "aircraft_day"]).drop_null()
    weeks = pc.divide(pc.day_of_year(read["scheduled"]), 7).to_numpy()
    names = {
        "aircraft_day": read["aircraft_day"],
        "aircraft": pc.utf8_slice_codeunits(read["aircraft_day"], 0, -11),
    }
    users = {
        name: one.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        for name, one in names.items()
    }
    return {name: [each[weeks == week] for week in range(WEEKS)] for name, each in users.items()}


def answers(
    kind: str, sizes: dict[str, int], epsilon: int, weeks: list[NDArray[np.int64]]
) -> Iterator[float]:
    """The answer of each week."""
    made = pp.RunningCroppedSum if kind == "cropped-sum" else pp.RunningHeavyHitters
    count = made(horizon=WEEKS, epsilon=epsilon, **sizes)
    for users in weeks:
        count.update(users)
        yield count.release().value


def truths(plan: object, weeks: list[NDArray[np.int64]]) -> list[float]:
    """What is right after each week."""
    states = np.zeros(1 + max(int(users.max()) for users in weeks), np.int64)
    found = []
    for users in weeks:
        states += np.bincount(users, minlength=len(states))
        found.append(plan.truth(None, states, states))  # type: ignore[attr-defined]
    return found


def main() -> int:
    """Measure, write the table, and say what is outside of its limits."""
    read, rows, missed = events(), [], []
    for what, (kind, user, sizes) in PLANS.items():
        for epsilon in EPSILONS:
            weeks = read[user]
            plan = pp.plan(f"running-{kind}", horizon=WEEKS, epsilon=epsilon, **sizes)
            right = np.array(truths(plan, weeks))
            errors = [
                np.array(list(answers(kind, sizes, epsilon, weeks))) - right for _ in range(RUNS)
            ]
            error, stated = math.sqrt(np.mean(np.square(errors))), plan.absolute_error()
            if error > stated * (1 + STANDARD_ERRORS / math.sqrt(2 * RUNS)):
                missed.append((what, epsilon))
            once = pp.plan(kind, epsilon=epsilon, **sizes).absolute_error()
            numbers = [
                f"{one:,.3g}" if one < 1_000 else f"{one:,.0f}" for one in (stated, error, once)
            ]
            rows.append([what, str(epsilon), f"{right[-1]:,.0f}", *numbers])
    headings = ["users", "epsilon", "at the end", "predicted, worst step", "measured"]
    body = table([*headings, "one answer that hides users, predicted"], rows)
    print(body, "missed:", missed or "none")
    PAGE.write_text(fill(PAGE.read_text(), "sketches", body))
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
