"""Measures what docs/continual.md says of different users at every step: `make continual`.

    python -m benchmarks.running_distinct

100,000 users come one after another, as many in each step, and each comes twice. The error is that
of the last answer, in production coins; beside it stand what the plan predicts for the worst step,
and what a `DistinctCount` of the same epsilon and memory predicts for one answer and no more.
Writes the table of the page, and exits with 1 if a measured error is outside of its limits. It
takes about three minutes.
"""

from __future__ import annotations

import math
import sys

import numpy as np

import panprivacy as pp
from benchmarks.continual import PAGE, fill
from benchmarks.counters import table

USERS = 100_000
RUNS = {24: 200, 1_000: 30, 1_000_000: 0}
"""Of the last number of steps only the prediction is told."""
EPSILONS = (1, 2)
STANDARD_ERRORS = 5


def run(steps: int, epsilon: int) -> float:
    """The relative error of the last of so many answers."""
    count = pp.RunningDistinct(horizon=steps, expected=USERS, epsilon=epsilon)
    order = np.random.default_rng().permutation(USERS)
    for batch in np.array_split(np.concatenate([order, order]), steps):
        count.update(batch)
        answer = count.release()
    return answer.value / USERS - 1


def predicted(steps: int, epsilon: int) -> float:
    """The relative error that the plan predicts for the worst step."""
    plan = pp.plan("running-distinct", horizon=steps, expected=USERS, epsilon=epsilon)
    return float(plan.relative_error(USERS))


def once(epsilon: int) -> float:
    """That of one answer that leaves alone."""
    return float(pp.plan("distinct", expected=USERS, epsilon=epsilon).relative_error(USERS))


def percent(error: float) -> str:
    """For a table."""
    return f"{100 * error:.2f} %"


def main() -> int:
    """Measure, write the table, and say what is outside of its limits."""
    rows, missed = [], []
    for epsilon in EPSILONS:
        for steps, runs in RUNS.items():
            stated, measured = predicted(steps, epsilon), "-"
            if runs:
                error = math.sqrt(np.mean([run(steps, epsilon) ** 2 for _ in range(runs)]))
                measured = percent(error)
                if error / stated > 1 + STANDARD_ERRORS / math.sqrt(2 * runs):
                    missed.append((epsilon, steps))
            rows.append(
                [str(epsilon), f"{steps:,}", percent(stated), measured, percent(once(epsilon))]
            )
    headings = ["epsilon", "steps", "predicted, worst step", "measured, last step"]
    body = table([*headings, "one answer of a `DistinctCount`, predicted"], rows)
    print(body, "missed:", missed or "none")
    PAGE.write_text(fill(PAGE.read_text(), "distinct", body))
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
