"""`CroppedSum` is unbiased, errs as predicted, and its intervals hold the truth as they say.

False-alarm rate 1e-6 an assertion, and each check rejects what is off by 30 %. Predicted errors
are met, up to 3 %, where users are in one state; where they are not, errors may be smaller and
coverage larger: anything from 94.5 %.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.cropped.decompounded import DecompoundedPlan
from panprivacy.statistics.cropped.plan import CroppedPlan
from panprivacy.tables.decoders.blocks import CroppedModel

from .checks import (
    OFF,
    accepted,
    at_least,
    centred,
    chi_square_tail,
    happens,
    rejected,
    repeat,
    spreads,
    within,
)

RUNS, SLOW_RUNS = 1_500, 4_000
SLACK = 1.03
COVERAGE = 0.945, 0.98

ONE_STATE = {
    "a cell each": ({"universe": 1_000, "tau": 4, "bound": 30, "epsilon": 2}, 2),
    "a sample": ({"universe": 3_000, "cells": 700, "tau": 4, "bound": 30, "epsilon": 3}, 2),
    "an intrusion": (
        {"universe": 4_000, "tau": 2, "bound": 2, "epsilon": 6, "intrusions": 1},
        1,
    ),
}
SLOW_ONE_STATE = {
    "large epsilon": ({"universe": 2_000, "tau": 10, "bound": 100, "epsilon": 6}, 5),
    "wide blocks": ({"universe": 2_000, "tau": 1_000, "bound": 5_000, "epsilon": 1}, 700),
}
MIXED = {
    "inserts and deletes": ({"universe": 2_000, "tau": 10, "bound": 100, "epsilon": 1}, RUNS),
}
SLOW = {
    "a sample": (
        {"universe": 5_000, "cells": 1_000, "tau": 10, "bound": 100, "epsilon": 3},
        SLOW_RUNS,
    ),
    "wide blocks": ({"universe": 2_000, "tau": 1_000, "bound": 5_000, "epsilon": 1}, SLOW_RUNS),
    "a far bound": ({"universe": 2_000, "tau": 10, "bound": 10_000, "epsilon": 2}, SLOW_RUNS),
    "five releases": (
        {"universe": 2_000, "tau": 10, "bound": 100, "epsilon": 3, "releases": 5},
        SLOW_RUNS,
    ),
    "an intrusion": (
        {"universe": 20_000, "tau": 2, "bound": 8, "epsilon": 8, "intrusions": 1},
        SLOW_RUNS,
    ),
}


def slow(settings):
    return [pytest.param(*one, id=name, marks=pytest.mark.slow) for name, one in settings.items()]


def fast(settings):
    return [pytest.param(*one, id=name) for name, one in settings.items()]


def states_of(arguments):
    """A third of the users in state 0, then every state up to the bound, and as many far ones."""
    users, bound = arguments["universe"], arguments["bound"]
    spread = np.arange(users // 3) % bound + 1
    return np.concatenate([spread, np.full(users // 3, bound)])


def runs_of(arguments, states, repeats):
    """The users go beyond the bound and come back, with an intrusion between if one is planned."""
    users, bound = np.arange(len(states)), arguments["bound"]
    steps = [(users, np.full(len(states), bound)), (users, states - bound)]
    truth = float(np.minimum(states, arguments["tau"]).sum())
    if arguments.get("intrusions"):
        return repeat(lambda: pp.CroppedSum(**arguments), steps, truth, repeats)
    both = tuple(np.concatenate(parts) for parts in zip(*steps, strict=True))
    return repeat(lambda: pp.CroppedSum(**arguments), [both], truth, repeats)


def uncut(runs):
    """The estimates before they are cut."""
    model = runs.plan.model(runs.epoch)
    return np.array([model.unbiased(counts) for counts in runs.counts])


@pytest.mark.long
@pytest.mark.parametrize(("arguments", "state"), [*fast(ONE_STATE), *slow(SLOW_ONE_STATE)])
def test_users_in_one_state_err_as_predicted(arguments, state):
    states = np.full(arguments["universe"], state)
    runs = runs_of(arguments, states, RUNS)
    check_mean(runs)
    errors = uncut(runs) - runs.truth
    assert accepted(spreads(errors, runs.deviation, SLACK))
    assert rejected(spreads(errors, runs.deviation * OFF, SLACK))
    assert rejected(spreads(errors, runs.deviation / OFF, SLACK))
    assert accepted(happens(runs.covered(), RUNS, *COVERAGE))
    assert rejected(happens(runs.covered(shrunk=OFF), RUNS, *COVERAGE))


@pytest.mark.long
@pytest.mark.parametrize(("arguments", "repeats"), [*fast(MIXED), *slow(SLOW)])
def test_users_in_many_states_err_no_more_than_predicted(arguments, repeats):
    runs = runs_of(arguments, states_of(arguments), repeats)
    check_mean(runs)
    check_bound(uncut(runs) - runs.truth, runs.deviation)
    assert accepted(happens(runs.covered(), repeats, COVERAGE[0], 1))
    assert rejected(happens(runs.covered(shrunk=2), repeats, COVERAGE[0], 1))


HASHED = {"expected": 1_000, "tau": 10, "bound": 50, "epsilon": 4}
HASHED_RUNS = 600
"""They find errors of twice the size, and intervals that hold 85 %, 99 times in 100."""


@pytest.mark.long
@pytest.mark.parametrize(
    "state", [5, 50, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 10))]
)
def test_users_of_hashed_cells_err_no_more_than_predicted(state):
    """Where many share a cell the interval has to cover what they hide: errors may be smaller."""
    runs = repeat(
        lambda: pp.CroppedSum(**HASHED),
        [(np.arange(1_000), np.full(1_000, state))],
        1_000.0 * min(state, 10),
        HASHED_RUNS,
    )
    check_bound(runs.errors, runs.deviation)
    assert accepted(happens(runs.covered(), HASHED_RUNS, COVERAGE[0], 1))


@pytest.mark.long
@pytest.mark.parametrize("state", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_very_many_users_err_no_more_than_predicted(state):
    """A histogram is read: what a counter's users add up to is told, so nobody is hidden."""
    users, sizes = 10_000, {"expected": 10_000, "tau": 2, "bound": 2, "epsilon": 2}
    runs = repeat(
        lambda: pp.CroppedSum(**sizes),
        [(np.arange(users), np.full(users, state))],
        float(users * state),
        RUNS,
    )
    assert isinstance(runs.plan, DecompoundedPlan)
    check_bound(runs.errors, runs.deviation)
    assert accepted(happens(runs.covered(), RUNS, *COVERAGE))
    assert rejected(happens(runs.covered(shrunk=OFF), RUNS, *COVERAGE))


