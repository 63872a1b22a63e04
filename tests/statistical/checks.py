"""Statistical tests that say how often they are wrong.

Every check returns a p-value: the probability, or a bound on it, that a correct law gives data
that are so far off or further. A test fails when it is below `FALSE_ALARM`, so each assertion on a
correct program fails once in a million runs. The power is shown by the same check: it must reject
a law that is off by 30 %, and sample sizes are such that it misses one as rarely.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import panprivacy as pp

FALSE_ALARM = 1e-6
OFF = 1.3
"""The factor by which wrong laws are off."""

_LEAST_EXPECTED = 50


def accepted(p_value: float) -> bool:
    """Whether data with this p-value pass."""
    return p_value >= FALSE_ALARM


def rejected(p_value: float) -> bool:
    """Whether data with this p-value are found to be wrong."""
    return not accepted(p_value)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """The probability that a chi-square variable is above `statistic`, exactly.

    With h half the statistic, integration by parts gives the sum of `h**i exp(-h) / Gamma(i+1)`
    over i below half the degrees, in whole steps from 0; or, if they are odd, from 1/2 on top of
    `erfc(sqrt(h))`, the tail of one degree.
    """
    half, odd = statistic / 2, degrees % 2
    if half <= 0:
        return 1.0
    steps = np.arange(odd / 2, degrees / 2)
    terms = [math.exp(i * math.log(half) - half - math.lgamma(i + 1)) for i in steps]
    return math.fsum(terms) + (math.erfc(math.sqrt(half)) if odd else 0)


def fits(observed: np.ndarray, probabilities: np.ndarray) -> float:
    """Pearson's chi-square test of the counts of all cells against their probabilities.

    Neighbouring cells are pooled until each expects at least 50: from there on the statistic
    follows the chi-square law far enough into its tail.
    """
    expected = probabilities / probabilities.sum() * observed.sum()
    starts = _pools(expected)
    expected, observed = np.add.reduceat(expected, starts), np.add.reduceat(observed, starts)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return chi_square_tail(statistic, len(expected) - 1)


def _pools(expected: np.ndarray) -> list[int]:
    """Where each pool of cells starts; what is left over at the end joins the last one."""
    starts, pooled = [0], 0.0
    for cell, amount in enumerate(expected):
        if pooled >= _LEAST_EXPECTED:
            starts.append(cell)
            pooled = 0.0
        pooled += amount
    return starts if pooled >= _LEAST_EXPECTED else starts[:-1] or [0]


def fits_integers(samples: np.ndarray, law: np.ndarray) -> float:
    """The same for whole numbers, whose law on -reach .. reach leaves out nothing that matters."""
    reach = len(law) // 2
    counts = np.bincount(np.clip(samples, -reach, reach) + reach, minlength=len(law))
    return fits(counts, law)


def happens(successes: int, trials: int, least: float, most: float | None = None) -> float:
    """The binomial test of coins of probability `least`, or anything from `least` to `most`."""
    successes = int(successes)
    share, most = successes / trials, least if most is None else most
    nearest = min(max(share, least), most)
    if nearest in {0, 1}:
        return float(share == nearest)
    heads = np.arange(trials)
    steps = np.log((trials - heads) / (heads + 1)) + math.log(nearest) - math.log1p(-nearest)
    law = np.exp(trials * math.log1p(-nearest) + np.append(0, np.cumsum(steps)))
    return min(1.0, 2 * float(min(law[: successes + 1].sum(), law[successes:].sum())))


def centred(errors: np.ndarray) -> float:
    """The normal test of a mean of 0, for hundreds of independent errors."""
    z = errors.mean() / errors.std() * math.sqrt(len(errors))
    return math.erfc(abs(z) / math.sqrt(2))


def spreads(errors: np.ndarray, deviation: float, slack: float = 1.0) -> float:
    """The chi-square test of the root-mean-square of nearly normal errors.

    Args:
        errors: independent errors, around 0.
        deviation: what their root-mean-square is, up to a factor of `slack` either way.
        slack: at least 1.
    """
    squares = float((errors**2).sum()) / deviation**2
    above = chi_square_tail(squares / slack**2, len(errors))
    below = 1 - chi_square_tail(squares * slack**2, len(errors))
    return min(1.0, 2 * min(above, below))


def at_most(errors: np.ndarray, deviation: float) -> float:
    """The same of a deviation that may be smaller."""
    return chi_square_tail(float((errors**2).sum()) / deviation**2, len(errors))


def at_least(errors: np.ndarray, deviation: float) -> float:
    """The same of a deviation that may be larger."""
    return 1 - at_most(errors, deviation)


def within(values: np.ndarray, low: float, high: float) -> float:
    """The normal test of a mean from `low` to `high`, for hundreds of independent values."""
    return centred(values - min(max(float(values.mean()), low), high))


@dataclass(frozen=True)
class Runs:
    """Independent runs of one statistic on one stream.

    Args:
        plan: of the statistic.
        epoch: number of announced intrusions before the release.
        truth: what it should answer.
        answers: the release of each run.
    """

    plan: pp.planning.DensityPlan | pp.planning.DistinctPlan
    epoch: int
    truth: float
    answers: list[pp.Release]

    @property
    def counts(self) -> np.ndarray:
        """The released counts of each run."""
        return np.array([answer.counts for answer in self.answers], float)

    @property
    def errors(self) -> np.ndarray:
        """How far each answer is from the truth."""
        return np.array([answer.value for answer in self.answers]) - self.truth

    @property
    def deviation(self) -> float:
        """The predicted standard deviation of the answers."""
        return float(self.plan.model(self.epoch).deviation(self.truth))

    def covered(self, shrunk: float = 1.0) -> int:
        """How many intervals hold the truth, after making them smaller by a factor."""
        value, low, high = np.array([(one.value, one.low, one.high) for one in self.answers]).T
        above = self.truth <= value + (high - value) / shrunk
        return int((above & (value - (value - low) / shrunk <= self.truth)).sum())


def repeat(
    make: Callable[[], pp.Density | pp.DistinctCount], batches: list, truth: float, runs: int
) -> Runs:
    """Make a statistic so often, feed it, announce an intrusion between batches, and release.

    A batch is ids, or a tuple of ids and deltas.
    """
    answers = []
    for _ in range(runs):
        statistic = make()
        for number, batch in enumerate(batches):
            if number:
                statistic.announce_intrusion()
            statistic.update(*batch) if isinstance(batch, tuple) else statistic.update(batch)
        answers.append(statistic.release())
    return Runs(statistic.plan, len(batches) - 1, truth, answers)


def check_errors(runs: Runs, slack: float) -> None:
    """Their root-mean-square is the predicted one."""
    assert accepted(spreads(runs.errors, runs.deviation, slack))
    assert rejected(spreads(runs.errors, runs.deviation * OFF, slack))
    assert rejected(spreads(runs.errors, runs.deviation / OFF, slack))


def check_mean(runs: Runs) -> None:
    """The bias of maximum likelihood may reach 8 % of the deviation, and does not exceed it."""

    def p_value(errors):
        allowed = np.clip(errors.mean(), -0.08 * runs.deviation, 0.08 * runs.deviation)
        return centred(errors - allowed)

    answers = runs.errors + runs.truth
    assert accepted(p_value(answers - runs.truth))
    assert rejected(p_value(answers * OFF - runs.truth))
    assert rejected(p_value(answers / OFF - runs.truth))


def check_intervals(runs: Runs, least: float, most: float) -> None:
    """They hold the truth as often as they say; smaller ones do not."""
    assert accepted(happens(runs.covered(), len(runs.answers), least, most))
    assert rejected(happens(runs.covered(shrunk=OFF), len(runs.answers), least, most))
