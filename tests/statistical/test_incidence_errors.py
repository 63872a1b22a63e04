"""`Incidence` is unbiased, errs as predicted, and its intervals hold the truth as they say.

False-alarm rate 1e-6 an assertion; predicted errors may be off by 5 %, and coverage may be anything
from 94 to 98 %. Sums of several states have a bound in place of a prediction: their errors may be
smaller, and their intervals hold the truth more often.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.decoders import discrete_laplace_variance

from .checks import OFF, accepted, centred, chi_square_tail, happens, rejected, spreads

RUNS = 2_000
SLACK = 1.05
COVERAGE = 0.94, 0.98
ASKED = {"exactly": (1,), "at_least": (2,)}
TRUTH = {"exactly 1": 0.4, "at least 2": 0.35, "exactly 2": 0.2, "exactly 3": 0.15}
"""The share of users in states; nobody else came."""

UNIVERSE = {"universe": 4_000, "bound": 5}
HASHED = {"epsilon": 3, "bound": 5, "expected": 4_000}
FAST = {
    "named": ({**UNIVERSE, "epsilon": 2}, ASKED),
    "whole": ({**UNIVERSE, "epsilon": 2}, {}),
    "hashed": (HASHED, {}),
}
GEOMETRIC = {"law": pp.Law.geometric(6, 4), "budget": pp.Budget(4, 1)}
SLOW = {
    "named, a sample": ({**UNIVERSE, "epsilon": 5, "cells": 1_000}, ASKED),
    "named, many states": ({"universe": 50_000, "bound": 100, "epsilon": 1}, ASKED),
    "named, five releases": ({**UNIVERSE, "epsilon": 4, "releases": 5}, ASKED),
    "whole, a sample": ({**UNIVERSE, "epsilon": 5, "cells": 1_000}, {}),
    "whole, a geometric law": ({**UNIVERSE, "epsilon": 5, **GEOMETRIC}, {}),
    "whole, an intrusion": ({**UNIVERSE, "epsilon": 8, "intrusions": 1}, {}),
    "whole, many states": ({"universe": 50_000, "bound": 100, "epsilon": 2}, {}),
    "hashed, named": (HASHED, ASKED),
    "hashed, a full table": ({**HASHED, "cells": 5_000}, {}),
    "hashed, many states": ({"epsilon": 2, "bound": 30, "expected": 50_000}, {}),
}


def settings():
    return [
        *(pytest.param(*one, id=name) for name, one in FAST.items()),
        *(pytest.param(*one, id=name, marks=pytest.mark.slow) for name, one in SLOW.items()),
    ]


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


def states_of(users, bound):
    """The state of each user that came."""
    shares = {1: TRUTH["exactly 1"], 2: TRUTH["exactly 2"], 3: TRUTH["exactly 3"]}
    states = [np.full(round(share * users), state) for state, share in shares.items()]
    return np.minimum(np.concatenate(states), bound)


def released(arguments, asked):
    """One run: each user comes in two batches, with an intrusion between them if one is planned."""
    users = arguments.get("universe") or arguments["expected"]
    statistic = pp.Incidence(**arguments)
    states = states_of(users, arguments["bound"])
    statistic.update(np.arange(len(states)))
    if arguments.get("intrusions"):
        statistic.announce_intrusion()
    statistic.update(np.arange(len(states)), states - 1)
    return statistic.plan, states, statistic.release(**asked)


def estimates(plan, asked, release, question, epoch):
    """The model's reading of what was published."""
    model, epsilon = plan.model(epoch), release.epsilon
    if not asked or plan.universe is None:
        return model.whole(question, release.counts, discrete_laplace_variance(2 / epsilon))
    count = release.counts[[*asked].index(question.kind)]
    return model.named(question, count, discrete_laplace_variance(len(asked) / epsilon))


def read(arguments, asked, runs, kind, argument):
    """What all runs say about one question."""
    values, variances, answers, epoch = [], [], [], arguments.get("intrusions", 0)
    for plan, states, release in runs:
        question = getattr(plan.states, kind)(argument)
        truth = float(question.scores[states].sum())
        found = estimates(plan, asked, release, question, epoch)
        at_truth = dataclasses.replace(found, values=np.asarray(truth))
        values.append(float(found.values))
        variances.append(float(at_truth.deviations()) ** 2)
        answers.append(getattr(release, kind)(argument))
    shown = [one.value for one in answers]
    np.testing.assert_allclose(shown, np.clip(values, 0, plan.universe), atol=1e-6)
    return Answers(truth, np.array(values), float(np.sqrt(np.mean(variances))), answers)


@pytest.mark.parametrize(("arguments", "asked"), settings())
def test_answers_are_as_good_as_they_say(arguments, asked):
    runs = [released(arguments, asked) for _ in range(RUNS)]
    one_state = read(arguments, asked, runs, "exactly", 1)
    check_mean(one_state)
    check_errors(one_state)
    check_intervals(one_state)
    several = read(arguments, asked, runs, "at_least", 2)
    check_mean(several)
    check_bound(several)
    check_coverage(several)


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
