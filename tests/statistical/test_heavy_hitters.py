"""`HeavyHitterCount` errs no more than predicted, and its intervals hold the truth as they say.

False-alarm rate 1e-6 an assertion. Predicted errors are those of the worst stream, so errors may be
smaller; the deviation of the cells alone is met up to 5 % where nobody is heavy.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, at_most, centred, happens, rejected, repeat, spreads, within

RUNS = 1_000
SIZES = {"k": 50, "total": 10_000, "epsilon": 4}
LEAST_COVERAGE = 0.945

STREAMS = {"all just under the threshold": (np.arange(100), 100)}
SLOW = {
    "heavy users": (np.arange(50), 200),
    "all half-way": (np.arange(66), 150),
    "light users": (np.arange(5_000), 2),
    "one user": (np.arange(1), 10_000),
}
ROUNDED = {
    "heavy users": np.repeat(np.arange(50), 200),
    "all just under the threshold": np.repeat(np.arange(100), 100),
}


def soft_count(plan, users, deltas):
    """What the answer is about."""
    return float(np.clip(np.bincount(users, deltas) / plan.low - 1, 0, 1).sum())


def runs_of(users, deltas, **sizes):
    plan = pp.HeavyHitterCount(**SIZES, **sizes).plan
    truth = soft_count(plan, users, deltas)
    return repeat(lambda: pp.HeavyHitterCount(**SIZES, **sizes), [(users, deltas)], truth, RUNS)


def uncut(runs):
    """The estimates before they are cut."""
    return np.array([runs.plan.model(0).over_cells.unbiased(counts) for counts in runs.counts])


def check(runs):
    """Errors are at most as large as predicted, up to 5 %; of twice the size they are not."""

    def p_value(errors):
        return at_most(errors, 1.05 * runs.deviation)

    errors = uncut(runs) - runs.truth
    assert accepted(p_value(errors))
    assert rejected(p_value(2 * errors))
    assert accepted(happens(runs.covered(), RUNS, LEAST_COVERAGE, 1))


@pytest.mark.long
@pytest.mark.parametrize(
    "stream", [*STREAMS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_no_stream_errs_more_than_predicted(stream):
    users, state = {**STREAMS, **SLOW}[stream]
    check(runs_of(users, np.full(len(users), state)))


@pytest.mark.long
@pytest.mark.parametrize(
    "stream",
    ["heavy users", pytest.param("all just under the threshold", marks=pytest.mark.slow)],
)
def test_nor_does_one_of_rounded_deltas(stream):
    users = ROUNDED[stream]
    check(runs_of(users, np.ones(len(users), np.int64), resolution=4))


@pytest.mark.long
def test_where_nobody_comes_the_deviation_is_met():
    runs = runs_of(np.arange(1), np.ones(1, np.int64), cells=6_400)
    errors, deviation = uncut(runs), float(runs.plan.model(0).over_cells.deviation(0))
    assert accepted(centred(errors))
    assert accepted(spreads(errors, deviation, 1.05))
    assert rejected(spreads(errors, OFF**2 * deviation, 1.05))
    assert rejected(spreads(errors, deviation / OFF**2, 1.05))


@pytest.mark.long
def test_collisions_lift_the_worst_stream_by_as_much_as_is_said():
    """With few cells the lift is larger than chance, and more than half of the bound is needed."""
    users, deltas = np.arange(100), np.full(100, 100)
    runs = runs_of(users, deltas, cells=200)
    lift = runs.plan.model(0).lift
    errors = uncut(runs) - runs.truth
    assert accepted(within(errors, lift / 2, lift))
    assert rejected(within(errors, 0, lift / 2))
    assert accepted(happens(runs.covered(), RUNS, LEAST_COVERAGE, 1))
