"""Measures every number of docs/accuracy.md, with production coins: `make accuracy`.

A section is data: its rows say which trials to run, its columns what to read off them and within
which limits. The script runs all trials, writes the page, and exits with 1 when a limit is missed.
"""

from __future__ import annotations

import functools
import math
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import panprivacy as pp
from benchmarks.trials import EDGE_DEVIATIONS, HIGGS, ROOT, Outcome, Trial, measure
from panprivacy.statistics.distinct.plan import DistinctPlan
from panprivacy.statistics.distinct.sizes import DistinctSizes
from panprivacy.tables.planning.bits import best_split
from panprivacy.tables.planning.request import Request

PAGE = ROOT / "docs" / "accuracy.md"
AIRCRAFT_DAYS, HIGGS_USERS = 251_561, 279_379

MOST = {0.95: 0.985, 0.5: 0.56, 0.99: 1.0}
"""The confidences that are checked, and the most that their intervals may cover: ten users at
epsilon 20 have few different answers, of which the interval holds some more than it must."""

COVERAGE_RUNS, ERROR_RUNS = 4_000, 1_000
FACTOR, SPLIT_FACTOR = 1.1, 1.25
STANDARD_ERRORS = 5


@dataclass(frozen=True)
class Cell:
    """A number of a table, and whether it is outside of its limits."""

    text: str
    missed: bool = False


@dataclass(frozen=True)
class Row:
    """Labels, the trials they stand for, and the most that the first one's error may be."""

    labels: tuple[str, ...]
    trials: tuple[Trial, ...]
    most: float = math.inf


Column = tuple[str, Callable[[Row, list[Outcome]], Cell]]


@dataclass(frozen=True)
class Section:
    """A table: what it measures and within which limits, its rows and its columns."""

    title: str
    text: str
    labels: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]

    def render(self, outcomes: dict[Trial, Outcome]) -> tuple[str, int]:
        """The section as Markdown, and how many numbers are outside of their limits."""
        headings = [*self.labels, *(heading for heading, _ in self.columns)]
        lines, missed = [headings, ["--:"] * len(headings)], 0
        for row in self.rows:
            cells = [read(row, [outcomes[one] for one in row.trials]) for _, read in self.columns]
            missed += sum(cell.missed for cell in cells)
            lines.append([*row.labels, *(_marked(cell) for cell in cells)])
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        text = textwrap.fill(self.text, 100, break_long_words=False, break_on_hyphens=False)
        return f"## {self.title}\n\n{text}\n\n{table}\n", missed


def _marked(cell: Cell) -> str:
    return f"**{cell.text}: missed**" if cell.missed else cell.text


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _runs(_row: Row, outcomes: list[Outcome]) -> Cell:
    return Cell(f"{len(outcomes[0].values):,}")


def _bytes(_row: Row, outcomes: list[Outcome]) -> Cell:
    return Cell(f"{outcomes[0].plan.table.nbytes:,}")


def _error(row: Row, outcomes: list[Outcome]) -> Cell:
    """In users the error is relative to the truth; shares stand as they are."""
    error = outcomes[0].error / max(outcomes[0].trial.truth, 1)
    most = f" (at most {100 * row.most:.3g} %)" if row.most < math.inf else ""
    return Cell(percent(error, 3) + most, error > row.most)


def _predicted(_row: Row, outcomes: list[Outcome]) -> Cell:
    return Cell(percent(outcomes[0].deviation / max(outcomes[0].trial.truth, 1), 3))


def _ratio(_row: Row, outcomes: list[Outcome]) -> Cell:
    ratio = outcomes[0].error / outcomes[0].deviation
    return Cell(f"{ratio:.3f}", not 1 / FACTOR <= ratio <= FACTOR)


def _bias(_row: Row, outcomes: list[Outcome]) -> Cell:
    return Cell(f"{outcomes[0].bias:+.1f}", not abs(outcomes[0].bias) < STANDARD_ERRORS)


