"""`Incidence` is unbiased, errs as predicted, and its intervals hold the truth as they say.

False-alarm rate 1e-6 an assertion; predicted errors may be off by 5 %, and coverage may be anything
from 94 to 98 %. Sums of several states have a bound in place of a prediction: their errors may be
smaller, and their intervals hold the truth more often.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, centred, chi_square_tail, happens, rejected, spreads

RUNS = 1_800
SLACK = 1.05
COVERAGE = 0.94, 0.98
QUESTIONS = [
    ("exactly", 1), ("at_least", 2), ("cropped_sum", 2), ("cropped_moment", 3, 2), ("distinct",)
]  # fmt: skip
NAMED = {
    "exactly": (1,), "at_least": (2,), "cropped_sum": (2,), "cropped_moment": (3, 2),
    "distinct": True,
}  # fmt: skip
SHARES = {1: 0.4, 2: 0.2, 3: 0.15}
"""The share of users in states; nobody else came."""

UNIVERSE = {"universe": 4_000, "bound": 5}
HASHED = {"epsilon": 3, "bound": 5, "expected": 4_000}
GEOMETRIC = {"law": pp.Law.geometric(6, 4), "budget": pp.Budget(4, 1)}


@dataclass(frozen=True)
class Setting:
    """How an incidence count is set up, what it is asked for, and what is taken off each state."""

    arguments: dict
    asked: dict = field(default_factory=dict)
    shift: int = 0

    @property
    def states(self):
        """The state of each user that came."""
        users = self.arguments.get("universe") or self.arguments["expected"]
        states = [np.full(round(share * users), state) for state, share in SHARES.items()]
        return np.concatenate(states) - self.shift

    @property
    def epoch(self):
        """The number of announced intrusions."""
        return self.arguments.get("intrusions", 0)


FAST = {
    "named": Setting({**UNIVERSE, "epsilon": 2}, NAMED),
    "whole": Setting({**UNIVERSE, "epsilon": 2}),
    "hashed": Setting(HASHED),
}
SLOW = {
    "named, a sample": Setting({**UNIVERSE, "epsilon": 5, "cells": 1_000}, NAMED),
    "named, many states": Setting({"universe": 50_000, "bound": 100, "epsilon": 1}, NAMED),
    "named, five releases": Setting({**UNIVERSE, "epsilon": 4, "releases": 5}, NAMED),
    "whole, signed": Setting({**UNIVERSE, "epsilon": 2, "signed": True}, shift=1),
    "whole, a sample": Setting({**UNIVERSE, "epsilon": 5, "cells": 1_000}),
    "whole, a geometric law": Setting({**UNIVERSE, "epsilon": 5, **GEOMETRIC}),
    "whole, an intrusion": Setting({**UNIVERSE, "epsilon": 8, "intrusions": 1}),
    "whole, many states": Setting({"universe": 50_000, "bound": 100, "epsilon": 2}),
    "hashed, named": Setting(HASHED, NAMED),
    "hashed, a full table": Setting({**HASHED, "cells": 5_000}),
    "hashed, many states": Setting({"epsilon": 2, "bound": 30, "expected": 50_000}),
}


@dataclass(frozen=True)
class Answers:
    """What independent runs say about one question.

    Args:
        truth: what they should say.
        values: the estimates before they are cut, one for each run.
        deviation: the stated standard deviation where the truth is known.
        releases: the estimates once they are cut, with their intervals.
    """

    truth: float
    values: np.ndarray
    deviation: float
    releases: list

    def covered(self, shrunk=1.0):
        """How many intervals hold the truth, after making them smaller by a factor."""
        value, low, high = np.array([(one.value, one.low, one.high) for one in self.releases]).T
        above = self.truth <= value + (high - value) / shrunk
        return int((above & (value - (value - low) / shrunk <= self.truth)).sum())


def released(setting):
    """One run: each user comes in two batches, with an intrusion between them if one is planned."""
    statistic = pp.Incidence(**setting.arguments)
    users = np.arange(len(setting.states))
    statistic.update(users)
    if setting.epoch:
        statistic.announce_intrusion()
    statistic.update(users, setting.states - 1)
    return statistic.release(**setting.asked)


def estimates(answer, question):
    """The model's reading of what was published."""
    if answer.whole is None:
        return answer.named[question.name][1]
    whole = answer.whole
    return whole.model.from_histogram(question, answer.counts, whole.noise_variance)


