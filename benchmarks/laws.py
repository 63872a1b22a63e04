"""The laws side by side for cropped sums, with the limit of all of them: `make accuracy`.

Predicted for every tau, law and number of cells, measured with production coins for some. Writes
docs/accuracy-laws.md and its picture, and exits with 1 when a number is outside of its limits.
docs/laws.md proves the limits.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import sys
import textwrap
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.counters import marked, table
from benchmarks.cropped import bump
from benchmarks.trials import ROOT
from panprivacy.statistics.cropped.plan import CroppedPlan
from panprivacy.statistics.cropped.sizes import CroppedSizes
from panprivacy.statistics.incidence.plan import IncidencePlan
from panprivacy.statistics.incidence.query import IncidenceQuery
from panprivacy.statistics.incidence.reading import NamedReading
from panprivacy.statistics.incidence.sizes import IncidenceSizes
from panprivacy.tables.cells.law import Law
from panprivacy.tables.decoders.circular import convolve, correlate
from panprivacy.tables.decoders.intervals import discrete_laplace_variance
from panprivacy.tables.planning.request import Request

Floats = NDArray[np.float64]

PAGE, PICTURE = ROOT / "docs" / "accuracy-laws.md", ROOT / "docs" / "cropped.png"
BUDGET = pp.Budget(state=1, release=1)
REQUEST = Request(Fraction(2), budget=BUDGET)
BOUND = 5_000
TAUS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
CELLS = (10**4, 10**5, 10**6)
MODULI = {"flat": 5_003, "biquadratic": 5_477, "singer": 9_841, "spike": 5_001, "geometric": 5_001}
LAWS = ("block", *MODULI)
MEASURED = {10**4: (1, 10, 100, 1_000), 10**5: (10,), 10**6: (1, 1_000)}
RUNS = {10**4: 1_000, 10**5: 1_000, 10**6: 200}
STANDARD_ERRORS, CHUNKS = 5, 8
LEAST_TAU_OF_MIR = 5
"""Below it the smallest mean that Theorem 7 promises is near 0 or less."""
WIDTHS = {"flat": 6.0, "biquadratic": 3.5, "singer": 1.0}
"""Of lines that all but cover one another, and do not depend on the number of cells."""
COLORS = dict(zip(LAWS, ("C0", "C1", "C2", "k", "C4", "C5"), strict=True))


# Predicted


@dataclass(frozen=True)
class Prediction:
    """What the plan says of the answer for the stream on which it varies most.

    Args:
        state: the state of all users in that stream.
        variance: of the answer.
        kurtosis: its fourth cumulant over the square of the variance, or more.
    """

    state: int
    variance: float
    kurtosis: float


@dataclass(frozen=True)
class Trial:
    """A law, where sums are cropped, and the number of cells; each has one user."""

    law: str
    tau: int
    cells: int

    @property
    def plan(self) -> CroppedPlan | IncidencePlan:
        """Of the statistic that asks for this cropped sum alone."""
        if self.law == "block":
            return CroppedSizes(tau=self.tau, bound=BOUND, universe=self.cells).plan(REQUEST)
        sizes = IncidenceSizes(bound=BOUND, universe=self.cells, law=law_of(self.law))
        return sizes.plan(REQUEST)

    def answer(self) -> float:
        """A fresh statistic's answer for the worst stream, before it is cut to what can be."""
        sizes: dict[str, Any] = {"bound": BOUND, "universe": self.cells}
        sizes |= {"epsilon": REQUEST.epsilon, "budget": BUDGET}
        users = np.arange(self.cells)
        deltas = np.full(self.cells, predicted(self).state)
        if self.law == "block":
            cropped = pp.CroppedSum(tau=self.tau, **sizes)
            cropped.update(users, deltas)
            return cropped.plan.model(0).unbiased(cropped.release().counts)
        incidence = pp.Incidence(law=law_of(self.law), **sizes)
        incidence.update(users, deltas)
        ((_, estimates),) = incidence.release(cropped_sum=self.tau).named.values()
        return float(estimates.values)


