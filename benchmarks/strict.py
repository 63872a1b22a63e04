"""Measures every number of docs/accuracy-strict.md, with production coins: `make accuracy`.

    python -m benchmarks.strict [BLOCKLIST]

Counts of users who come and go, each in or out: parities beside counters and presence bits. The
flights of the examples are such a stream. So is the blocklist, a Parquet file with `ip_id` and
`delta` that is no part of the project: without it its rows are left out. Writes the page, and exits
with 1 if a number is outside of its limits. It takes about ten minutes.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.counters import IPSUM, marked, table
from benchmarks.laws import filled
from benchmarks.trials import ROOT, Outcome, Trial, measure

PAGE = ROOT / "docs" / "accuracy-strict.md"
DEPARTURES = ROOT / "examples" / "departures.parquet"
RUNS, COVERAGE_RUNS, STREAM_RUNS, STANDARD_ERRORS, SLACK = 400, 2_000, 200, 5, 1.05
TOLERANCE = (1 + STANDARD_ERRORS / math.sqrt(2 * RUNS)) * SLACK
WIDE = 10_000, 1_000_000
PLANS: Sequence[tuple[str, int | tuple[int, int], int, str]] = (
    ("4 KiB, 3,000", 3_000, 1 << 12, "1"),
    ("64 KiB, 100,000", 100_000, 1 << 16, "0.2"),
    ("64 KiB, 100,000", 100_000, 1 << 16, "1"),
    ("64 KiB, 100,000", 100_000, 1 << 16, "4"),
    ("8 KiB, 10^4 to 10^6", WIDE, 1 << 13, "1"),
    ("64 KiB, 10^4 to 10^6", WIDE, 1 << 16, "1"),
    ("1 MiB, 10^4 to 10^6", WIDE, 1 << 20, "1"),
)
COVERED: Sequence[tuple[str, int | tuple[int, int], int, str, Sequence[int]]] = (
    ("512 bytes, 3,000", 3_000, 512, "1", (0, 30, 3_000, 15_000, 30_000, 300_000)),
    ("64 KiB, 10^3 to 10^4", (1_000, 10_000), 1 << 16, "1", (0, 100, 1_000, 10_000, 10**5, 10**6)),
    ("8 KiB, 100 to 10^4", (100, 10_000), 1 << 13, "0.1", (0, 100, 10_000, 50_000, 1_000_000)),
    ("64 KiB, 10^4 to 10^6", WIDE, 1 << 16, "4", (0, 10_000, 10**5, 10**6)),
)
STREAMS = (
    ("flights", "flight", DEPARTURES, 78_028, 332_981),
    ("blocklist", "ip_id", IPSUM, 120_430, 1_089_939),
)

HEAD = """# Accuracy in strict streams

