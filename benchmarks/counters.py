"""Measures every number of docs/accuracy-counters.md, with production coins: `make accuracy`.

A trial is a statistic, the states of its users, and what is asked; every run makes a new statistic.
The script writes the page and the picture, and exits with 1 when a limit is missed.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.trials import HIGGS, ROOT
from panprivacy.tables.cells.law import Law

PAGE, PICTURE = ROOT / "docs" / "accuracy-counters.md", ROOT / "docs" / "laws.png"
IPSUM = ROOT / "../shared/data/ipsum_blocklist.parquet"
RUNS, LAW_RUNS, STREAM_RUNS, CHUNKS = 1_200, 200, 200, 8
FACTOR, HASHED_FACTOR, STANDARD_ERRORS = 1.1, 1.2, 5
STATE, RELEASE = Fraction(9, 10), Fraction(1, 10)
BUDGETS = [(STATE, RELEASE), (STATE, Fraction(1, 2)), (Fraction(3), Fraction(1))]
"""Epsilon of the state and of the release: hashed counters get the first that can be read."""
ONE_NAME, FOUR_NAMES = {"exactly": (1,)}, {"exactly": (1, 2, 3, 4)}
ASKED: dict[str, dict[str, Any]] = {"one name": ONE_NAME, "four names": FOUR_NAMES, "whole": {}}


@dataclass(frozen=True)
class Trial:
    """A statistic, the states of its users, and what is asked of it.

    Args:
        modulus: of the flat law, or of the law that is named.
        cells: number of counters.
        load: users a cell, for hashed counters; None for one user each.
        asked: a key of `ASKED`; the answer measured is that for the state 1.
        law: name of the law.
        epsilon: of the state.
        release: epsilon of the release.
        spread: every state is as frequent as any other; else each is half as frequent as the one
            below it.
    """

    modulus: int
    cells: int
    load: float | None
    asked: str
    law: str = "flat"
    epsilon: Fraction = STATE
    release: Fraction = RELEASE
    spread: bool = False

    def make(self) -> pp.Incidence:
        """A new statistic."""
        direct = self.load is None
        return pp.Incidence(
            epsilon=self.epsilon + self.release,
            bound=self.modulus - 1,
            universe=self.cells if direct else None,
            cells=self.cells,
            expected=None if direct else self.users,
            law=getattr(Law, self.law)(self.modulus, self.epsilon),
            budget=pp.Budget(state=self.epsilon, release=self.release),
        )

    @property
    def users(self) -> int:
        """The number of users, 40 % of whom never come if the universe is declared."""
        return self.cells if self.load is None else round(self.load * self.cells)

    def states(self) -> NDArray[np.int64]:
        """The state of each user."""
        if self.spread:
            return np.arange(self.users) % (self.modulus - 1) + 1
        rank = (np.arange(self.users) + 0.5) / self.users
        came = rank if self.load is not None else rank / 0.6
        states = np.floor(-np.log2(np.clip(came, 1e-12, 1))).astype(np.int64) + 1
        return np.where(came > 1, 0, np.minimum(states, self.modulus - 1))

    @property
    def most_over_formula(self) -> float:
        """The formula takes users of one cell to be in different states."""
        return FACTOR if self.load is None or self.spread else HASHED_FACTOR

    def formula(self) -> float:
        """The textbook deviation of a flat law, without its correction for a small modulus."""
        tangent, release = math.tanh(self.epsilon / 2), float(self.release)
        names = len(ASKED[self.asked].get("exactly", ()))
        named = 8 * names**2 if names and self.load is None else math.inf
        noise = min(8 * self.modulus, named) / release**2
        return math.exp(self.load or 0) * math.sqrt(self.cells + noise) / tangent


@dataclass(frozen=True)
class Outcome:
    """Answers of all runs, their stated deviations, and how many intervals hold the truth."""

    truth: float
    values: NDArray[np.float64]
    stated: NDArray[np.float64]
    covered: NDArray[np.bool_]

    @property
    def deviation(self) -> float:
        """The standard deviation over the runs."""
        return float(self.values.std())

    @property
    def predicted(self) -> float:
        """The root mean square of the deviations that the answers state."""
        return float(np.sqrt(np.mean(self.stated**2)))

    @property
    def bias(self) -> float:
        """The mean error over its standard error."""
        errors = self.values - self.truth
        return float(errors.mean() / errors.std() * math.sqrt(len(errors)))

    @property
    def error(self) -> float:
        """The root-mean-square error over the truth."""
        return float(np.sqrt(np.mean((self.values - self.truth) ** 2)) / self.truth)


def run(trial: Trial, runs: int) -> list[tuple[float, float, bool]]:
    """The answer for the state 1, its stated deviation, whether the interval holds the truth."""
    states = trial.states()
    users, deltas = np.flatnonzero(states), states[states > 0]
    truth = int((states == 1).sum())
    results = []
    for _ in range(runs):
        statistic = trial.make()
        statistic.update(users, deltas)
        results.append(read(statistic.release(**ASKED[trial.asked]), truth))
    return results


def read(answer: pp.IncidenceRelease, truth: int) -> tuple[float, float, bool]:
    """The answer for the state 1, without the cut at 0, with its stated deviation."""
    query, whole = answer.population.states.exactly(1), answer.whole
    if whole is None:
        _, estimates = answer.named[query.name]
    else:
        estimates = whole.model.from_histogram(query, answer.counts, whole.noise_variance)
    one = answer.exactly(1)
    covered = one.low <= truth <= one.high
    return float(estimates.values), float(estimates.deviations()), covered


def measure(trials: Iterable[Trial], runs: int) -> dict[Trial, Outcome]:
    """Run all trials, on all processors."""
    largest_first = sorted(dict.fromkeys(trials), key=lambda one: -one.cells)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        chunks = {
            one: [pool.submit(run, one, runs // CHUNKS) for _ in range(CHUNKS)]
            for one in largest_first
        }
        return {one: _outcome(one, [c.result() for c in parts]) for one, parts in chunks.items()}


def _outcome(trial: Trial, chunks: list[Any]) -> Outcome:
    values, stated, covered = map(
        np.array, zip(*(row for part in chunks for row in part), strict=True)
    )
    return Outcome(float((trial.states() == 1).sum()), values, stated, covered)


def marked(text: str, ok: object, missed: list[str]) -> str:
    """A number; bold, and noted, if it is outside of its limits."""
    if ok:
        return text
    missed.append(text)
    return f"**{text}: missed**"


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["--:"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def entry_trials() -> list[Trial]:
    """One user a cell, and hashed cells as far as they can be read."""
    trials = []
    for modulus in (11, 719, 7_019):
        for cells in (10**4, 10**5, 10**6):
            trials += [Trial(modulus, cells, None, asked) for asked in ASKED]
            for load in (0.1, 0.5, 1.0):
                trials += hashed_trials(modulus, cells, load)
    return trials


def hashed_trials(modulus: int, cells: int, load: float) -> list[Trial]:
    """Both kinds of states with the first budget that can be read, if there is one."""
    for epsilon, release in BUDGETS:
        trial = Trial(modulus, cells, load, "whole", epsilon=epsilon, release=release)
        if _readable(trial):
            return [trial, replace(trial, spread=True)]
    return []


def _readable(trial: Trial) -> bool:
    try:
        trial.make()
    except pp.PlanError:
        return False
    return True


def entries_section(missed: list[str]) -> str:
    outcomes = measure(entry_trials(), RUNS)
    least = 0.95 - STANDARD_ERRORS * math.sqrt(0.95 * 0.05 / RUNS)
    rows = []
    for trial, outcome in outcomes.items():
        ratio = outcome.deviation / outcome.predicted
        textbook = outcome.deviation / trial.formula()
        coverage = float(outcome.covered.mean())
        rows.append(
            [
                f"{trial.modulus:,}",
                f"{trial.cells:,}",
                "one user" if trial.load is None else f"load {trial.load:g}",
                "spread" if trial.spread else "geometric",
                f"{float(trial.epsilon):g} + {float(trial.release):g}",
                trial.asked,
                f"{outcome.truth:,.0f}",
                f"{outcome.deviation:,.0f}",
                marked(f"{ratio:.3f}", 1 / FACTOR <= ratio <= FACTOR, missed),
                marked(f"{textbook:.3f}", textbook <= trial.most_over_formula, missed),
                marked(f"{outcome.bias:+.1f}", abs(outcome.bias) < STANDARD_ERRORS, missed),
                marked(f"{100 * coverage:.1f} %", coverage >= least, missed),
            ]
        )
    rows.sort(key=lambda row: [float(x.replace(",", "")) for x in row[:2]] + row[2:6])
    headings = [
        "modulus", "cells", "a cell has", "states", "epsilon", "asked", "truth", "deviation",
        "over stated", "over formula", "bias z", "coverage",
    ]  # fmt: skip
    return f"""## An entry of the count-of-counts

