"""How fast `Incidence` counts and decodes: `make bench`.

Exits with 1 when an update takes more than 20 ns over 10^7 counters, or decoding 10^6 values more
than a second. The peer is `numpy.bincount`, which keeps every id, in the same run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import panprivacy as pp

CELLS, ROWS, ROUNDS = 10**7, 10**7, 7
MOST_NANOSECONDS, MOST_SECONDS = 20.0, 1.0


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def updates() -> bool:
    """Print nanoseconds an update, and the ratio to the peer; whether the limit is kept."""
    ids = np.random.default_rng(1).integers(0, CELLS, ROWS)
    deltas = np.where(ids % 3 == 0, -1, 1)
    direct = pp.Incidence(universe=CELLS, bound=300, epsilon=1)
    hashed = pp.Incidence(expected=CELLS // 2, bound=300, epsilon=1)
    work: dict[str, Callable[[], object]] = {
        "one user a cell": lambda: direct.update(ids),
        "with deltas": lambda: direct.update(ids, deltas),
        "hashed": lambda: hashed.update(ids),
        "numpy.bincount": lambda: np.bincount(ids, minlength=CELLS),
    }
    times = {name: [seconds(run) for _ in range(ROUNDS)] for name, run in work.items()}
    medians = {name: statistics.median(rounds) for name, rounds in times.items()}
    for name, median in medians.items():
        ratio = median / medians["numpy.bincount"]
        print(f"{name:>16}: {median / ROWS * 1e9:5.1f} ns an update, {ratio:.2f} of bincount")
    return medians["one user a cell"] / ROWS * 1e9 <= MOST_NANOSECONDS


def decoding() -> bool:
    """Print the time to decode a histogram of 10^6 values; whether the limit is kept."""
    statistic = pp.Incidence(universe=10**6, bound=10**6, epsilon=1, releases=1)
    statistic.update(np.arange(10**5))
    answer = statistic.release()
    whole = answer.whole
    rounds = [
        seconds(lambda: whole.model.entries(answer.counts, whole.noise_variance)) for _ in range(5)
    ]
    median = statistics.median(rounds)
    print(f"decoding {len(answer.counts):,} values, with deviations: {median:.2f} s")
    return median <= MOST_SECONDS


if __name__ == "__main__":
    sys.exit(0 if all([updates(), decoding()]) else 1)