For readers who count members, listings or edges: users who are in or out. `make accuracy`
measures every number on this page again and rewrites it, and fails if a number is outside of its
limits. Coins come from the operating system, so another run changes digits and nothing else. How
parities are read: [decoding](guarantees/decoding.md#parities-of-a-strict-stream).
"""

BESIDE = (
    "Relative root-mean-square error of `DistinctCount`, by what it is planned for. Predicted: of "
    'counters (`deletions=True, bound=1`), of parities (`deletions="strict"`), and of presence '
    "bits, which take no deletions. Measured: of parities, with as many users who leave as stay. "
    f"Runs: {RUNS} each. Tolerance: measured over predicted within a factor {TOLERANCE:.2f}."
)
READING = (
    "Parities have eight times as many cells as counters of the same memory, and the fewer cells "
    "there are for the users, the more that gains. Where a range is planned for, a plan gives "
    "more cells to the many users at its upper end, and few users are counted against the noise "
    "of all of these. So at the lower end parities may err more than counters of the same memory, "
    "as presence bits do too. In an eighth of the memory they err exactly as counters do: 8 KiB "
    "of parities are 64 KiB of counters. Presence bits err less: that is the price of users who "
    "leave."
)
COVERAGE = (
    "95 % intervals from 0 users to a hundred times what was planned for. Where no cell tells "
    f"larger numbers apart, the upper end is infinite. Runs: {COVERAGE_RUNS:,} each. Tolerance: "
    "they cover at least 94 %, less 3 standard errors."
)
REAL = (
    "Rows that enter a user or have them leave, counted by counters and by parities of the same "
    "memory, planned for 10^4 to 10^6 users at epsilon 1. Flights: those of the examples, in from "
    "when they are scheduled until they leave. Blocklist: addresses that are listed and delisted "
    "over nine days, 2,108,524 rows. A count of inserts alone would give the last column. "
    "Root-mean-square error relative to the truth, and how many 95 % intervals hold the truth. "
    f"Runs: {STREAM_RUNS} each. Tolerance: measured at most 1.3 times predicted, and coverage "
    f"within {STANDARD_ERRORS} standard errors of 95 %."
)


class Leaving(pp.DistinctCount):
    """A count that takes in as many users who leave again as come."""

    def update(self, users: Any, deltas: Any = None) -> None:
        """Beside these users, as many others enter and leave."""
        others = np.asarray(users) + (1 << 40)
        super().update(others, deltas)
        super().update(users, deltas)
        super().update(others, np.full(len(others), -1))


def made(
    expected: int | tuple[int, int],
    memory: int,
    epsilon: str,
    kind: type[pp.DistinctCount] = pp.DistinctCount,
    **sizes: Any,
) -> functools.partial[Any]:
    """Makes a count of a strict stream, or another one."""
    given = {"expected": expected, "memory": memory, "epsilon": epsilon, **sizes}
    return functools.partial(kind, **given)


def strict(*sizes: Any, kind: type[pp.DistinctCount] = pp.DistinctCount) -> functools.partial[Any]:
    """Makes one of parities."""
    return made(*sizes, kind=kind, deletions="strict")


def told(expected: int | tuple[int, int]) -> list[int]:
    """The numbers of users at which errors are told."""
    low, high = expected if isinstance(expected, tuple) else (expected, expected)
    return sorted({low, round(math.sqrt(low * high)), high})


def percent(share: float, digits: int = 2) -> str:
    """For a table."""
    return f"{100 * share:.{digits}f} %"


def trials() -> tuple[dict[Any, Trial], dict[Any, Trial]]:
    """All that is run on made-up users: for errors, and for coverage."""
    errors = {
        (at, users): Trial(strict(*sizes, kind=Leaving), "numbers", users, users, RUNS)
        for at, (_, *sizes) in enumerate(PLANS)
        for users in told(sizes[0])
    }
    covers = {
        (at, users): Trial(strict(*sizes), "numbers", users, users, COVERAGE_RUNS)
        for at, (_, *sizes, counts) in enumerate(COVERED)
        for users in counts
    }
    return errors, covers


def beside_row(at: int, users: int, outcome: Outcome, missed: list[str]) -> list[str]:
    """One plan at one number of users."""
    name, *sizes = PLANS[at]
    counters = made(*sizes, deletions=True, bound=1)().plan.relative_error(users)
    bits = made(*sizes)().plan.relative_error(users)
    parities, measured = outcome.deviation / users, outcome.error / users
    within = 1 / TOLERANCE <= measured / parities <= TOLERANCE
    return [
        name, str(sizes[2]), f"{users:,}", percent(counters), percent(parities),
        marked(percent(measured), within, missed), f"{counters / parities:.2f}", percent(bits),
    ]  # fmt: skip


def covered_row(at: int, users: int, outcome: Outcome, missed: list[str]) -> list[str]:
    """How often intervals of one plan hold one number of users."""
    name, _, _, epsilon, _ = COVERED[at]
    least = 0.94 - 3 * math.sqrt(0.94 * 0.06 / COVERAGE_RUNS)
    shown = marked(percent(outcome.coverage, 1), outcome.coverage >= least, missed)
    return [name, epsilon, f"{users:,}", shown, percent(np.isinf(outcome.ends[:, 1]).mean(), 1)]


def real_rows(name: str, column: str, path: Path, truth: int, came: int, missed: list[str]) -> Any:
    """Both spellings on a real stream, in two sizes of memory."""
    read = pq.read_table(path, columns=[column, "delta"])
    users, deltas = (one.to_numpy() for one in read.columns)
    for memory, words in ((1 << 14, "16 KiB"), (1 << 16, "64 KiB"), (1 << 20, "1 MiB")):
        for spelling, sizes in {
            "`deletions=True, bound=1`": {"deletions": True, "bound": 1},
            '`deletions="strict"`': {"deletions": "strict"},
        }.items():
            answers = real_answers(made(WIDE, memory, "1", **sizes), users, deltas)
            error = float(np.sqrt(np.mean((answers[:, 0] - truth) ** 2))) / truth
            predicted = made(WIDE, memory, "1", **sizes)().plan.relative_error(truth)
            held = float(np.mean((answers[:, 1] <= truth) & (truth <= answers[:, 2])))
            least = 0.95 - STANDARD_ERRORS * math.sqrt(0.95 * 0.05 / STREAM_RUNS)
            yield [
                name, spelling, words, f"{truth:,}", f"{answers[:, 0].mean():,.0f}",
                marked(percent(error), error <= predicted * 1.3, missed), percent(predicted),
                marked(percent(held, 1), held >= least, missed), f"{came:,}",
            ]  # fmt: skip


def real_answers(
    make: functools.partial[Any], users: NDArray[np.int64], deltas: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The value and both ends of each run."""
    found = []
    for _ in range(STREAM_RUNS):
        statistic = make()
        statistic.update(users, deltas)
        answer = statistic.release()
        found.append([answer.value, answer.low, answer.high])
    return np.array(found)


def main() -> int:
    """Measure, write the page, and say what is outside of its limits."""
    missed: list[str] = []
    errors, covers = trials()
    outcomes = measure([*errors.values(), *covers.values()])
    beside = [beside_row(*key, outcomes[one], missed) for key, one in errors.items()]
    covered = [covered_row(*key, outcomes[one], missed) for key, one in covers.items()]
    given = [Path(word) for word in sys.argv[1:]]
    real = []
    for name, column, path, truth, came in STREAMS:
        at = given[0] if given and name == "blocklist" else path
        if at.exists():
            real += real_rows(name, column, at, truth, came, missed)
        else:
            print(f"skipped: the {name} is not here, so its rows are left out")
    headings = ["plan", "epsilon", "users", "counters", "parities", "measured", "times smaller"]
    sections = [
        HEAD,
        f"## Beside counters and presence bits\n\n{filled(BESIDE)}\n",
        table([*headings, "presence bits"], beside),
        f"{filled(READING)}\n",
        f"## How often intervals hold the truth\n\n{filled(COVERAGE)}\n",
        table(["plan", "epsilon", "users", "coverage", "upper end infinite"], covered),
        f"## Real streams\n\n{filled(REAL)}\n",
        table(
            ["stream", "spelling", "memory", "truth", "mean answer", "error", "predicted",
             "coverage", "users ever in"],
            real,
        ),
    ]  # fmt: skip
    PAGE.write_text("\n".join(sections))
    print(f"wrote {PAGE.name}; missed: {missed or 'none'}")
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
