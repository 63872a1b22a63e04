"""What online decisions cost, beside what is predicted; fills the tables of docs/online.md.

    python -m benchmarks.online

Requests to counters follow Zipf's law with parameter 1. Experts are airports: each says that the
next late departure of 2013 is from there, or goes there. All with the coins of the system.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.continual import fill
from panprivacy.continual import Counter
from panprivacy.papers.online import UNITS, MultiCounter, PrivateExperts
from panprivacy.privacy.coins import SystemCoins
from panprivacy.tables.counters.mechanism import Floats

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/online.md"
SIZES = [(100, 10_000), (100, 1_000_000), (10_000, 1_000_000)]
RUNS = {"origin": 20, "dest": 2}


def delays(column: str) -> NDArray[np.int64]:
    """The airport of each late departure, in the order of the schedule.

    Args:
        column: "origin" for where it is from, "dest" for where it goes.
    """
    moves = pq.read_table(ROOT / "examples/departures.parquet")
    moves = moves.set_column(2, "aircraft_day", moves["aircraft_day"].cast("string"))
    on_time = moves.filter(pc.less(moves["delta"], 0))["flight"]
    stays = pc.invert(pc.is_in(moves["flight"], value_set=on_time.combine_chunks()))
    late = moves.filter(stays).select(["time", "aircraft_day"])
    flights = pq.read_table(ROOT / "examples/flights.parquet")
    flights = flights.set_column(1, "aircraft_day", flights["aircraft_day"].cast("string"))
    flown = flights.filter(pc.invert(flights["cancelled"])).rename_columns({"scheduled": "time"})
    both = late.join(flown, ["time", "aircraft_day"], join_type="inner")
    both = both.sort_by([("time", "ascending"), ("aircraft_day", "ascending")])
    names = np.array(both[column].to_pylist())
    return np.unique(names, return_inverse=True)[1]


def mistakes_of(outcomes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each expert was wrong in each round, where each always says the same."""
    return outcomes[:, None] != np.arange(outcomes.max() + 1)


def leader(mistakes: NDArray[np.bool_]) -> int:
    """The mistakes of who follows the expert with the fewest so far, by exact counts."""
    before = np.cumsum(mistakes, axis=0)[:-1].argmin(axis=1)
    return int(mistakes[np.arange(len(mistakes)), np.concatenate([[0], before])].sum())


def followed(mistakes: NDArray[np.bool_], runs: int, **how: object) -> tuple[float, float]:
    """The mistakes of `PrivateExperts` on average over runs, and their bound; at epsilon 1."""
    rounds, n = mistakes.shape
    asked: dict[str, Any] = {"epsilon": 1, **how}
    best, made = int(mistakes.sum(axis=0).min()), []
    for _ in range(runs):
        experts = PrivateExperts(n, rounds, **asked)
        made.append(mistakes[np.arange(rounds), experts.run(mistakes)].sum())
    return float(np.mean(made)), experts.bound(best)