ERROR_COLUMNS: tuple[Column, ...] = (
    ("bytes", _bytes),
    ("runs", _runs),
    ("measured", _error),
    ("predicted", _predicted),
    ("ratio", _ratio),
    ("bias z", _bias),
)
ERROR_LIMITS = (
    f"Tolerance: measured over predicted between 1/{FACTOR:g} and {FACTOR:g}, and the mean error "
    f"within {STANDARD_ERRORS} of its standard errors (bias z)"
)


def _least(confidence: float) -> float:
    return confidence - STANDARD_ERRORS * math.sqrt(confidence * (1 - confidence) / COVERAGE_RUNS)


def _coverage(which: int = 0) -> Callable[[Row, list[Outcome]], Cell]:
    def read(_row: Row, outcomes: list[Outcome]) -> Cell:
        outcome = outcomes[which]
        confidence, share, edge = outcome.trial.confidence, outcome.coverage, outcome.near_edge
        within = _least(confidence) <= share <= (1 if edge else MOST[confidence])
        return Cell(percent(share) + (" (edge)" if edge else ""), not within)

    return read


def _coverage_limits(*confidences: float) -> str:
    parts = [
        f"{100 * one:g} % intervals cover at least {percent(_least(one), 2)}"
        + (f" and at most {100 * MOST[one]:g} %" if MOST[one] < 1 else "")
        for one in confidences
    ]
    return (
        f"Runs: {COVERAGE_RUNS:,} each. Tolerance: {'; '.join(parts)}: the lower limit is "
        f"{STANDARD_ERRORS} standard errors below the confidence. Where the truth lies within "
        f"{EDGE_DEVIATIONS} predicted standard deviations of 0 users, or of a share of 0 or 1, "
        "answers are cut off there, intervals cover more, and there is no upper limit (edge)."
    )


@functools.cache
def distinct(expected: int | tuple[int, int], epsilon: str = "1", memory: int = 65_536) -> Any:
    """Makes a `DistinctCount`; equal arguments give the same maker."""
    return functools.partial(
        pp.DistinctCount, epsilon=Fraction(epsilon), memory=memory, expected=expected
    )


@functools.cache
def density(universe: int, epsilon: str = "1", **arguments: Any) -> Any:
    """Makes a `Density`; equal arguments give the same maker."""
    return functools.partial(pp.Density, universe=universe, epsilon=Fraction(epsilon), **arguments)


class OneLevel(DistinctSizes, frozen=True, tag="distinct"):
    """One level of all the memory, which the planner would not choose."""

    def plan(self, request: Request) -> DistinctPlan:
        """It is planned for one number of users."""
        split = best_split(request, 8 * self.memory)
        return DistinctPlan((self.expected,) * 2, 1, 8 * self.memory, request, split)


def planned(users: int, nbytes: int) -> pp.DistinctCount:
    """A count with one level of so many bytes."""
    return pp.DistinctCount(OneLevel(expected=users, memory=nbytes), epsilon=1)


HEAD = """# Accuracy

`make accuracy` measures every number on this page again and rewrites it, in about twenty minutes
on two processor cores, and fails if a number is outside of its limits. Coins come from the
operating system, so another run changes digits and nothing else.

Other pages: [counters](accuracy-counters.md); [the laws side by side](accuracy-laws.md), for
cropped sums with tau from 1 to 1,000 and 10^4 to 10^6 cells, beside the limit of them all;
[distinct users](accuracy-distinct.md) beside other sketches, and beside the limit of bits;
[strict streams](accuracy-strict.md), in which users come and go;
[moments and joins](accuracy-moments.md), in two forms of a release.
"""

WIDE, OPEN = (10_000, 10_000_000), (1_000, 10**9)
COUNTS = (0, 50, 1_000, 10**4, 10**5, HIGGS_USERS, 10**6)
SHARES = (0.0, 0.02, 0.3, 0.9, 1.0)


def counting(make: Any, users: int, runs: int = COVERAGE_RUNS, **arguments: Any) -> Trial:
    """A trial with users 0, 1, 2, ..."""
    return Trial(make, "numbers", users, users, runs, **arguments)