How many users came exactly once: `Incidence` with the flat law; "epsilon" is that of the state + that of
the release. Geometric states: each is half as frequent as the one below; spread: all are as frequent.
Where one user has a cell, 40 % never come. Asked is that entry alone (one name), with three others (four
names), or the whole histogram; hashed cells always release the histogram. They take the first budget of
{", ".join(f"{float(a):g} + {float(b):g}" for a, b in BUDGETS)} at which the plan finds that they can be read, and are left out where it
finds none. Runs: {RUNS:,} each.

"Over stated" is the measured standard deviation over the one that the answers state, which they compute
from released numbers; tolerance 1/{FACTOR:g} to {FACTOR:g}. "Over formula" compares with
`e**load sqrt(m + min(8 M, 8 T**2)/epsilon_release**2)/t`, at most {FACTOR:g}, and {HASHED_FACTOR:g} for hashed cells with
geometric states: there half of all users share one state, and the formula takes users of one cell to be
in different states. A small modulus does better than the formula, which leaves out its correction.
The mean error lies within {STANDARD_ERRORS} of its standard errors, and 95 % intervals cover at least
{100 * least:.1f} %.

{table(headings, rows)}"""


LAWS = {"flat": 503, "biquadratic": 677, "singer": 781, "spike": 503, "geometric": 503}


def laws_section(missed: list[str]) -> str:
    epsilons = [Fraction(1, 2), Fraction(1), Fraction(2)]
    trials = [
        Trial(modulus, 10**5, None, "whole", law, epsilon, release=Fraction(2))
        for law, modulus in LAWS.items()
        for epsilon in epsilons
    ]
    outcomes = measure(trials, LAW_RUNS)
    rows = []
    for trial, outcome in outcomes.items():
        units = math.sqrt(trial.cells)
        ratio = outcome.deviation / outcome.predicted
        limit = 1 + STANDARD_ERRORS / math.sqrt(2 * LAW_RUNS)
        rows.append(
            [
                trial.law,
                f"{trial.modulus:,}",
                f"{float(trial.epsilon):g}",
                f"{outcome.deviation / units:.2f}",
                f"{outcome.predicted / units:.2f}",
                marked(f"{ratio:.3f}", 1 / limit <= ratio <= limit, missed),
            ]
        )
    rows.sort(key=lambda row: (list(LAWS).index(row[0]), float(row[2])))
    draw_laws(outcomes)
    headings = ["law", "modulus", "epsilon of the state", "measured", "stated", "ratio"]
    return f"""## The laws at equal privacy and memory