def counters() -> Iterator[str]:
    """A row for each size."""
    yield "| counters | steps | answers every | error, predicted | measured | largest, 95 % bound "
    yield "| measured | seconds |\n" + "| --: " * 8 + "|\n"
    for n, steps in SIZES:
        weights = 1 / np.arange(1, n + 1)
        requests = np.random.default_rng(1).choice(n, steps, p=weights / weights.sum())
        program, squares, largest = MultiCounter(n, steps, epsilon=1), [], 0.0
        spent, piece = 0.0, max(steps // program.every // 50, 1) * program.every
        for start in range(0, steps, piece):
            begun = time.process_time()
            program.run(requests[start : start + piece])
            spent += time.process_time() - begun
            errors = program.values - np.bincount(requests[: program.answered], minlength=n)
            squares.append(float(np.mean(errors**2)))
            largest = max(largest, float(np.abs(errors).max()))
        cells = [f"{n:,}", f"{steps:,}", f"{program.every:,}", f"{program.predicted_error():.1f}"]
        cells += [f"{np.sqrt(np.mean(squares)):.1f}", f"{program.largest_error():,.0f}"]
        yield f"| {' | '.join([*cells, f'{largest:,.0f}', f'{spent:.1f}'])} |\n"


def tree_of_counters(requests: NDArray[np.int64], n: int, told_at: int) -> Iterator[Floats]:
    """The counts of the slides' tree after each tenth of the requests, at epsilon 1 in all.

    An event adds one to the register of each node from its leaf to the root. The root leaves every
    `told_at` steps, and the children of a node leave when it has told of as many events since they
    last did: so when they leave depends on what has left alone. Registers have noise of the scale
    `levels/epsilon` at birth and when they leave.
    """
    size = 1 << (n - 1).bit_length()
    noises = _noises(Fraction(size.bit_length()))
    registers = [next(noises) for _ in range(2 * size)]
    told, since = [0] * (2 * size), [0] * (2 * size)
    for step, one in enumerate(requests.tolist(), 1):
        node = size + one
        while node:
            registers[node] += 1
            node //= 2
        leaving = [1] if step % told_at == 0 else []
        while leaving:
            node = leaving.pop()
            left, registers[node] = registers[node] + next(noises), next(noises)
            told[node] += left
            since[node] += left
            if node < size and since[node] >= told_at:
                since[node], leaving = 0, [*leaving, 2 * node, 2 * node + 1]
        if step % (len(requests) // 10) == 0:
            yield np.array(told[size : size + n], float)


def _noises(scale: Fraction) -> Iterator[int]:
    """Noise without end."""
    while True:
        yield from SystemCoins().discrete_laplace(scale, 4_096).tolist()


def answers_of(program: MultiCounter, requests: NDArray[np.int64]) -> Iterator[Floats]:
    """Ours after each tenth of the requests."""
    for part in np.split(requests, 10):
        program.run(part)
        yield program.values


def errors_now(counts: Iterable[Floats], requests: NDArray[np.int64], n: int) -> NDArray[Any]:
    """Root-mean-square errors of all counters and of the largest 10, with what is not told yet."""
    squares, step = [], 0
    for found in counts:
        step += len(requests) // 10
        errors = found - np.bincount(requests[:step], minlength=n)
        squares.append([np.mean(errors**2), np.mean(errors[:10] ** 2)])
    return np.sqrt(np.mean(squares, axis=0))


def slides() -> Iterator[str]:
    """A row for each way to count the same requests."""
    yield "| 1,000 counters, 100,000 requests | error of all | of the largest 10 |\n"
    yield "| --: | --: | --: |\n"
    n, steps = 1_000, 100_000
    weights = 1 / np.arange(1, n + 1)
    requests = np.random.default_rng(1).choice(n, steps, p=weights / weights.sum())
    ways = {"`MultiCounter`": answers_of(MultiCounter(n, steps, epsilon=1), requests)}
    for told_at in (50, 100, 200, 400):
        name = f"tree of counters, children leave after {told_at} events"
        ways[name] = tree_of_counters(requests, n, told_at)
    for name, counts in ways.items():
        every, largest = errors_now(counts, requests, n)
        yield f"| {name} | {every:.1f} | {largest:.0f} |\n"


def experts() -> Iterator[str]:
    """A row for each sequence, unit and perturbation."""
    yield "| experts | rounds | best expert | exact leader | unit | perturbation | mistakes more "
    yield "than the best | bound |\n" + "| --: " * 8 + "|\n"
    for column, runs in RUNS.items():
        mistakes = mistakes_of(delays(column))
        rounds, n = mistakes.shape
        best, exact = int(mistakes.sum(axis=0).min()), leader(mistakes)
        for unit in UNITS:
            for perturbation in (0, None):
                made, bound = followed(mistakes, runs, unit=unit, perturbation=perturbation)
                chosen = PrivateExperts(
                    n, rounds, unit=unit, epsilon=1, perturbation=perturbation
                ).perturbation
                proved = "none" if bound == rounds else f"{bound - best:,.0f}"
                cells = [f"{n:,}", f"{rounds:,}", f"{best:,}", f"{exact:,}", unit, f"{chosen:,}"]
                yield f"| {' | '.join([*cells, f'{made - best:,.0f}', proved])} |\n"


def gaussian() -> Iterator[str]:
    """A row for each sequence: rounds that are hidden by the noise of a count, and by another one.

    Gaussian noise of rho 1/85 has epsilon 1 at delta 1e-9. A round moves n counts by 1 each, so it
    grows with the root of n. What experts do whose counts err so much, ours do at more epsilon.
    """
    yield "| experts | error of a count | with Gaussian noise | mistakes more than the best | with "
    yield "counts that err so |\n" + "| --: " * 5 + "|\n"
    for column, runs in RUNS.items():
        mistakes = mistakes_of(delays(column))
        rounds, n = mistakes.shape
        own = PrivateExperts(n, rounds, unit="round", epsilon=1).predicted_error()
        other = math.sqrt(n) * Counter(rounds, rho=Fraction(1, 85)).predicted_error()
        best, cells = int(mistakes.sum(axis=0).min()), [f"{n:,}", f"{own:,.0f}", f"{other:,.0f}"]
        for epsilon in (Fraction(1), Fraction(own / other).limit_denominator(100)):
            how = {"unit": "round", "perturbation": 0, "epsilon": epsilon}
            cells.append(f"{followed(mistakes, runs, **how)[0] - best:,.0f}")
        yield f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Measure, print, and fill the tables."""
    page = PAGE.read_text()
    tables = ("counters", counters()), ("slides", slides()), ("experts", experts())
    for name, rows in (*tables, ("gaussian", gaussian())):
        table = "".join(rows)
        print(table, flush=True)
        page = fill(page, name, table)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
