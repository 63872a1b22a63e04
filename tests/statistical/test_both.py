"""Numbers of users of two streams are unbiased, err as predicted, and their intervals hold.

False-alarm rate 1e-6 an assertion. Answers and deviations that are off by 30 % are rejected, and so
are intervals that are half as wide; each of these is missed as rarely.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, centred, happens, rejected, spreads

RUNS = 1_100
MOST_BIAS = 0.12
"""Of an estimate, in deviations: logarithms have one of second order."""
SLACK = 1.08
INSIDE, AT_AN_END = (0.93, 0.98), (0.965, 0.998)
"""Where truths can be on both sides of an estimate, and where on one."""

QUESTIONS = "left", "right", "intersection", "union", "share"
CASES = {
    "one level": ({"expected": 3_000, "epsilon": 2}, 3_000),
    "a small epsilon": ({"expected": 20_000, "epsilon": "0.4"}, 20_000),
    "a large epsilon": ({"expected": 1_000, "epsilon": 6}, 1_000),
    "levels": ({"expected": (100, 30_000), "memory": 8_192, "epsilon": 3}, 5_000),
    "nobody in both": ({"expected": 3_000, "epsilon": 2, "share": 0}, 3_000),
}


def truths(each, share):
    """The exact answers, where so many users are in each stream."""
    both = round(share * each)
    return np.array([each, each, both, 2 * each - both, both / each])


@functools.cache
def answered(name):
    """The plan, the truths, and (estimate, low, high, standard error) of runs and questions."""
    sizes, each = CASES[name]
    answers = np.zeros((RUNS, len(QUESTIONS), 4))
    for run in range(RUNS):
        counted = pp.BothCount(**sizes)
        shared = round(float(counted.internals.memory.sizes.share) * each)
        users = np.arange(2 * each - shared)
        counted.update(users[:each], sides="left")
        counted.update(users[-each:], sides="right")
        found = counted.release().values()
        answers[run] = [(one.estimate, one.low, one.high, one.standard_error) for one in found]
    return counted.plan, truths(each, counted.plan.share), answers


def held(answers, truth, shrunk=1.0):
    """How many intervals hold the truth, after making them smaller by a factor."""
    value, low, high = answers[:, :3].T
    above = truth <= value + (high - value) / shrunk + 1e-9
    return int((above & (value - (value - low) / shrunk <= truth + 1e-9)).sum())


def is_centred(errors):
    """The test that errors have a mean of 0, but for a small bias."""
    most = MOST_BIAS * errors.std()
    return centred(errors - np.clip(errors.mean(), -most, most))


@pytest.mark.long
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", [name for name in CASES if name != "nobody in both"])
def test_answers_are_right_on_average_and_intervals_hold_the_truth(name, question):
    _, true, answers = answered(name)
    place = QUESTIONS.index(question)
    mine, truth = answers[:, place], true[place]
    assert accepted(is_centred(mine[:, 0] - truth))
    assert accepted(happens(held(mine, truth), RUNS, *INSIDE))
    assert rejected(happens(held(mine, truth, shrunk=2), RUNS, *INSIDE))


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_users_of_both_err_as_the_plan_says_before_anybody_is_counted(name):
    plan, true, answers = answered(name)
    predicted, place = plan.absolute_error(true[0]), QUESTIONS.index("intersection")
    errors = answers[:, place, 0] - answers[:, place, 0].mean()
    assert accepted(spreads(errors, predicted, SLACK))
    assert rejected(spreads(errors, predicted * OFF, SLACK))
    assert rejected(spreads(errors, predicted / OFF, SLACK))


@pytest.mark.long
def test_intervals_hold_where_nobody_is_in_both():
    _, true, answers = answered("nobody in both")
    place = QUESTIONS.index("intersection")
    mine = answers[:, place]
    assert true[place] == 0
    assert accepted(happens(held(mine, 0.0), RUNS, *AT_AN_END))
    assert accepted(is_centred(mine[:, 0]))
    assert accepted(happens(int((mine[:, 1] > 0).sum()), RUNS, 0.0, 0.035))