![Deviation of an entry by law and epsilon](laws.png)

10^5 counters of 16 bits with one user each, the same epsilon for the state and 2 for the release of the
whole histogram: standard deviation of the number of users that came exactly once, in units of `sqrt(m)`,
with the little output noise that this leaves. The lines of the picture are `Law.entry_deviation()`, without output noise. The
limit is `(1 - 1/M)/sinh(epsilon/2)`. Runs: {LAW_RUNS} each; tolerance: {STANDARD_ERRORS} standard errors.

{table(headings, rows)}"""


def draw_laws(outcomes: dict[Trial, Outcome]) -> None:
    """Lines from theory, points as measured."""
    figure = Figure(figsize=(8, 5), layout="constrained", dpi=110)
    axis = figure.subplots()
    epsilons = np.geomspace(0.1, 4, 40)
    for (law, modulus), color in zip(LAWS.items(), ["C0", "C1", "C2", "C3", "C4"], strict=True):
        make: Callable[..., Law] = getattr(Law, law)
        line = [make(modulus, Fraction(f"{e:.4f}")).entry_deviation() for e in epsilons]
        axis.plot(epsilons, line, color=color, label=f"{law}, modulus {modulus}")
        points = [(t.epsilon, o) for t, o in outcomes.items() if t.law == law]
        heights = [o.deviation / math.sqrt(10**5) for _, o in points]
        axis.plot([float(e) for e, _ in points], heights, "o", color=color)
    axis.plot(epsilons, 1 / np.sinh(epsilons / 2), "k:", label="limit of any law")
    axis.set(xscale="log", yscale="log", xlabel="epsilon of the state")
    axis.set(ylabel="standard deviation of an entry, in √cells")
    axis.set_title("Noise laws at equal privacy and memory; points: measured")
    axis.set_xticks([0.1, 0.2, 0.5, 1, 2, 4], ["0.1", "0.2", "0.5", "1", "2", "4"])
    axis.minorticks_off()
    axis.legend(frameon=False)
    figure.savefig(PICTURE)


def activity() -> NDArray[np.int64]:
    """Who acts in each row, numbered among all who act or are acted on."""
    rows = pq.read_table(HIGGS, columns=["user", "target"])
    users, targets = (column.to_numpy() for column in rows.columns)
    return np.searchsorted(np.union1d(users, targets), users)


def _higgs(runs: int) -> list[list[float]]:
    users = activity()
    results = []
    for _ in range(runs):
        statistic = pp.Incidence(universe=304_691, bound=700, epsilon=1, releases=2)
        statistic.update(users)
        named = statistic.release(exactly=(0, 1, 2), at_least=(10,))
        whole = statistic.release()
        answers = [named.exactly(0), named.exactly(1), named.exactly(2), named.at_least(10)]
        answers += [whole.exactly(1), whole.distinct(), whole.quantile(0.5)]
        results.append([x for one in answers for x in (one.value, one.low, one.high)])
    return results


def _ipsum(runs: int) -> list[list[float]]:
    rows = pq.read_table(IPSUM, columns=["ip_id", "delta"])
    users, deltas = (column.to_numpy() for column in rows.columns)
    results = []
    for _ in range(runs):
        statistic = pp.DistinctCount(
            deletions=True, epsilon=1, memory=1 << 20, expected=(10_000, 1_000_000), bound=1
        )
        statistic.update(users, deltas)
        answer = statistic.release()
        results.append([answer.value, answer.low, answer.high])
    return results


def stream_results(feed: Callable[[int], list[list[float]]]) -> NDArray[np.float64]:
    """The answers of all runs over one stream: float64[runs, answers, (value, low, high)]."""
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        parts = [pool.submit(feed, STREAM_RUNS // CHUNKS) for _ in range(CHUNKS)]
        rows = np.array([row for part in parts for row in part.result()])
    return rows.reshape(len(rows), -1, 3)


def streams_section(missed: list[str]) -> str:
    states = np.bincount(activity(), minlength=304_691)
    came = states[states > 0]
    truths = {
        "exactly 0 (named)": (states == 0).sum(),
        "exactly 1 (named)": (states == 1).sum(),
        "exactly 2 (named)": (states == 2).sum(),
        "at least 10 (named)": (states >= 10).sum(),
        "exactly 1 (whole)": (states == 1).sum(),
        "distinct (whole)": len(came),
        "median of activity (whole)": np.sort(came)[math.ceil(len(came) / 2) - 1],
    }
    higgs = stream_results(_higgs)
    rows = [
        _stream_row("activity", name, float(truth), higgs[:, at], math.inf, missed)
        for at, (name, truth) in enumerate(truths.items())
    ]
    ipsum = stream_results(_ipsum)
    rows.append(_stream_row("blocklist", "net-nonzero users", 120_430.0, ipsum[:, 0], 0.03, missed))
    headings = ["stream", "asked", "truth", "mean answer", "error", "coverage"]
    return f"""## Real streams