def sharing(make: Any, share: float, runs: int = COVERAGE_RUNS, **arguments: Any) -> Trial:
    """A trial in which a share of the universe appears.

    Where an announced intrusion is planned for, it falls after half of the users.
    """
    universe, announced = make.keywords["universe"], "intrusions" in make.keywords
    users = round(share * universe)
    times = {"parts": 1 + announced, "announced": announced}
    return Trial(make, "numbers", users, users / universe, runs, **times, **arguments)


def users_section() -> Section:
    wide, default = distinct(WIDE), distinct(OPEN)
    stream = functools.partial(Trial, wide, truth=HIGGS_USERS, runs=ERROR_RUNS)
    higgs = (
        Row(("279,379", "10^4 to 10^7", "activity"), (stream("higgs users", HIGGS_USERS),), 0.009),
        Row(("279,379", "10^4 to 10^7", "every row"), (stream("higgs rows", 563_069, parts=6),)),
    )
    flights = Trial(default, "flights", AIRCRAFT_DAYS, AIRCRAFT_DAYS, ERROR_RUNS)
    most = {10**4: 0.055, 10**5: math.inf, 10**6: math.inf, 10**7: 0.01}
    rows = [
        Row(
            (f"{users:,}", "10^4 to 10^7", "numbers"),
            (counting(wide, users, runs=ERROR_RUNS if users > 10**6 else COVERAGE_RUNS),),
            limit,
        )
        for users, limit in most.items()
    ]
    rows[2:2] = higgs if HIGGS.exists() else ()
    rows.append(Row(("251,561", "10^3 to 10^9", "aircraft"), (flights,)))
    return Section(
        "Distinct users: 64 KiB, epsilon 1",
        "Relative root-mean-square error of `DistinctCount(epsilon=1, memory=65536)` by number of "
        "users and expected range. The ids are whole numbers counted from 0 (numbers), the users "
        "of a week of Twitter activity (activity) and the texts of the aircraft-days of the "
        "example flights (aircraft). Each user is fed once: a bit that is redrawn again has the "
        "same law, and a batch redraws a touched bit once, so rows that repeat change nothing. "
        f"One row checks that on all 563,069 rows, in six batches. {ERROR_LIMITS}; and the limits "
        "in the column of measured errors.",
        ("users", "expected", "ids"),
        tuple(rows),
        ERROR_COLUMNS,
    )


def epsilon_section() -> Section:
    rows = [
        Row((epsilon,), (counting(distinct(10**5, epsilon), 10**5, runs=ERROR_RUNS),))
        for epsilon in ("0.1", "0.2", "0.5", "1", "2", "4", "8")
    ]
    return Section(
        "Distinct users by epsilon",
        "Relative root-mean-square error of `DistinctCount` at 10^5 users, planned for 10^5 users "
        f"within 64 KiB; the plan takes fewer bytes where more would not help. {ERROR_LIMITS}.",
        ("epsilon",),
        tuple(rows),
        ERROR_COLUMNS,
    )


def small_section() -> Section:
    sizes = {
        "planned": distinct(3_000),
        "one level of 8 KiB": functools.partial(planned, 3_000, 1 << 13),
        "one level of 64 KiB": functools.partial(planned, 3_000, 1 << 16),
    }
    trials = [counting(make, 3_000, runs=ERROR_RUNS) for make in sizes.values()]
    least = trials[-1].make().plan.relative_error(3_000)
    limits = (least, least, math.inf)
    return Section(
        "3,000 users: less memory, smaller error",
        "Relative root-mean-square error at epsilon 1: cells that nobody meets add noise and no "
        f"answer, so a plan for few users takes few cells. {ERROR_LIMITS}; the first two errors "
        "lie below the predicted one of the last.",
        ("table",),
        tuple(
            Row((name,), (trial,), most)
            for name, trial, most in zip(sizes, trials, limits, strict=True)
        ),
        ERROR_COLUMNS,
    )


