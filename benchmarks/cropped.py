"""Cropped sums: predicted and measured deviations, beside Algorithm 2 of Mir et al.

    python -m benchmarks.cropped

The first table is theory, in units of the root of the cells, without output noise. The others are
measured with production coins, at epsilon 1 for state and release together: on real streams, and
over levels on users that hide each other as much as can be, and not at all. Exits
with 1 when an error is further from what was predicted than chance makes it.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.counters import activity
from benchmarks.trials import FLIGHTS, ROOT
from panprivacy.statistics.cropped.plan import CroppedPlan
from panprivacy.statistics.cropped.sizes import CroppedSizes

RETAIL = ROOT / "../shared/data/online_retail.parquet"
RUNS, SMALLEST_COVERAGE, MOST_OVER = 200, 0.90, 1.2
SIZES = [(10, 100), (10, 1_000_000), (1_000, 5_000), (1, 1)]
CELLS = 10**6
LEVEL_TAU, LEVEL_RUNS, REAL_RUNS = 10, 100, 400

LEVELS: dict[str, Any] = {"expected": (1_000, 1_000_000), "memory": 1 << 20}

Way = tuple[str, int, pp.Release]
Users = tuple[NDArray[np.int64], NDArray[np.int64]]


def bump(tau: int, epsilon: float) -> float:
    """The largest deviation of Algorithm 2, with the factor 2 that its printed estimator lacks.

    A cell is nearly uniform on 2 tau values, and each estimate divides by the little that a bump
    of one value leaves; it varies most where the bump is at an end. Its bias is not in this number:
    its mean may be anything from about half of the sum to twice as much.
    """
    values, weights = np.arange(2 * tau), np.ones(2 * tau)
    weights[0] = math.exp(epsilon)
    mean = np.average(values, weights=weights)
    deviation = math.sqrt(np.average((values - mean) ** 2, weights=weights))
    return deviation * float(weights.sum()) / math.expm1(epsilon)


def blocks(tau: int, bound: int) -> tuple[CroppedPlan, float]:
    """The plan at `epsilon_state` 1, and its largest deviation with hardly any output noise."""
    budget = pp.Budget(1, 40)
    plan = pp.CroppedSum(tau=tau, bound=bound, universe=CELLS, epsilon=41, budget=budget).plan
    return plan, plan.absolute_error() / math.sqrt(CELLS)


def print_theory() -> None:
    """What blocks give, and what Algorithm 2 gives."""
    print("  tau      bound  set                  blocks  Mir et al.")
    for tau, bound in SIZES:
        plan, deviation = blocks(tau, bound)
        name = f"{plan.chosen.family} {plan.chosen.modulus:,}"
        print(f"{tau:5,} {bound:10,}  {name:18} {deviation:8,.2f} {bump(tau, 1):11,.1f}")


@dataclass(frozen=True)
class Stream:
    """Events, and the states that they leave.

    Args:
        name: shown.
        rows: users and deltas.
        universe: number of users.
    """

    name: str
    rows: Users
    universe: int

    @property
    def states(self) -> NDArray[np.int64]:
        """The state of each user."""
        states = np.zeros(self.universe, np.int64)
        np.add.at(states, *self.rows)
        return states


def tweets() -> Stream:
    """A week of activity, without deletes."""
    users = activity()
    return Stream("activity", (users, np.ones(len(users), np.int64)), 304_691)


def purchases() -> Stream:
    """Items of each product that each customer bought, less those that came back."""
    rows = pq.read_table(RETAIL, columns=["customer", "stock", "quantity"])
    rows = rows.filter(pc.is_valid(rows["customer"]))
    pairs = pc.binary_join_element_wise(
        rows["customer"].cast("string"), rows["stock"].cast("string"), "/"
    )
    codes = pairs.combine_chunks().dictionary_encode()
    users = codes.indices.to_numpy().astype(np.int64)
    return Stream(
        "purchases", (users, rows["quantity"].to_numpy().astype(np.int64)), len(codes.dictionary)
    )


def measure(stream: Stream, tau: int, **sizes: int) -> bool:
    """Print a row; False if errors or intervals are not as predicted."""
    bound = max(int(np.abs(part).max()) for part in (stream.states, stream.rows[1]))
    truth = int(np.minimum(np.abs(stream.states), tau).sum())
    answers = []
    for _ in range(RUNS):
        universe = stream.universe
        cropped = pp.CroppedSum(epsilon=1, tau=tau, bound=bound, universe=universe, **sizes)
        cropped.update(*stream.rows)
        answers.append(cropped.release())
    values = np.array([one.value for one in answers])
    covered = sum(one.low <= truth <= one.high for one in answers) / RUNS
    error, predicted = (
        float(np.sqrt(np.mean((values - truth) ** 2))),
        cropped.plan.absolute_error(truth),
    )
    mir = bump(tau, 1) * math.sqrt(cropped.plan.cells) * stream.universe / cropped.plan.cells
    print(
        f"{stream.name:10} {tau:5,} {cropped.plan.cells:8,} {truth:10,} {values.mean():12,.0f} "
        f"{error:9,.0f} {predicted:9,.0f} {covered:8.1%} {mir:12,.0f}"
    )
    return covered >= SMALLEST_COVERAGE and error <= MOST_OVER * predicted


def measure_levels(name: str, states: NDArray[np.int64], runs: int, **sizes: Any) -> bool:
    """Print a row of users in these states; False if errors are not as predicted.

    The last column is the width of the interval over what holds the truth in 95 % of the runs.
    """
    truth, users = int(np.minimum(states, LEVEL_TAU).sum()), np.arange(len(states))
    answers = []
    for _ in range(runs):
        cropped = pp.CroppedSum(epsilon=1, tau=LEVEL_TAU, **sizes)
        cropped.update(users, states)
        answers.append(cropped.release())
    values = np.array([one.value for one in answers])
    covered = sum(one.low <= truth <= one.high for one in answers) / runs
    width = np.median([one.high - one.low for one in answers]) / 2
    error, predicted = np.sqrt(np.mean((values - truth) ** 2)), cropped.plan.absolute_error(truth)
    bias, needed = values.mean() / truth - 1, np.quantile(np.abs(values - truth), 0.95)
    most_bias = float(cropped.plan.model(0).bias(truth))
    print(
        f"{name:>20} {truth:12,} {bias:+8.1%} {most_bias / truth:7.1%} {error / truth:8.1%} "
        f"{predicted / truth:9.1%} {width / truth:6.0%} {covered:8.1%} {width / needed:7.2f}"
    )
    good = covered >= SMALLEST_COVERAGE and error <= MOST_OVER * predicted
    return bool(good and abs(bias) * truth <= most_bias + 2 * error / math.sqrt(runs))


def print_levels() -> bool:
    """Print what levels give over their range; False if errors are not as predicted."""
    plan = pp.CroppedSum(epsilon=1, tau=LEVEL_TAU, bound=100, **LEVELS).plan
    each = plan.cells // plan.levels
    print(f"\n{plan.levels} levels of {each:,} cells, {plan.table.nbytes:,} bytes, tau {LEVEL_TAU}")
    print("        users, state        truth     mean   bound    error predicted", end="")
    print("  ±95 % coverage  needed")
    good = [
        measure_levels(
            f"{users:,}, {state}", np.full(users, state), LEVEL_RUNS, bound=100, **LEVELS
        )
        for users in (10_000, 100_000, 1_000_000)
        for state in (1, 10, 100)
    ]
    return all(good) and print_real_levels()


def print_real_levels() -> bool:
    """Print what levels give on real users, with memory as it is unless told."""
    acts = np.unique(activity(), return_counts=True)[1]
    flights = pq.read_table(FLIGHTS, columns=["aircraft_day"]).column(0).drop_null()
    legs = pc.value_counts(flights).field("counts").to_numpy()
    sizes = {"bound": 656, "expected": LEVELS["expected"]}
    return all(
        [
            measure_levels("activity", acts, REAL_RUNS, **sizes),
            measure_levels("aircraft days", legs, REAL_RUNS, **sizes),
        ]
    )


def both_ways(users: Any, deltas: Any, *, tau: int, **sizes: int) -> Iterator[Way]:
    """A cropped sum of blocks, whether or not that is what would be planned, and of a histogram."""
    with patch.object(CroppedSizes, "_decompounded", lambda *_: None):
        blocks = pp.CroppedSum(epsilon=1, tau=tau, **sizes)
    blocks.update(users, deltas)
    yield "blocks", blocks.plan.table.nbytes, blocks.release()
    histogram = pp.Incidence(epsilon=1, **sizes)
    histogram.update(users, deltas)
    yield "histogram", histogram.plan.table.nbytes, histogram.release().cropped_sum(tau)


def print_hashed() -> None:
    """Print both ways on users that are all in one state, and on real ones."""
    users, tau, found = 1_000_000, 10, defaultdict(list)
    rows = np.arange(users), np.full(users, tau)
    for _ in range(LEVEL_RUNS):
        for name, nbytes, answer in both_ways(*rows, tau=tau, bound=100, expected=users):
            found[name, nbytes].append(answer.value / (tau * users) - 1)
    print(f"\n{users:,} users of {tau}, planned for as many, bound 100, {LEVEL_RUNS} runs")
    for (name, nbytes), errors in found.items():
        print(f"{name:12} {nbytes:12,} bytes, error {np.sqrt(np.mean(np.square(errors))):.2%}")
    flown = pq.read_table(FLIGHTS, columns=["aircraft_day"]).column(0).drop_null()
    bought = pq.read_table(RETAIL, columns=["customer"]).column(0).drop_null()
    print_one("legs of flights", flown, tau=2, bound=8, expected=300_000)
    print_one("rows of customers of purchases", bought, tau=100, bound=8_000, universe=20_000)


def print_one(what: str, users: Any, **sizes: int) -> None:
    """Print one run of both ways on real users, and the truth."""
    truth = np.minimum(pc.value_counts(users).field("counts").to_numpy(), sizes["tau"]).sum()
    print(f"\n{what}, {sizes}: truth {truth:,}")
    for name, nbytes, answer in both_ways(users, None, **sizes):
        print(f"{name:12} {nbytes:12,} bytes, {answer.low:,.0f} to {answer.high:,.0f}")


def main() -> int:
    """Print all tables."""
    print_theory()
    print_hashed()
    print("\nstream       tau    cells      truth  mean answer     error predicted ", end="")
    print("coverage   Mir et al.")
    bought = purchases()
    good = [
        *(measure(tweets(), tau) for tau in (1, 5, 20)),
        *(measure(bought, tau) for tau in (10, 100, 1_000)),
        measure(bought, 10, cells=100_000),
    ]
    return 0 if print_levels() and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
