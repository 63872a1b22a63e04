"""The papers' algorithms: no bias where none is claimed, and the bias that is.

False-alarm rate 1e-6 an assertion, and each check rejects what is off by 30 %.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from panprivacy.papers.published import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
    PrimeIncidence,
)
from panprivacy.papers.published.mir_moments import seen

from .checks import OFF, accepted, at_most, centred, happens, rejected, within

RUNS = 400
USERS = 2_000


def answers(make, *batch):
    """The releases of so many runs."""
    released = []
    for _ in range(RUNS):
        statistic = make()
        statistic.update(*batch)
        released.append(statistic.release())
    return released


def moments(kind, states, **arguments):
    """The answers, what they are about on average over weights, and the plan."""
    batch = np.arange(USERS), states
    released = answers(lambda: kind(universe=USERS, **arguments), *batch)
    plan = kind(universe=USERS, **arguments).plan
    weights = np.arange(plan.grid, 2 * plan.grid + 1)
    added = seen(plan.tau, plan.grid, np.outer(states, weights)).mean(axis=1).sum()
    return released, float(added) / plan.model(0).scale, plan


STATES = {
    "below tau": np.arange(USERS) % 5,
    "around tau": np.arange(USERS) % 12,
    "far above": np.full(USERS, 37),
}


@functools.cache
def first_moments(states):
    """The runs of one stream, which two tests look at."""
    return moments(CroppedFirstMoment, STATES[states], tau=5, epsilon=2)


@pytest.mark.long
@pytest.mark.parametrize("states", STATES)
def test_a_first_moment_is_unbiased_for_the_weighted_states(states):
    released, mean, plan = first_moments(states)
    values = np.array([one.value for one in released])
    assert accepted(centred(values - mean))
    assert rejected(centred(values * OFF - mean))
    assert rejected(centred(values / OFF - mean))
    check_bound(values - mean, plan.absolute_error())


@pytest.mark.long
@pytest.mark.parametrize("states", STATES)
def test_intervals_cover_the_cropped_sum(states):
    released, _, plan = first_moments(states)
    check_coverage(released, float(np.minimum(STATES[states], plan.tau).sum()))


@pytest.mark.parametrize(
    "state", [1, 20, *(pytest.param(one, marks=pytest.mark.slow) for one in (2, 3))]
)
def test_intervals_cover_the_distinct_count(state):
    states = np.where(np.arange(USERS) < USERS // 2, state, 0)
    released, mean, _ = moments(CroppedDistinctCount, states, tau=3, epsilon=2)
    assert accepted(centred(np.array([one.value for one in released]) - mean))
    check_coverage(released, USERS / 2)


@pytest.mark.long
def test_heavy_hitters_are_what_weights_make_of_two_moments():
    """40 users of 7.5 times the threshold, in so many counters that they hardly meet."""
    released = answers(
        lambda: CroppedHeavyHitters(k=300, total=12_000, cells=20_000, grid=15, epsilon=400),
        np.arange(40),
        np.full(40, 300),
    )
    weights = np.arange(15, 31)
    upper, lower = (seen(tau, 15, 300 * weights).mean() for tau in (40, 20))
    mean = 40 * (upper - lower) / 20
    values = np.array([one.value for one in released])
    assert accepted(centred(values - mean))
    assert rejected(centred(values * OFF - mean))
    assert rejected(centred(values / OFF - mean))
    check_coverage(released, 40)


@pytest.mark.long
def test_estimates_modulo_a_prime_are_unbiased_and_their_minimum_is_not():
    """L estimates of equal deviation are on average `sd sqrt(2 ln L)` above the least (N1)."""
    states = np.arange(USERS) % 4
    released = answers(
        lambda: PrimeIncidence(universe=USERS, bound=3, primes=(5, 7, 11, 13), epsilon=8),
        np.arange(USERS),
        states,
    )
    truth = USERS / 4
    estimates = np.array([one.estimates(2) for one in released])
    for of_prime in estimates.T:
        assert accepted(centred(of_prime - truth))
        assert rejected(centred(of_prime * OFF - truth))
        assert rejected(centred(of_prime / OFF - truth))
    least = np.array([one.minimum(2) for one in released])
    assert rejected(centred(least - truth))
    deviations = estimates.std(axis=0)
    low = truth - least
    assert accepted(
        within(low, 0.3 * deviations.min(), deviations.max() * math.sqrt(2 * math.log(4)))
    )
    assert rejected(within(low, 0, 0.3 * deviations.min()))


def check_bound(errors, deviation):
    """Their root-mean-square is at most the predicted one; errors twice as large are found."""

    def p_value(errors):
        return at_most(errors, deviation)

    assert accepted(p_value(errors))
    assert rejected(p_value(2 * errors))


def check_coverage(released, truth):
    """At least what is said: the interval also covers what weights may do to other states."""
    covered = sum(one.low <= truth <= one.high for one in released)
    assert accepted(happens(covered, len(released), 0.95, 1))