def density_section() -> Section:
    universes = [(10**3, "1"), (10**4, "1"), (10**5, "0.1"), (10**5, "1"), (10**5, "4")]
    makes = [density(universe, epsilon) for universe, epsilon in universes]
    makes += [density(10**6), density(10**6, cells=10**4), density(10**6, "4", cells=10**4)]
    return Section(
        "Density",
        "Root-mean-square error of `Density`, in percent of the universe, when 30 % of it appears. "
        "With fewer cells than users the cells are a sample. " + ERROR_LIMITS + ".",
        ("universe", "cells", "epsilon"),
        tuple(
            Row(
                (
                    f"{make.keywords['universe']:,}",
                    f"{make.keywords.get('cells', make.keywords['universe']):,}",
                    str(make.keywords["epsilon"]),
                ),
                (sharing(make, 0.3, runs=ERROR_RUNS),),
            )
            for make in makes
        ),
        ERROR_COLUMNS,
    )


def split_section() -> Section:
    def pair(epsilon: str) -> tuple[Trial, Trial]:
        half = pp.Budget(state=Fraction(epsilon) / 2, release=Fraction(epsilon) / 2)
        both = density(10**5, epsilon), density(10**5, epsilon, budget=half)
        return tuple(sharing(make, 0.3, runs=2 * ERROR_RUNS) for make in both)

    def released(_row: Row, outcomes: list[Outcome]) -> Cell:
        request = outcomes[0].plan.request
        return Cell(percent(float(outcomes[0].plan.split.budget.release / request.epsilon)))

    def error(which: int) -> Callable[[Row, list[Outcome]], Cell]:
        return lambda _, outcomes: Cell(percent(outcomes[which].error, 4))

    def gain(_row: Row, outcomes: list[Outcome]) -> Cell:
        planned, half = outcomes
        predicted = (half.deviation / planned.deviation) ** 2
        measured = (half.error / planned.error) ** 2
        outside = not 1 / SPLIT_FACTOR <= measured / predicted <= SPLIT_FACTOR
        return Cell(f"{measured:.2f} (predicted {predicted:.2f})", outside)

    epsilons = ("0.1", "0.2", "0.5", "1", "2", "4")
    return Section(
        "Epsilon of the state and of the release",
        "`Density` of 10^5 users with a cell each, of whom 30 % appear: the planned split of "
        "epsilon against half for the state and half for the release, which is that of the "
        "papers. Root-mean-square errors in percent of the universe, and how many times larger "
        f"the mean square error of the half-half split is. Runs: {2 * ERROR_RUNS:,} each. "
        f"Tolerance: within a factor {SPLIT_FACTOR:g} of the predicted ratio.",
        ("epsilon",),
        tuple(Row((epsilon,), pair(epsilon)) for epsilon in epsilons),
        (
            ("planned share of the release", released),
            ("error, planned", error(0)),
            ("error, half-half", error(1)),
            ("ratio of mean squares", gain),
        ),
    )


def users_coverage_section() -> Section:
    settings = [("64 KiB, 10^4 to 10^7", "1", distinct(WIDE), users) for users in COUNTS]
    settings += [("64 bytes, 300", "1", distinct(300, memory=64), users) for users in (0, 50, 300)]
    settings += [
        ("64 KiB, 10^4 to 10^7", epsilon, distinct(WIDE, epsilon), 10**5)
        for epsilon in ("0.2", "5")
    ]
    settings += [
        ("64 KiB, 1 to 100", "20", distinct((1, 100), "20"), 10),
        ("64 KiB, 10^3 to 10^9", "20", distinct(OPEN, "20"), 10**3),
    ]
    return Section(
        "How often intervals hold the truth: users",
        f"95 % intervals of `DistinctCount`. {_coverage_limits(0.95)}",
        ("plan", "epsilon", "users"),
        tuple(
            Row((plan, epsilon, f"{users:,}"), (counting(make, users),))
            for plan, epsilon, make, users in settings
        ),
        (("coverage", _coverage()),),
    )


