"""`DistinctCount` under deletions errs as predicted, and its intervals hold the truth.

False-alarm rate 1e-6 an assertion; predicted errors may be off by 5 % and coverage may be anything
from 94 to 98 %, for the counts of a level are only nearly normal; nearly full levels may be off by
8 %.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import Runs, check_errors, check_intervals, check_mean

RUNS, FULL_RUNS = 1_800, 6_000
SLACK, FULL_SLACK = 1.05, 1.08
COVERAGE = 0.94, 0.98
SMALL = {"epsilon": 2, "expected": 1_000, "memory": 1_024, "deletions": True, "bound": 4}


def left(users):
    """Every user comes once and stays."""
    return [(np.arange(users), None)]


def cancelling(users):
    """As many come and leave, in both orders of size, as stay."""
    ids, guests = np.arange(users), np.arange(users, 2 * users)
    return [(guests, None), (ids, None), (guests, np.full(users, 2)), (guests, np.full(users, -3))]


def signed(users):
    """States on both sides of 0, up to the bound; guests are below 0 before they cancel."""
    ids, guests = np.arange(users), np.arange(users, 2 * users)
    states = np.resize([-4, -1, 1, 3], users)
    return [(guests, np.full(users, -4)), (ids, states), (guests, np.full(users, 4))]


def huge(users):
    """States that are as large as can be."""
    return [(np.arange(users), np.full(users, 4)), (np.arange(users), np.full(users, 0))]


FAST = {
    "as many cancel": (SMALL, cancelling, 1_000),
    "signed states": ({**SMALL, "signed": True}, signed, 1_000),
    "a modulus of 2": ({**SMALL, "bound": 1, "memory": 8_192}, left, 1_000),
}
SLOW = {
    "all stay": (SMALL, left, 1_000),
    "the largest states": (SMALL, huge, 1_000),
    "more users than cells": (
        {**SMALL, "expected": (1_000, 100_000), "memory": 4_096},
        cancelling,
        9_000,
    ),
    "an intrusion": ({**SMALL, "epsilon": 8, "intrusions": 1}, cancelling, 1_000),
    "a large bound": ({**SMALL, "bound": 1_000, "memory": 16_384, "epsilon": 4}, cancelling, 3_000),
    "a range": ({**SMALL, "expected": (1_000, 100_000), "memory": 8_192}, cancelling, 20_000),
    "five releases": ({**SMALL, "memory": 4_096, "epsilon": 5, "releases": 5}, cancelling, 3_000),
}
SATURATED = {
    "a full level modulo 2": ({**SMALL, "bound": 1}, left, 1_000),
    "small levels": ({**SMALL, "memory": 128, "epsilon": 4}, cancelling, 1_000),
}
"""Plans for one number of users in few cells, which that number nearly fills."""

SETTINGS = [
    *(pytest.param(*one, id=name) for name, one in FAST.items()),
    *(pytest.param(*one, id=name, marks=pytest.mark.slow) for name, one in SLOW.items()),
]
TOO_FEW_CELLS = pytest.mark.xfail(
    reason="128 bytes for 1,000 users: errors have a longer tail than predicted"
)
FULL = [
    pytest.param(
        *one,
        id=name,
        marks=[pytest.mark.slow, *([TOO_FEW_CELLS] if name == "small levels" else [])],
    )
    for name, one in SATURATED.items()
]


def repeat(arguments, batches, truth, runs=RUNS):
    """Make the statistic so often, feed it, announce what is planned after the first batch."""
    answers, epoch = [], arguments.get("intrusions", 0)
    for _ in range(runs):
        statistic = pp.DistinctCount(**arguments)
        for number, (users, deltas) in enumerate(batches):
            if number == 1 and epoch:
                statistic.announce_intrusion()
            statistic.update(users, deltas)
        answers.append(statistic.release())
    return Runs(statistic.plan, epoch, truth, answers)


@pytest.mark.long
@pytest.mark.parametrize(("arguments", "stream", "users"), SETTINGS)
def test_answers_are_as_good_as_they_say(arguments, stream, users):
    runs = repeat(arguments, stream(users), users)
    check_errors(runs, SLACK)
    check_mean(runs)
    check_intervals(runs, *COVERAGE)


@pytest.mark.parametrize(("arguments", "stream", "users"), FULL)
def test_answers_from_nearly_full_levels_are_as_good_as_they_say(arguments, stream, users):
    check_errors(repeat(arguments, stream(users), users, FULL_RUNS), FULL_SLACK)


# Nearly without noise


def exact(**arguments):
    """So much epsilon that noise hardly shows; what is left are collisions."""
    wanted = {"epsilon": 30, "expected": 10_000, "memory": 1 << 20, "deletions": True, "bound": 4}
    return pp.DistinctCount(**{**wanted, **arguments})


def check_near(statistic, truth):
    """Six deviations: false alarm below 1e-8. An answer that is 30 % off is further away."""
    reach = 6 * float(statistic.plan.model(0).deviation(truth))
    assert abs(statistic.release().value - truth) <= reach
    assert reach < 0.3 * truth


def test_users_that_cancel_are_not_counted():
    statistic = exact()
    for users, deltas in cancelling(10_000):
        statistic.update(users, deltas)
    statistic.update(np.arange(5_000), np.full(5_000, -1))
    check_near(statistic, 5_000)


@pytest.mark.parametrize("times", [1, 2])
def test_a_state_that_is_a_multiple_of_the_modulus_is_missed(times):
    """It lies beyond the bound, so that no more is promised; the others are counted."""
    statistic = exact()
    for _ in range(times * statistic.plan.law.modulus):
        statistic.update(np.arange(10_000))
    statistic.update(np.arange(4_000))
    check_near(statistic, 4_000)


@pytest.mark.parametrize("state", [-4, -3, -1, 1, 4])
def test_a_state_within_the_bound_is_never_missed(state):
    statistic = exact(signed=True)
    statistic.update(np.arange(10_000), np.full(10_000, state))
    check_near(statistic, 10_000)


def test_opposite_users_that_share_a_cell_do_not_cancel_each_other():
    """Each has a factor of his own; if all had one, the pairs would look like 0 far too often."""
    statistic = exact(expected=2_000, memory=4_096, signed=True)
    statistic.update(np.arange(2_000), np.resize([1, -1], 2_000))
    check_near(statistic, 2_000)