def read(states, runs, kind, *argument):
    """What all runs say about one question."""
    population = runs[0].population
    question = getattr(population.states, kind)(*argument)
    truth = float(question.scores[states].sum())
    found = [estimates(answer, question) for answer in runs]
    values = np.array([float(one.values) for one in found])
    at_truth = [
        dataclasses.replace(one, values=np.asarray(truth)).deviations() for one in found[::10]
    ]  # they hardly differ
    releases = [getattr(answer, kind)(*argument) for answer in runs]
    most = population.universe and population.universe * question.scores.max()
    shown = [one.value for one in releases]
    np.testing.assert_allclose(shown, np.clip(values, 0, most), atol=1e-6)
    return Answers(truth, values, float(np.sqrt(np.mean(np.square(at_truth)))), releases)


@pytest.mark.long
@pytest.mark.parametrize(
    "setting",
    [
        *(pytest.param(one, id=name) for name, one in FAST.items()),
        *(pytest.param(one, id=name, marks=pytest.mark.slow) for name, one in SLOW.items()),
    ],
)
def test_answers_are_as_good_as_they_say(setting):
    runs = [released(setting) for _ in range(RUNS)]
    for kind, *argument in QUESTIONS:
        answers = read(setting.states, runs, kind, *argument)
        check_mean(answers)
        if kind == "exactly":
            check_errors(answers)
            check_intervals(answers)
        else:
            check_bound(answers)
            check_coverage(answers)


def check_mean(answers):
    """Estimates are unbiased before they are cut."""
    assert accepted(centred(answers.values - answers.truth))
    assert rejected(centred(answers.values * OFF - answers.truth))
    assert rejected(centred(answers.values / OFF - answers.truth))


def check_errors(answers):
    """Their root-mean-square is the stated one."""
    errors = answers.values - answers.truth
    assert accepted(spreads(errors, answers.deviation, SLACK))
    assert rejected(spreads(errors, answers.deviation * OFF, SLACK))
    assert rejected(spreads(errors, answers.deviation / OFF, SLACK))


def check_bound(answers):
    """Their root-mean-square is at most the stated one; errors twice as large are found."""

    def p_value(errors):
        squares = float((errors**2).sum()) / (answers.deviation * SLACK) ** 2
        return chi_square_tail(squares, len(errors))

    errors = answers.values - answers.truth
    assert accepted(p_value(errors))
    assert rejected(p_value(2 * errors))


def check_intervals(answers):
    """They hold the truth as often as they say; smaller ones do not."""
    assert accepted(happens(answers.covered(), RUNS, *COVERAGE))
    assert rejected(happens(answers.covered(shrunk=OFF), RUNS, *COVERAGE))


def check_coverage(answers):
    """They hold the truth at least as often as they say; intervals of half the width do not."""
    assert accepted(happens(answers.covered(), RUNS, COVERAGE[0], 1))
    assert rejected(happens(answers.covered(shrunk=2), RUNS, COVERAGE[0], 1))


@pytest.mark.long
@pytest.mark.parametrize(
    "sizes", [{"universe": 6_000}, {"expected": 5_000}], ids=["direct", "hashed"]
)
def test_the_interval_of_a_mean_holds_the_truth(sizes):
    """Fieller's interval, of 90 %."""
    states = np.random.default_rng(1).integers(1, 5, 5_000)
    covered, runs, level = 0, 100, 0.9
    for _ in range(runs):
        visits = pp.Incidence(**sizes, bound=5, below=0, epsilon=4)
        visits.update(np.arange(5_000), states)
        mean = visits.release(confidence=level, mean=True)["mean"]
        covered += mean.low <= states.mean() <= mean.high
    assert accepted(happens(covered, runs, level, 1))
    assert rejected(happens(round(0.7 * runs), runs, level, 1))
