"""Measures what docs/histogram.md says: flight delays, response times, and the rate.

    python -m benchmarks.histogram ../shared/data

The folder has the two flight sets, nycflights13.parquet and flights_airborne.parquet, from which
examples/make_departures.py makes the stream of departures. A delay is the time from the schedule to
the take-off that is matched to it. All answers are in production coins. The rate is that of one
core, for 50 million numbers in memory, beside `numpy.histogram` in the same run. Writes the tables
of the page, and exits with 1 if a measured number is outside of its limits.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.continual import fill
from benchmarks.counters import table

PAGE = Path(__file__).parents[1] / "docs" / "histogram.md"
SHARES = (0.5, 0.9, 0.95, 0.99)
RUNS = 20
EVENTS = 50_000_000
LEAST_RATE = 50e6
RESOLUTION = 0.02
EARLY = 45 * 60

Values = NDArray[np.float64]


def delays(folder: Path) -> Values:
    """Minutes from the schedule of each flight to its take-off; below 0 if it left early."""
    flights = pd.read_parquet(folder / "nycflights13.parquet").dropna(subset=["tailnum"])
    flown = flights.loc[~flights["cancelled"], ["ts", "tailnum"]].sort_values("ts")
    flown["scheduled"] = flown["ts"]
    moves = pd.read_parquet(folder / "flights_airborne.parquet")
    left = moves.loc[moves["delta"] == 1, ["ts", "tailnum"]].sort_values("ts")
    left["left"] = left["ts"]
    left["ts"] += EARLY
    matched = pd.merge_asof(left.sort_values("ts"), flown, on="ts", by="tailnum").dropna()
    matched = matched.drop_duplicates(["tailnum", "scheduled"])
    return ((matched["left"] - matched["scheduled"]) / 60).to_numpy(float)


def of_delays(values: Values, epsilon: float) -> list[list[str]]:
    """The rows of the delays: each percentile, its answer and its interval."""
    times = pp.Histogram(low=-30, high=330, bins=360, epsilon=epsilon)
    times.update(values)
    answer = times.release()
    truths = np.quantile(values, SHARES, method="inverted_cdf")
    rows = [
        [
            f"p{100 * share:g}",
            f"{truth:.0f}",
            f"{one.value:.1f}",
            f"{one.low:.0f} to {one.high:.0f}",
        ]
        for share, truth, one in zip(SHARES, truths, answer.quantiles(*SHARES), strict=True)
    ]
    mean, truth = answer.mean(), np.clip(values, -30, 330).mean()
    ends = f"{mean.low:.2f} to {mean.high:.2f}"
    return [*rows, ["mean", f"{truth:.2f}", f"{mean.value:.2f}", ends]]


def of_times(epsilon: float) -> tuple[list[str], float]:
    """The row of an epsilon: the largest relative error of each percentile over all runs."""
    values = np.random.default_rng(1).lognormal(5, 1, 1_000_000)
    truths = np.quantile(values, SHARES, method="inverted_cdf")
    errors = []
    for _ in range(RUNS):
        times = pp.Histogram(low=1, high=60_000, resolution=RESOLUTION, epsilon=epsilon)
        times.update(values)
        found = np.array([one.value for one in times.release(quantile=SHARES).values()])
        errors.append(np.abs(found / truths - 1))
    most = np.max(errors, axis=0)
    return [f"{epsilon:g}", *(f"{100 * one:.2f} %" for one in most)], float(most.max())


def rates() -> tuple[list[list[str]], float]:
    """Millions of events a second into 100 bins, and those of `numpy.histogram`."""
    draw = np.random.default_rng(2)
    rows, least = [], np.inf
    for name, values, scale in (
        ("equal width", draw.uniform(0, 1_000, EVENTS), "linear"),
        ("equal ratio", np.exp(draw.uniform(0, np.log(1_000), EVENTS)), "log"),
    ):
        times = pp.Histogram(low=1, high=1_000, bins=100, scale=scale, epsilon=1)
        times.update(values[:1])
        own = seconds(times.update, values)
        edges = np.array(times.plan.edges.inner)
        given = (100, (1, 1_000)) if scale == "linear" else (edges,)
        other = seconds(np.histogram, values, *given)
        least = min(least, EVENTS / own)
        rates = [f"{EVENTS / took / 1e6:.0f} million/s" for took in (own, other)]
        rows.append([name, *rates, f"{other / own:.1f}"])
    return rows, least


def seconds(function: Callable[..., object], *arguments: object) -> float:
    """The shortest of three times that a call takes."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        function(*arguments)
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> int:
    """Measure, write the tables, and say what is outside of its limits."""
    values = delays(Path(sys.argv[1]))
    accuracy = [of_times(epsilon) for epsilon in (0.1, 1, 4)]
    speed, rate = rates()
    headings = {"delays": ["", "exact", "answer", "95 % interval"]}
    tables = {
        "delays": table(headings["delays"], of_delays(values, 1)),
        "times": table(
            ["epsilon", *(f"p{100 * one:g}" for one in SHARES)], [a for a, _ in accuracy]
        ),
        "speed": table(["100 bins of", "`update`", "`numpy.histogram`", "ratio"], speed),
    }
    page = PAGE.read_text()
    for name, body in tables.items():
        print(body)
        page = fill(page, name, body)
    PAGE.write_text(page)
    print(f"{len(values):,} delays")
    late = [error for _, error in accuracy[1:] if error > RESOLUTION]
    return int(bool(late) or rate < LEAST_RATE)


if __name__ == "__main__":
    sys.exit(main())