@pytest.mark.slow
@pytest.mark.parametrize(("state", "hides"), [(2, False), (10, True)])
def test_crowded_cells_hide_no_more_than_the_interval_says(state, hides):
    """Half as many users as cells: of those that count for tau, a fifth cannot be seen.

    The sum over cells is naive: as if nobody shared one.
    """
    runs = repeat(
        lambda: pp.CroppedSum(**{**HASHED, "cells": 18_000, "expected": 9_000}),
        [(np.arange(9_000), np.full(9_000, state))],
        9_000.0 * state,
        RUNS,
    )
    assert isinstance(runs.plan, CroppedPlan)  # of more users it would be a histogram
    assert accepted(happens(runs.covered(), RUNS, COVERAGE[0], 1))
    model = runs.plan.model(0)
    naive = np.array([CroppedModel.unbiased(model, counts) for counts in runs.counts])
    assert rejected(centred(naive - runs.truth)) is hides


LEVELS = {"expected": (300, 30_000), "memory": 1 << 15, "tau": 10, "bound": 100, "epsilon": 2}
LEVEL_RUNS = 500


@pytest.mark.parametrize(
    ("users", "state"),
    [
        (3_000, 10),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in [(10_000, 1), (30_000, 100)]),
    ],
)
def test_users_of_levels_err_no_more_than_predicted(users, state):
    """Whether they hide each other as much as can be, not at all, or fill more than a counter."""
    runs = repeat(
        lambda: pp.CroppedSum(**LEVELS),
        [(np.arange(users), np.full(users, state))],
        float(users * min(state, 10)),
        LEVEL_RUNS,
    )
    check_bound(runs.errors, runs.deviation * SLACK)
    assert accepted(happens(runs.covered(), LEVEL_RUNS, COVERAGE[0], 1))


def check_mean(runs):
    """Estimates are unbiased before they are cut."""
    estimates = uncut(runs)
    limit = runs.plan.model(runs.epoch).limit
    np.testing.assert_allclose(runs.errors + runs.truth, np.clip(estimates, 0, limit), rtol=1e-12)
    assert accepted(centred(estimates - runs.truth))
    assert rejected(centred(estimates * OFF - runs.truth))
    assert rejected(centred(estimates / OFF - runs.truth))


def check_bound(errors, deviation):
    """Their root-mean-square is at most the predicted one; errors twice as large are found."""

    def p_value(errors):
        squares = float((errors**2).sum()) / (deviation * SLACK) ** 2
        return chi_square_tail(squares, len(errors))

    assert accepted(p_value(errors))
    assert rejected(p_value(2 * errors))


SHARES = 0.617, 0.209, 0.072, 0.037, 0.019, 0.013, 0.008, 0.005, 0.004, 0.002
"""Of users with 1 to 10 events in a week of a social network; the other 1.4 % have more."""

SKEWED_RUNS = 2_000


def skewed(users):
    """States of that many users: most did something once, few very often."""
    ends = np.rint(np.cumsum(SHARES) * users).astype(int)
    return np.searchsorted(ends, np.arange(users), side="right") + 1


@pytest.mark.slow
@pytest.mark.parametrize("users", [8_000, 30_000])
def test_levels_are_as_good_as_they_say_on_users_as_they_are(users):
    """Coverage is 94 to 98 %, and no interval is 1.3 times as wide as it has to be.

    Answers lie between the truth and the middle of what collisions may hide. With intervals 1.5
    times as wide as needed those shrunk by 1.3 would hold the truth in 97.5 % of the runs, which is
    found 999 times in 1,000.
    """
    states = skewed(users)
    truth = float(np.minimum(states, 10).sum())
    runs = repeat(lambda: pp.CroppedSum(**LEVELS), [(np.arange(users), states)], truth, SKEWED_RUNS)
    check_bound(runs.errors, runs.deviation * SLACK)
    bias = float(runs.plan.model(0).bias(truth))
    assert accepted(within(runs.errors, -bias, bias))
    assert accepted(at_least(runs.errors, 0.75 * runs.deviation))
    assert rejected(at_least(runs.errors / 2, 0.75 * runs.deviation))
    assert accepted(happens(runs.covered(), SKEWED_RUNS, 0.94, 0.98))
    assert accepted(happens(runs.covered(shrunk=1.3), SKEWED_RUNS, 0, 0.95))
    assert rejected(happens(runs.covered(shrunk=1.3 / 2), SKEWED_RUNS, 0, 0.95))