@functools.cache
def law_of(name: str) -> Law:
    """The smallest law of a family that tells all states up to the bound."""
    return getattr(Law, name)(MODULI[name], BUDGET.state)


@functools.cache
def predicted(trial: Trial) -> Prediction:
    """What the trial's plan predicts of the stream on which its answer varies most."""
    plan = trial.plan
    return of_blocks(trial, plan) if isinstance(plan, CroppedPlan) else of_scores(trial, plan)


def of_blocks(trial: Trial, plan: CroppedPlan) -> Prediction:
    """From one count of cells; where all users are in one state, of as many equal coins."""
    model = plan.model(0)
    deviations = model.deviation(trial.cells * np.arange(trial.tau + 1))
    state = int(np.argmax(deviations))
    share = model.output_share(float(trial.cells * state))
    return Prediction(state, float(deviations[state]) ** 2, 3 * share**2)


def of_scores(trial: Trial, plan: IncidencePlan) -> Prediction:
    """From a count of cells by scores, or from the histogram where that has less output noise."""
    model, query = plan.model(0), plan.states.cropped_sum(trial.tau)
    reading = plan.reading(IncidenceQuery(cropped_sum=(trial.tau,)), 0)
    noise = discrete_laplace_variance(float(reading.scales[0]))
    second, fourth = moments(plan.law, query.scores)
    state = int(np.argmax(second[: BOUND + 1]))
    if isinstance(reading, NamedReading):
        estimates = model.named(query, 0, noise)
        of_state = trial.cells * float(second[state])  # its own is of states beyond the bound, too
    else:
        expected = trial.cells * np.roll(plan.law.probabilities(), state)
        estimates = model.from_histogram(query, expected, noise)
        of_state = float(estimates.constant)
    variance = of_state + float(estimates.output)
    of_cells = trial.cells * max(float(fourth[state] - 3 * second[state] ** 2), 0)
    # The Laplace law has kurtosis 3; a sum of several has less.
    of_output = 3 * float(estimates.output) ** 2
    return Prediction(state, variance, (of_cells + of_output) / variance**2)


