"""The papers' own algorithms, repaired, beside the statistics that replace them.

    python -m benchmarks.published

Measured with production coins at epsilon 1: 0.9 for the state and 0.1 for the release on both
sides, but for heavy hitters, where each side takes its best split. Errors are in units of the
root of the cells, `sqrt(m)`. The factor is what Algorithm 2 gives over what it should, on average
over weights; "all 0" is the error of answering 0 for every entry. Needs SciPy for the linear
programme. Exits with 1 when the repaired algorithms err more than they predict.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import panprivacy as pp
from panprivacy.papers.published import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
    PrimeIncidence,
)
from panprivacy.papers.published.mir_moments import seen

USERS, RUNS, FEW_RUNS, MOST_OVER = 100_000, 100, 10, 1.3
BUDGET = pp.Budget(Fraction(9, 10), Fraction(1, 10))
SHARED: dict[str, Any] = {"epsilon": 1, "universe": USERS, "budget": BUDGET}
ROOT = USERS**0.5

States = NDArray[np.int64]


def values(
    make: Callable[[], Any], states: States, read: Callable[[Any], Any], runs: int = RUNS
) -> NDArray[np.float64]:
    """What is read off so many releases."""
    read_off = []
    for _ in range(runs):
        statistic = make()
        statistic.update(np.arange(len(states)), states)
        read_off.append(read(statistic.release()))
    return np.array(read_off, float)


def cropped_sums() -> bool:
    """Algorithm 2 beside `CroppedSum`, on states of which half are 0."""
    print("     tau       Z  states        Algorithm 2: sd  predicted      factor", end="")
    print("   CroppedSum: sd  predicted")
    return all(
        _cropped_sum(tau, bound, name, states)
        for tau, bound in ((10, 100), (1_000, 5_000))
        for name, states in _spread(tau, bound).items()
    )


def _spread(tau: int, bound: int) -> dict[str, States]:
    users = np.arange(USERS)
    present = users % 2
    return {
        "half of tau": present * (tau // 2),
        "1.6 tau": present * (8 * tau // 5),
        "0 .. Z": users % (bound + 1),
    }


def _cropped_sum(tau: int, bound: int, name: str, states: States) -> bool:
    truth = float(np.minimum(states, tau).sum())
    sizes = {"tau": tau, "bound": bound, **SHARED}
    theirs, ours = CroppedFirstMoment(**sizes).plan, pp.CroppedSum(**sizes).plan
    model = ours.model(0)
    weights = np.arange(theirs.grid, 2 * theirs.grid + 1)
    added = seen(tau, theirs.grid, np.outer(states, weights)).mean(axis=1).sum()
    old = values(lambda: CroppedFirstMoment(**sizes), states, lambda one: one.value)
    new = values(lambda: pp.CroppedSum(**sizes), states, lambda one: model.unbiased(one.counts))
    print(
        f"{tau:8,} {bound:7,}  {name:12} {old.std() / ROOT:16,.1f} "
        f"{theirs.absolute_error() / ROOT:10,.1f} "
        f"{added / truth:11.2f} {new.std() / ROOT:16,.1f} {ours.absolute_error() / ROOT:10,.1f}"
    )
    return bool(old.std() <= MOST_OVER * theirs.absolute_error())


def distinct_counts() -> bool:
    """Algorithm 2 with a small tau beside the distinct count of an `Incidence`."""
    print("\n     tau  state  Algorithm 2: sd  mean/truth   Incidence: sd  mean/truth")
    return all(_distinct(tau, state) for tau in (3, 4) for state in (1, 2, 50))


def _distinct(tau: int, state: int) -> bool:
    states = np.where(np.arange(USERS) % 2, state, 0)
    theirs = CroppedDistinctCount(tau=tau, **SHARED).plan
    old = values(lambda: CroppedDistinctCount(tau=tau, **SHARED), states, lambda one: one.value)

    def make() -> Any:
        return pp.Incidence(bound=100, **SHARED)

    def ask(statistic: Any) -> float:
        statistic.update(np.arange(USERS), states)
        return float(statistic.release(distinct=True).distinct().value)

    new = np.array([ask(make()) for _ in range(RUNS)])
    truth = USERS / 2
    print(
        f"{tau:8} {state:6} {old.std() / ROOT:16,.1f} {old.mean() / truth:11.2f} "
        f"{new.std() / ROOT:15,.1f} {new.mean() / truth:11.2f}"
    )
    return bool(old.std() <= MOST_OVER * theirs.absolute_error())


def incidences() -> None:
    """The lecture's primes beside `Incidence`: the error of an entry, over all entries."""
    print("\n       Z  primes                 minimum: error   bias  programme: error", end="")
    print("   all 0   Incidence: error")
    for bound, primes in (
        (30, (37,)),
        (30, (5, 7, 11, 13)),
        (100, (101,)),
        (100, (11, 13, 17, 19, 23, 29)),
    ):
        _incidence(bound, primes)


