"""Measures every number of docs/local.md, with production coins, on the flights of `examples/`.

    python -m benchmarks.local

Each flight is a user, who knows their origin (3 values) and destination (105). Writes the tables of
the page, and exits with 1 when an error is outside of its limits.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.continual import fill
from benchmarks.counters import table
from benchmarks.trials import FLIGHTS, ROOT
from panprivacy.papers import local
from panprivacy.papers.queries import LinearQueries

PAGE = ROOT / "docs" / "local.md"
KINDS = (local.RandomisedResponse, local.UnaryEncoding, local.HadamardResponse)
EPSILONS = ("1/2", "1", "2", "4")
RUNS, QUERIES, DELTA = 20, 1_000, 1e-9
MOST_OVER = 1.5
"""Measured over predicted: of 60 errors or more, so that it is off by a factor of 1.5 rarely."""


def column(name):
    """What each flight says, as a number from 0, and how many values there are."""
    codes = pq.read_table(FLIGHTS, columns=[name]).column(0).combine_chunks().dictionary_encode()
    return codes.indices.to_numpy(), len(codes.dictionary)


def error(randomiser, held):
    """The root-mean-square error over values and runs, and how many intervals hold the truth."""
    truth = np.bincount(held, minlength=randomiser.values)
    found = [randomiser.estimate(randomiser.randomise(held)) for _ in range(RUNS)]
    errors = np.array([one.estimates - truth for one in found])
    inside = np.mean([(one.low <= truth) & (truth <= one.high) for one in found])
    return math.sqrt((errors**2).mean()), float(inside)


def frequencies(name):
    """A row for each epsilon: bits, prediction and measurement of each encoding."""
    held, values = column(name)
    rows = []
    for epsilon in EPSILONS:
        made = [kind(values, epsilon) for kind in KINDS]
        best = local.best_encoding(values, epsilon)
        cells = [_cell(one, held, best) for one in made]
        rows.append([epsilon, *cells])
    return table(["epsilon", *(f"`{kind.__name__}`" for kind in KINDS)], rows)


def _cell(randomiser, held, best):
    predicted = math.sqrt(randomiser.variance * len(held))
    measured, inside = error(randomiser, held)
    shown = f"{predicted:,.0f} / {measured:,.0f}, {100 * inside:.0f} %, {randomiser.bits} bits"
    if measured > MOST_OVER * predicted:
        shown += " missed"
    return f"**{shown}**" if randomiser == best else shown


def statistical():
    """The share of flights scheduled from 18 h on, by one query of each tolerance."""
    times = pq.read_table(FLIGHTS, columns=["scheduled"]).column(0)
    hours = pc.hour(times).to_numpy()
    truth, rows = float((hours >= 18).mean()), []
    for tolerance in (0.02, 0.01):
        for epsilon in (1, 2):
            oracle = local.LROracle(hours, epsilon, domain=24)
            needed = local.users_needed(tolerance, epsilon, failure=0.05)
            asked = local.StatisticalQueries(oracle, tolerance=tolerance, queries=1)
            off = abs(asked.ask(lambda held: held >= 18).value - truth)
            shown = f"{off:.4f}" + (" missed" if off > tolerance else "")
            rows.append([f"{tolerance}", f"{epsilon}", f"{needed:,}", shown])
    return table(["tolerance", "epsilon", "users needed", "off by, all 336,776 asked"], rows)


def ranges():
    """A thousand ranges of days of the year, of all flights and of one in a hundred."""
    days = pc.day_of_year(pq.read_table(FLIGHTS, columns=["scheduled"]).column(0)).to_numpy() - 1
    ends = np.sort(np.random.default_rng(1).integers(0, 366, (QUERIES, 2)), axis=1)
    matrix = (np.arange(366) >= ends[:, :1]) & (np.arange(366) <= ends[:, 1:])
    return table(
        ["users", "noise", "with noise", "projected", "proved, 95 %", "seconds"],
        [
            _ranges(matrix, days[::step], noise)
            for step in (1, 10, 100)
            for noise in ("laplace", "gaussian")
        ],
    )


def _ranges(matrix, days, noise):
    counts = np.bincount(days, minlength=matrix.shape[1])
    asked = LinearQueries(matrix, users=len(days), epsilon=1, delta=DELTA, noise=noise)
    started = time.process_time()
    answer = asked.release(counts)
    seconds = time.process_time() - started
    truth = matrix @ counts
    raw, projected = (
        math.sqrt(((one - truth) ** 2).mean())
        for one in (answer.noised / asked.grid, answer.values)
    )
    proved = math.sqrt((asked.bound(0.05) + answer.gap) / QUERIES)
    shown = f"{projected:,.0f}" + (" missed" if projected > proved else "")
    return [f"{len(days):,}", noise, f"{raw:,.0f}", shown, f"{proved:,.0f}", f"{seconds:.1f}"]


def main():
    """Write all tables."""
    page = PAGE.read_text()
    for name, body in (
        ("origins", frequencies("origin")),
        ("destinations", frequencies("dest")),
        ("statistical", statistical()),
        ("ranges", ranges()),
    ):
        page = fill(page, name, body)
    PAGE.write_text(page)
    return 1 if "missed" in page else 0


if __name__ == "__main__":
    sys.exit(main())
