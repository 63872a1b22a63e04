"""Counts of heavy hitters: predicted and measured errors, on made-up and real streams.

    python -m benchmarks.heavy

Measured with production coins. The soft count is what the answer is about; `hard` is the number of
users with `total/k` or more. `deviation` is that of the answers before they are cut to 0 .. k,
and `lift` what collisions and rounding may add to their mean, beside what they did add. At the end,
what more independent cells cost. Exits with 1 when answers are further off than was predicted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.trials import ROOT

RETAIL = ROOT / "../shared/data/online_retail.parquet"
RUNS, SMALLEST_COVERAGE, MOST_OVER = 50, 0.85, 1.3
EPSILONS = (1, 4)


@dataclass(frozen=True)
class Stream:
    """Events, and which users count.

    Args:
        name: shown.
        users: their ids.
        deltas: one for each event.
        k: users count who hold 1/k.
    """

    name: str
    users: NDArray[np.int64]
    deltas: NDArray[np.int64]
    k: int


def zipf(users: int, k: int) -> Stream:
    """The user of rank i holds about 1/i of what the first one holds; each has one event."""
    states = np.maximum(10**6 // np.arange(1, users + 1), 1)
    return Stream("Zipf", np.arange(users), states, k)


def hostile(k: int) -> Stream:
    """Everybody holds as much as counts for nothing, so each collision adds one."""
    return Stream("hostile", np.arange(2 * k), np.full(2 * k, 100), k)


def purchases() -> Iterator[Stream]:
    """Rows of each customer."""
    if not RETAIL.exists():
        print(f"{RETAIL.name} is not here: its rows are left out")
        return
    customers = pq.read_table(RETAIL, columns=["customer"])["customer"]
    users = pc.drop_null(customers).to_numpy().astype(np.int64)
    for k in (10, 100, 1_000):
        yield Stream("purchases", users, np.ones(len(users), np.int64), k)


def measure(stream: Stream, epsilon: int) -> bool:
    """Print a row; False if errors or intervals are not as predicted."""
    total = int(stream.deltas.sum())
    answers = []
    for _ in range(RUNS):
        heavy = pp.HeavyHitterCount(k=stream.k, total=total, epsilon=epsilon)
        heavy.update(stream.users, stream.deltas)
        answers.append(heavy.release())
    model, states = heavy.plan.model(0), np.bincount(stream.users, stream.deltas)
    truth = float(np.clip(states / heavy.plan.low - 1, 0, 1).sum())
    uncut = np.array([model.over_cells.unbiased(one.counts) for one in answers])
    covered = sum(one.low <= truth <= one.high for one in answers) / RUNS
    width = np.mean([one.high - one.low for one in answers])
    deviation = float(model.over_cells.deviation(min(truth + model.lift, heavy.plan.limit)))
    error = float(np.sqrt(np.mean((uncut - truth) ** 2)))
    hard = int((states * stream.k >= total).sum())
    print(
        f"{stream.name:10} {stream.k:6,} {epsilon:2} {heavy.plan.cells:8,} {hard:6,} {truth:8,.0f} "
        f"{uncut.mean() - truth:7,.0f} {model.lift:6,.0f} {uncut.std():9,.0f} {deviation:9,.0f} "
        f"{error:7,.0f} {heavy.plan.absolute_error(truth):9,.0f} {covered:8.0%} {width:8,.0f}"
    )
    return covered >= SMALLEST_COVERAGE and error <= MOST_OVER * heavy.plan.absolute_error(truth)


def nanoseconds(independence: int) -> float:
    """The time of an update, the best of some batches."""
    users = np.arange(1 << 20)
    heavy = pp.HeavyHitterCount(k=100, total=1 << 24, epsilon=1, independence=independence)
    heavy.update(users[:1_000])
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        heavy.update(users)
        taken.append(time.perf_counter() - begun)
    return min(taken) / len(users) * 1e9


def print_speed() -> None:
    """What each more of independent cells costs."""
    print("\nindependence  ns an update  to 4")
    least = nanoseconds(4)
    for independence in (4, 8, 16, 32, 64):
        found = nanoseconds(independence)
        print(f"{independence:12} {found:13.0f} {found / least:5.1f}")


def main() -> int:
    """Print both tables."""
    print(
        "stream          k  e    cells   hard     soft    bias   lift deviation predicted ", end=""
    )
    print("  error predicted coverage    width")
    streams = [zipf(10**6, 10_000), hostile(10_000), *purchases()]
    good = [measure(stream, epsilon) for stream in streams for epsilon in EPSILONS]
    print_speed()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