def beyond_section() -> Section:
    def infinite(_row: Row, outcomes: list[Outcome]) -> Cell:
        return Cell(percent(np.isinf(outcomes[0].ends[:, 1]).mean()))

    def covered(_row: Row, outcomes: list[Outcome]) -> Cell:
        share = outcomes[0].coverage
        return Cell(percent(share), share < _least(0.95))

    few, noisy = distinct(3_000, memory=4_096), distinct((100, 10_000), "0.1", memory=8_192)
    leaving = functools.partial(few.func, **few.keywords, deletions=True, bound=5)
    settings = [
        ("4 KiB, 3,000", "1", few, (0, 3_000, 15_000, 30_000, 300_000)),
        ("4 KiB, 3,000, deletions", "1", leaving, (0, 3_000, 15_000, 30_000, 300_000)),
        ("8 KiB, 100 to 10^4", "0.1", noisy, (0, 100, 10_000, 50_000, 1_000_000)),
    ]
    return Section(
        "How often intervals hold the truth: beyond the expected range",
        "95 % intervals of `DistinctCount` from 0 users to a hundred times what was planned for. "
        "Where no cell tells larger numbers apart, the upper end is infinite. "
        f"Runs: {COVERAGE_RUNS:,} each. Tolerance: they cover at least {percent(_least(0.95), 2)}.",
        ("plan", "epsilon", "users"),
        tuple(
            Row((plan, epsilon, f"{users:,}"), (counting(make, users),))
            for plan, epsilon, make, counts in settings
            for users in counts
        ),
        (("coverage", covered), ("upper end infinite", infinite)),
    )


def share_coverage_section() -> Section:
    settings = [
        (f"{universe:,}", "all", epsilon, "", density(universe, epsilon))
        for universe in (100, 1_000, 100_000)
        for epsilon in ("0.3", "1", "4")
    ]
    settings += [
        ("1,000", "250", "4", "", density(1_000, "4", cells=250)),
        ("100,000", "25,000", "1", "", density(100_000, cells=25_000)),
        ("1,000", "all", "4", "first of 5 releases", density(1_000, "4", releases=5)),
        ("1,000", "all", "4", "an announced intrusion", density(1_000, "4", intrusions=1)),
    ]
    return Section(
        "How often intervals hold the truth: shares",
        f"95 % intervals of `Density`, by the share that appears. {_coverage_limits(0.95)}",
        ("universe", "cells", "epsilon", "also"),
        tuple(
            Row(labels, tuple(sharing(make, share) for share in SHARES))
            for *labels, make in settings
        ),
        tuple((f"share {100 * share:g} %", _coverage(which)) for which, share in enumerate(SHARES)),
    )


def confidence_section() -> Section:
    few, share = distinct(300, memory=64), density(1_000, "1")
    confidences = sorted(MOST)
    settings = {
        "300 users, 64 bytes": [counting(few, 300, confidence=one) for one in confidences],
        "30 % of 1,000": [sharing(share, 0.3, confidence=one) for one in confidences],
    }
    return Section(
        "Other confidences",
        f"Intervals at epsilon 1. {_coverage_limits(*confidences)}",
        ("truth",),
        tuple(Row((name,), tuple(trials)) for name, trials in settings.items()),
        tuple((f"{100 * one:g} %", _coverage(which)) for which, one in enumerate(confidences)),
    )


def sections() -> list[Section]:
    """The page, table by table."""
    return [
        users_section(),
        epsilon_section(),
        small_section(),
        density_section(),
        split_section(),
        users_coverage_section(),
        beyond_section(),
        share_coverage_section(),
        confidence_section(),
    ]


def main() -> int:
    """Measure, write the page, and say what is outside of its limits."""
    start = time.monotonic()
    if not HIGGS.exists():
        print("skipped: the activity stream is not here, so its rows are left out")
    page = sections()
    outcomes = measure(trial for section in page for row in section.rows for trial in row.trials)
    texts, misses = zip(*(section.render(outcomes) for section in page), strict=True)
    PAGE.write_text("\n".join([HEAD, *texts]))
    for section, text, missed in zip(page, texts, misses, strict=True):
        print(text if missed else f"{section.title}: all within limits")
    print(f"wrote docs/accuracy.md in {time.monotonic() - start:.0f} s; {sum(misses)} missed")
    return min(sum(misses), 1)


if __name__ == "__main__":
    sys.exit(main())