def _incidence(bound: int, primes: tuple[int, ...]) -> None:
    states = np.minimum(np.arange(USERS) % 7 * (np.arange(USERS) % 5), bound)
    truth = np.bincount(states, minlength=bound + 1)

    def read(answer: Any) -> Any:
        return [[answer.minimum(state) for state in range(bound + 1)], answer.states()]

    old = values(
        lambda: PrimeIncidence(bound=bound, primes=primes, **SHARED), states, read, FEW_RUNS
    )
    law = pp.Incidence(bound=bound, **SHARED).plan.law
    sizes = {"bound": bound, "law": law, **SHARED}
    kernel = law.kernel()

    def histogram(answer: Any) -> Any:
        return [np.roll(kernel, state) @ np.array(answer.counts) for state in range(bound + 1)]

    new = values(lambda: pp.Incidence(**sizes), states, histogram, FEW_RUNS)
    least, programme = old[:, 0] - truth, old[:, 1] - truth
    shown = f"{primes[0]}" if len(primes) == 1 else f"{primes[0]} .. {primes[-1]}, {len(primes)}"
    print(
        f"{bound:8}  {shown:20} {_root(least):15,.1f} {least.mean() / ROOT:8,.1f} "
        f"{_root(programme):17,.1f} {_root(truth):7,.1f} {_root(new - truth):18,.1f}"
    )


def _root(errors: NDArray[np.float64]) -> float:
    """Their root-mean-square, in units of the root of the cells."""
    return float(np.sqrt(np.mean(errors**2))) / ROOT


def heavy_hitters() -> None:
    """Algorithm 3 beside `HeavyHitterCount`; the count of both rises from `total/2k` on."""
    print("\nstream          k  epsilon    soft  Algorithm 3: cells  noiseless        mean", end="")
    print("          sd   HeavyHitterCount: mean      sd")
    k = 10_000
    zipf = np.maximum(10**6 // np.arange(1, 10**6 + 1), 1)
    for name, states in (("Zipf", zipf), ("9/10 of it", np.full(10 * k // 9, 900))):
        for epsilon in (1, 4):
            _heavy(name, states, k, epsilon)


def _heavy(name: str, states: States, k: int, epsilon: int) -> None:
    total = int(states.sum())
    sizes = {"k": k, "total": total, "epsilon": epsilon}
    upper, lower = (plan.tau for plan in CroppedHeavyHitters(**sizes).plans)
    soft = float(np.clip((states - lower) / (upper - lower), 0, 1).sum())
    old = values(lambda: CroppedHeavyHitters(**sizes), states, lambda one: one.value, FEW_RUNS)
    sure = {"budget": pp.Budget(40, 4_000), "epsilon": 4_040, "k": k, "total": total}
    exact = values(lambda: CroppedHeavyHitters(**sure), states, lambda one: one.value, 3)
    plan = pp.HeavyHitterCount(**sizes).plan
    cells = plan.model(0).over_cells
    new = values(
        lambda: pp.HeavyHitterCount(**sizes),
        states,
        lambda one: cells.unbiased(one.counts),
        FEW_RUNS,
    )
    counters = CroppedHeavyHitters(**sizes).plans[0].universe
    print(
        f"{name:10} {k:6,} {epsilon:8} {soft:7,.0f} {counters:19,} {exact.mean():10,.0f} "
        f"{old.mean():11,.0f} {old.std():11,.0f} {new.mean():24,.0f} {new.std():7,.0f}"
    )


def main() -> int:
    """Print all tables."""
    good = [cropped_sums(), distinct_counts()]
    incidences()
    heavy_hitters()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