A week of Twitter activity, 563,069 rows: `Incidence(universe=304_691, bound=700, epsilon=1, releases=2)`,
one named and one whole release. A blocklist of addresses over nine days, 2,108,524 rows that list and
delist: `DistinctCount(deletions=True, epsilon=1, memory=1 << 20, expected=(10_000, 1_000_000), bound=1)`;
a count of inserts alone would say 1,089,939. Root-mean-square error relative to the truth, and how many
95 % intervals hold the truth. Runs: {STREAM_RUNS} each.

{table(headings, rows)}"""


def _stream_row(
    stream: str,
    name: str,
    truth: float,
    answers: NDArray[np.float64],
    most: float,
    missed: list[str],
) -> list[str]:
    values, low, high = answers.T
    error = float(np.sqrt(np.mean((values - truth) ** 2))) / truth
    coverage = float(np.mean((low <= truth) & (truth <= high)))
    least = 0.95 - STANDARD_ERRORS * math.sqrt(0.95 * 0.05 / STREAM_RUNS)
    limit = "" if math.isinf(most) else f" (at most {100 * most:g} %)"
    return [
        stream,
        name,
        f"{truth:,.0f}",
        f"{values.mean():,.0f}",
        marked(f"{100 * error:.2f} %{limit}", error <= most, missed),
        marked(f"{100 * coverage:.1f} %", coverage >= least, missed),
    ]


HEAD = """# Accuracy of counters

`make accuracy` measures every number on this page again and rewrites it, and fails if a number is
outside of its limits. Coins come from the operating system, so another run changes digits and nothing
else.
"""


def main() -> int:
    """Measure, write the page, and say what is outside of its limits."""
    start, missed = time.monotonic(), []
    texts = [entries_section(missed), laws_section(missed)]
    if HIGGS.exists() and IPSUM.exists():
        texts.append(streams_section(missed))
    else:
        print("skipped: the real streams are not here, so their rows are left out")
    PAGE.write_text("\n".join([HEAD, *texts]))
    print(f"wrote {PAGE.name} in {time.monotonic() - start:.0f} s; missed: {missed or 'none'}")
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