def moments(law: Law, scores: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The second and fourth central moment of a cell's vote, by the state of its user."""
    votes, noise = convolve(scores.astype(float), law.kernel()), law.probabilities()
    mean = votes.mean()
    first, second, third, fourth = (
        correlate((votes - mean) ** power, noise) for power in (1, 2, 3, 4)
    )
    central = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4
    return second - first**2, central


# Limits


def least(tau: float) -> float:
    """The least deviation of an unbiased answer, in roots of the cells, whatever the cells do."""
    return tau / (2 * math.sinh(BUDGET.state / 2))


def least_of_all(tau: float) -> float:
    """The same of the root of the mean square error, of any answer."""
    return tau / (2 * math.cosh(BUDGET.state / 2))


def least_modulo(scores: Floats) -> float:
    """The least deviation from cells to which states are added modulo M, on average over states.

    Args:
        scores: what each residue counts; the answer is unbiased for all of them.
    """
    gain = (float(np.mean(scores)) - float(scores[0])) / math.sinh(BUDGET.state / 2)
    return math.sqrt(max(gain**2 - float(np.var(scores)), 0))


def block_scores(plan: CroppedPlan) -> Floats:
    """What each residue counts for in a cropped sum by blocks."""
    residues = np.arange(plan.tau * plan.chosen.modulus)
    return np.minimum(np.minimum(residues, len(residues) - residues), plan.tau).astype(float)


# Measured


def run(trial: Trial, runs: int) -> list[float]:
    """The answers of some runs."""
    return [trial.answer() for _ in range(runs)]


def measure(trials: Iterable[Trial]) -> dict[Trial, Floats]:
    """The answers of all runs of all trials, on all processors."""
    largest_first = sorted(trials, key=lambda one: -one.cells)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        chunks = {
            one: [pool.submit(run, one, RUNS[one.cells] // CHUNKS) for _ in range(CHUNKS)]
            for one in largest_first
        }
        return {one: np.concatenate([c.result() for c in parts]) for one, parts in chunks.items()}


def tolerance(trial: Trial) -> float:
    """So many standard errors of a standard deviation, relative to it."""
    return STANDARD_ERRORS * math.sqrt((2 + predicted(trial).kurtosis) / (4 * RUNS[trial.cells]))


# The page

HEAD = """# Accuracy of the laws

`make accuracy` measures the second table of this page again and rewrites all of it, and fails if a
number is outside of its limits. Coins come from the operating system, so another run changes digits
of that table and nothing else.
"""


def filled(text: str) -> str:
    """A paragraph in lines of 100."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def digits(value: float) -> str:
    """Three significant digits, or a whole number."""
    places = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{places}f}"


def in_roots(trial: Trial) -> float:
    """The predicted deviation in roots of the cells."""
    return math.sqrt(predicted(trial).variance / trial.cells)


def predicted_row(tau: int, cells: int) -> list[str]:
    """A row of the first table."""
    mir = digits(bump(tau, float(BUDGET.state))) if tau >= LEAST_TAU_OF_MIR else ""
    modulo = least_modulo(block_scores(Trial("block", tau, cells).plan))
    numbers = [digits(in_roots(Trial(law, tau, cells))) for law in LAWS]
    return [f"{tau:,}", f"{cells:,}", *numbers, mir, digits(modulo), digits(least(tau))]


INTRO = (
    "The cropped sum `sum min(a, tau)` of m users with a cell each and states of 0 to "
    f"{BOUND:,}; at tau 1 it is the number of different users. Epsilon is 1 for the state "
    "and 1 for the release. The numbers are standard deviations in units of `sqrt(m)`, of the "
    "stream on which they are largest, with output noise, as `CroppedSum(tau=...)` (block) or "
    "`Incidence(law=...)` (all others) plan them. Laws are modulo "
    f"{', '.join(f'{modulus:,} ({law})' for law, modulus in MODULI.items())}; block "
    "has the modulus and the set that its plan takes."
)
LIMITS = (
    '"Limit" is `tau/(2 sinh(epsilon/2))`: no unbiased answer varies less, whatever '
    'independent cells of one user each do. "Limit modulo M" is for cells to which states are '
    "added modulo the modulus of block, and for answers that are unbiased at every residue: on "
    "average over all residues none of them varies less. An answer that is unbiased only at "
    "states that occur may. An answer of any bias has a root mean "
    f"square error of at least `tau/(2 cosh(epsilon/2))`, {least_of_all(1):.2f} tau, on some "
    "stream. [Proofs](laws.md#what-no-answer-can-beat), also of what these limits do not "
    'say. "Mir et al." is their Algorithm 2 with the factor 2 that its printed estimator '
    "lacks, without output noise; it does not know a bound, and its mean may be anything from "
    "about half of the sum to twice as much. "
    f"Below tau {LEAST_TAU_OF_MIR} its theorem promises hardly anything."
)
READING = (
    "Blocks grow with tau as the limits do, and stay within a tenth of that modulo M. Flat, "
    "biquadratic and Singer laws are as good for different users, and grow with `tau**1.5`. A "
    "spike and a geometric law start from a number that grows with the bound. Where a law is read "
    "off the whole histogram (geometric), or by scores of a wide range, output noise tells with "
    "few cells: so the numbers of one tau depend on m."
)


def predicted_section() -> str:
    """What all plans predict, beside the limits."""
    headings = ["tau", "m", *LAWS, "Mir et al.", "limit modulo M", "limit"]
    rows = [predicted_row(tau, cells) for tau, cells in itertools.product(TAUS, CELLS)]
    return f"""## Cropped sums at equal privacy

![Deviation of a cropped sum by law and tau](cropped.png)

{filled(INTRO)}

{filled(LIMITS)}

{filled(READING)}

{table(headings, rows)}"""


def measured_section(outcomes: dict[Trial, Floats], missed: list[str]) -> str:
    """What was measured, beside what was predicted."""
    rows = []
    for trial, values in outcomes.items():
        expected = predicted(trial)
        truth = trial.cells * min(expected.state, trial.tau)
        deviation, error = float(values.std(ddof=1)), float(values.mean()) - truth
        ratio = deviation / math.sqrt(expected.variance)
        bias, room = error / deviation * math.sqrt(len(values)), tolerance(trial)
        rows.append(
            [
                trial.law,
                f"{trial.tau:,}",
                f"{trial.cells:,}",
                f"{expected.state:,}",
                f"{len(values):,}",
                digits(deviation / math.sqrt(trial.cells)),
                digits(in_roots(trial)),
                marked(f"{ratio:.3f} (± {room:.2f})", abs(ratio - 1) <= room, missed),
                marked(f"{bias:+.1f}", abs(bias) < STANDARD_ERRORS, missed),
            ]
        )
    headings = ["law", "tau", "m", "state", "runs", "measured", "predicted", "ratio", "bias z"]
    text = (
        "Measured with production coins on the stream that each law takes worst: all users are in "
        "the state named. Deviations are in units of `sqrt(m)`. Tolerance (±): "
        f"{STANDARD_ERRORS} standard errors of a standard deviation, "
        "`sqrt((2 + k)/(4 runs))` with `k` at least the excess kurtosis of the answer; and "
        f"the mean error lies within {STANDARD_ERRORS} of its standard errors. If all is as "
        "predicted, a row is outside of one of them less than once in 100,000 times; a deviation "
        "that is off by twice the tolerance is found nearly always."
    )
    return f"## Measured\n\n{filled(text)}\n\n{table(headings, rows)}"


def draw(outcomes: dict[Trial, Floats]) -> None:
    """Lines as predicted, points as measured, both for the smallest and the largest tables."""
    figure = Figure(figsize=(9, 6.5), layout="constrained", dpi=110)
    axis = figure.subplots()
    few, many = min(CELLS), max(CELLS)
    for law, cells in itertools.product(LAWS, (few, many)):
        color, large = COLORS[law], cells == many
        heights = [in_roots(Trial(law, tau, cells)) for tau in TAUS]
        width, label = (WIDTHS.get(law, 2.0), law) if large else (0.8, None)
        if large or law not in WIDTHS:
            axis.plot(TAUS, heights, color=color, lw=width, label=label)
        points = [(t.tau, v) for t, v in outcomes.items() if (t.law, t.cells) == (law, cells)]
        spread = [float(values.std(ddof=1)) / math.sqrt(cells) for _, values in points]
        face = color if large else "white"
        axis.plot([tau for tau, _ in points], spread, "o", ms=5, color=color, mfc=face, zorder=3)
    of_mir = [tau for tau in TAUS if tau >= LEAST_TAU_OF_MIR]
    heights = [bump(tau, float(BUDGET.state)) for tau in of_mir]
    axis.plot(of_mir, heights, "-.", color="0.45", label="Mir et al., within a factor of 2")
    axis.plot(TAUS, [least(tau) for tau in TAUS], "k--", label="limit, unbiased")
    axis.plot(TAUS, [least_of_all(tau) for tau in TAUS], "k:", label="limit, any answer")
    axis.set(xscale="log", yscale="log", xlabel="tau, where each user's state is cropped")
    axis.set(ylabel="standard deviation of the cropped sum, in √cells")
    axis.set_title(
        f"States of 0 to {BOUND:,}, epsilon 1 for the state and 1 for the release\n"
        "thick lines, filled points: 10⁶ cells; thin lines, open points: 10⁴ cells",
        fontsize=11,
    )
    axis.set_xticks(TAUS, [f"{tau:,}" for tau in TAUS])
    axis.minorticks_off()
    axis.legend(frameon=False, loc="upper left")
    figure.savefig(PICTURE)


def main() -> int:
    """Measure, write the page and the picture, and say what is outside of its limits."""
    start, missed = time.monotonic(), []
    trials = [
        Trial(law, tau, cells) for law in LAWS for cells, taus in MEASURED.items() for tau in taus
    ]
    outcomes = measure(trials)
    by_law = {trial: outcomes[trial] for trial in trials}
    texts = [predicted_section(), measured_section(by_law, missed)]
    PAGE.write_text("\n".join([HEAD, *texts]))
    draw(by_law)
    print(f"wrote {PAGE.name} in {time.monotonic() - start:.0f} s; missed: {missed or 'none'}")
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
