"""Measures what docs/moves.md says of answers that stand until they have moved: `make continual`.

    python -m benchmarks.moves

Two streams of real users. Aircraft of a year of flights (examples/flights.parquet), a user each
day: nearly as many come in each of 480 equal parts. And who tweeted about the Higgs boson in the
week of its discovery, in 480 equal slices of time: most come in one day. After each part the number
is compared. The error is that of what stands then, in production coins; beside it stand as many
answers on a clock, at the same epsilon. Then the same of days to which visitors come steadily.
Writes the tables of the page, and exits with 1 if a measured error is far above its prediction. It
takes some minutes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.continual import fill
from benchmarks.counters import table
from benchmarks.trials import HIGGS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "moves.md"
FLIGHTS = ROOT / "examples" / "flights.parquet"
EPSILONS = (1, 2, 4)
COMPARISONS = 480
UPDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
RUNS = 8
LIMIT = 1.25

DAY = (10_000, 100_000, 1_000_000)

Batches = Sequence[NDArray[np.int64]]
Table = tuple[list[str], list[list[str]]]


@cache
def flights(users: int) -> Batches:
    """The first so many aircraft, until the last of them comes."""
    column = pq.read_table(FLIGHTS, columns=["aircraft_day"]).column(0).drop_null()
    codes = np.asarray(column.combine_chunks().dictionary_encode().indices, np.int64)
    return np.array_split(codes[: int(np.argmax(codes == users - 1)) + 1], COMPARISONS)


@cache
def higgs(users: int) -> Batches:  # noqa: ARG001 - all of them
    """The users of each slice of the week."""
    rows = pq.read_table(HIGGS, columns=["ts", "user"])
    times, ids = rows.column("ts").to_numpy(), rows.column("user").to_numpy().astype(np.int64)
    ends = np.linspace(times[0], times[-1], COMPARISONS + 1)[1:-1]
    return np.split(ids, np.searchsorted(times, ends))


STREAMS: dict[str, tuple[Callable[[int], Batches], tuple[int, ...]]] = {
    "flights": (flights, (10_000, 50_000, 251_561)),
    "Higgs": (higgs, (279_379,)),
}


@dataclass(frozen=True)
class Choice:
    """So many updates for so many users, and the error that is expected."""

    users: int
    epsilon: int
    updates: int
    threshold: int
    predicted: float

    def moving(self) -> pp.ChangeTriggered:
        """The answer that stands until it has moved."""
        return running(self.users, self.epsilon, self.updates, self.threshold)

    def clocked(self) -> pp.DistinctCount:
        """As many answers on a clock."""
        expected = self.users // 10, self.users
        return pp.DistinctCount(expected=expected, epsilon=self.epsilon, releases=self.updates)


def running(users: int, epsilon: int, updates: int, threshold: float) -> pp.ChangeTriggered:
    """Different users so far."""
    distinct = partial(pp.DistinctCount, expected=(users // 10, users))
    return pp.ChangeTriggered(distinct, threshold=threshold, updates=updates, epsilon=epsilon)


@cache
def choice(users: int, epsilon: int, updates: int) -> Choice:
    """A threshold that noise reaches rarely, and the error of what stands then.

    The threshold is above N/c by as much as noise lifts the highest of the comparisons between two
    answers. What stands is taken to stray by any number up to the threshold, each as likely.
    """
    trial = running(users, epsilon, updates, users)
    lifted = trial.internals.releasing.noise() / math.sqrt(2) * math.log1p(COMPARISONS / updates)
    (statistic,) = trial.statistics.values()
    plan: Any = statistic.plan
    answer = plan.relative_error(users / 2) * users / 2
    threshold = round(users / updates + lifted)
    predicted = math.hypot(threshold / math.sqrt(3), answer)
    return Choice(users, epsilon, updates, threshold, predicted)


@cache
def best(users: int, epsilon: int) -> Choice:
    """The number of updates that errs least."""
    tried = (choice(users, epsilon, updates) for updates in UPDATES)
    return min(tried, key=lambda one: one.predicted)


def followed(chosen: Choice, batches: Batches) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far what stands strays after each part: if it waits for a move, and on a clock."""
    moving, clocked, came = chosen.moving(), chosen.clocked(), set[int]()
    strays, stands, made = [], 0.0, 0
    for place, batch in enumerate(batches, 1):
        came.update(batch.tolist())
        moving.update(batch)
        clocked.update(batch)
        moving.check()
        if place * chosen.updates // len(batches) > made:
            made += 1
            stands = clocked.release().value
        strays.append((moving.stands - len(came), stands - len(came)))
    first, second = np.array(strays).T
    return first, second


def measure(chosen: Choice, batches: Batches, runs: int = RUNS) -> list[tuple[float, float]]:
    """The root mean square and the largest of these errors, for a move and for a clock."""
    several = [followed(chosen, batches) for _ in range(runs)]
    found = []
    for each in zip(*several, strict=True):
        errors = np.array(each)
        found.append((math.sqrt(np.mean(errors**2)), float(np.abs(errors).max(axis=1).mean())))
    return found


def day() -> Table:
    """What to expect of a day to which visitors come steadily, compared every three minutes."""
    headings = ["visitors", "updates", "threshold", "noise of a comparison", "predicted"]
    headings += ["measured", "of all", "on a clock"]
    rows = []
    for users in DAY:
        chosen = best(users, 1)
        (error, _), (clock, _) = measure(chosen, np.array_split(np.arange(users), COMPARISONS))
        told = (
            chosen.threshold,
            chosen.moving().internals.releasing.noise(),
            chosen.predicted,
            error,
        )
        row = [f"{users:,}", str(chosen.updates), *(f"{one:,.0f}" for one in told)]
        rows.append([*row, f"{error / users:.1%}", f"{clock:,.0f}"])
        print(rows[-1], flush=True)
    return headings, rows


def main() -> int:
    """Measure, write the tables, and say what is far above its prediction."""
    rows, missed = [], []
    for name, (stream, sizes) in STREAMS.items():
        for users in sizes:
            for epsilon in EPSILONS:
                chosen = best(users, epsilon)
                (error, worst), (clock, worst_of_clock) = measure(chosen, stream(users))
                if error > LIMIT * chosen.predicted:
                    missed.append((name, users, epsilon))
                unit = math.sqrt(users / epsilon)
                told = chosen.predicted, error, clock, worst, worst_of_clock, error / unit
                row = [name, f"{users:,}", str(epsilon), str(chosen.updates)]
                row.append(f"{chosen.threshold:,}")
                rows.append([*row, *(f"{one:,.0f}" for one in told)])
                print(rows[-1], flush=True)
    headings = ["stream", "users", "epsilon", "updates", "threshold", "predicted"]
    headings += [
        "measured",
        "on a clock",
        "worst",
        "worst on a clock",
        "measured over sqrt(N/epsilon)",
    ]
    print("missed:", missed or "none")
    PAGE.write_text(fill(PAGE.read_text(), "moves", table(headings, rows)))
    PAGE.write_text(fill(PAGE.read_text(), "day", table(*day())))
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
