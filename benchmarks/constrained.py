"""Constrained histograms beside unbiased ones: how far both are from the truth.

    python -m benchmarks.constrained

Each row is measured with production coins at epsilon 1: the root of the mean squared error over
all states and runs, for made-up users and for those of real streams. Unbiased numbers are cut to
what is possible one by one, as releases do it. Exits with 1 when a constrained histogram is the
worse one by more than chance makes it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.counters import activity
from panprivacy.tables.cells.law import Law

RUNS, MOST_OVER = 100, 1.01
STATE, RELEASE = "0.9", "0.1"


@dataclass(frozen=True)
class Trial:
    """A histogram that is released.

    Args:
        users: what its users do.
        states: of all possible users.
        bound: of the states.
        law: name of the law; None for what the plan chooses.
    """

    users: str
    states: NDArray[np.int64]
    bound: int
    law: str | None = None

    def release(self) -> pp.IncidenceRelease:
        """One run."""
        arguments = {"law": getattr(Law, self.law)(self.bound + 1, STATE)} if self.law else {}
        statistic = pp.Incidence(
            universe=len(self.states), bound=self.bound, epsilon=1,
            budget=pp.Budget(STATE, RELEASE), **arguments,
        )  # fmt: skip
        came = np.flatnonzero(self.states)
        statistic.update(came, self.states[came])
        return statistic.release()

    def errors(self) -> tuple[float, float]:
        """Of unbiased and of constrained histograms, in users."""
        truth = np.bincount(self.states, minlength=self.bound + 1)
        squares = np.zeros(2)
        for _ in range(RUNS):
            answer = self.release()
            for way, constrained in enumerate((False, True)):
                table = answer.to_pandas(constrained=constrained)
                users = table.loc[table["question"] == "exactly", "value"].to_numpy()
                squares[way] += ((users - truth) ** 2).mean() / RUNS
        unbiased, constrained = np.sqrt(squares)
        return float(unbiased), float(constrained)


def trials() -> Iterator[Trial]:
    """Made-up and real users, in few and in many states."""
    draw = np.random.default_rng(1)
    for size, bound in [(10_000, 30), (100_000, 30), (100_000, 500), (1_000_000, 30)]:
        geometric = np.minimum(draw.geometric(0.5, size) - 1, bound)
        yield Trial("halving", geometric, bound)
        yield Trial("all states alike", np.arange(size) % (bound + 1), bound)
        yield Trial("all in state 1", np.ones(size, np.int64), bound)
        yield Trial("nobody came", np.zeros(size, np.int64), bound)
        if (size, bound) == (100_000, 30):
            yield Trial("halving", geometric, bound, "spike")
            yield Trial("halving", geometric, bound, "geometric")
    acts = np.bincount(activity(), minlength=304_691)
    yield Trial("Higgs, acts of each", acts, int(acts.max()))


def main() -> int:
    """Measure and print."""
    print("users                     universe  bound  law             cut  constrained  ratio")
    worst = 0.0
    for one in trials():
        unbiased, constrained = one.errors()
        ratio = constrained / unbiased
        worst = max(worst, ratio)
        law = one.law or "planned"
        print(
            f"{one.users:22} {len(one.states):11,} {one.bound:6}  {law:9} {unbiased:9,.1f} "
            f"{constrained:12,.1f} {ratio:6.3f}"
        )
    if math.isnan(worst) or worst > MOST_OVER:
        print(f"a constrained histogram is {worst:.3f} times as far from the truth")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
