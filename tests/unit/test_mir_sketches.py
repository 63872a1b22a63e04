"""Sketches of Mir et al.: what their estimators undo, and by how much they are off."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
)
from panprivacy.papers.published.mir_moments import contributions, seen


@pytest.mark.parametrize(("tau", "grid"), [(2, 1), (3, 7), (10, 15), (1, 3)])
def test_the_mean_of_a_counter_is_what_the_estimator_undoes(tau, grid):
    plan = CroppedFirstMoment(tau=tau, grid=grid, universe=1, epsilon=2).plan
    law, model = plan.law.probabilities(), plan.model(0)
    values, states = np.ogrid[: plan.modulus, : plan.modulus]
    means = (values * law[(values - states) % plan.modulus]).sum(axis=0)
    told = [model.unbiased(mean) for mean in means]
    np.testing.assert_allclose(told, seen(tau, grid, np.arange(plan.modulus)), atol=1e-5)


@pytest.mark.parametrize(("tau", "grid"), [(2, 1), (3, 7), (10, 15)])
def test_the_variance_of_a_counter_is_the_largest_one(tau, grid):
    plan = CroppedFirstMoment(tau=tau, grid=grid, universe=1, epsilon=2).plan
    law, values = plan.law.probabilities(), np.arange(plan.modulus)
    variances = [
        np.average(values**2, weights=np.roll(law, state))
        - np.average(values, weights=np.roll(law, state)) ** 2
        for state in values
    ]
    assert plan.model(0).cell_variance == pytest.approx(max(variances), rel=1e-6)


def printed(total, tau, users, epsilon):
    """The estimator as it is printed."""
    weight = 2 * tau - 1 + math.exp(epsilon)
    return (total - tau**2 * users / weight) * weight / math.expm1(epsilon) - users / 2


def test_the_printed_estimator_finds_58_for_a_user_who_never_came():
    """And with twice the constant it finds nothing, up to the grid (M1)."""
    plan = CroppedFirstMoment(
        tau=10, universe=1, epsilon=21, budget=pp.Budget(state=1, release=20)
    ).plan
    mean = float(plan.law.probabilities() @ np.arange(plan.modulus)) / plan.grid
    assert printed(mean, 10, 1, 1) == pytest.approx(58, abs=1)
    assert plan.model(0).unbiased(mean * plan.grid) == pytest.approx(0, abs=1e-4)
    assert printed(mean, 10, 1, 1) - 100 / math.expm1(1) == pytest.approx(0, abs=0.1)


def test_the_deviation_grows_with_the_square_of_tau():
    """72 to 78 of the root of the users at tau 10, and 100 times as much at 100 (M2)."""
    arguments = {"universe": 10_000, "epsilon": 41, "budget": pp.Budget(1, 40)}
    ten, hundred = (
        CroppedFirstMoment(tau=tau, **arguments).plan.absolute_error() / 100 for tau in (10, 100)
    )
    assert 72 < ten < 90
    assert hundred / ten == pytest.approx(100, rel=0.15)


@pytest.mark.parametrize("tau", [10, 100, 1_000])
def test_the_factor_is_smallest_in_the_middle_and_largest_below_tau(tau):
    """The paper claims 1/2 - 1/tau to 2; of real weights it is 2 sqrt(6) - 4 to 3/2."""
    least, most, _ = contributions(tau, 255, 30 * tau, tau)
    real = 2 * math.sqrt(6) - 4
    assert real - 0.6 / tau - 0.002 <= least <= real
    assert most == pytest.approx(1.5, rel=1e-9)


def test_a_distinct_count_of_small_tau_is_right_up_to_a_factor():
    for tau in (3, 4):
        model = CroppedDistinctCount(tau=tau, universe=10, epsilon=1).plan.model(0)
        assert 1 < model.most / model.least < tau
        assert model.scale**2 == pytest.approx(model.most * model.least)


@pytest.mark.parametrize("tau", [1, 2])
def test_a_distinct_count_wants_a_tau_above_2_as_the_paper_does(tau):
    with pytest.raises(pp.PlanError, match="tau must be a whole number of at least 3"):
        CroppedDistinctCount(tau=tau, universe=10, epsilon=1)


def test_the_thresholds_are_those_of_the_paper():
    upper, lower = CroppedHeavyHitters(k=10, total=1_009, spacing=5, epsilon=1).plans
    assert (upper.tau, lower.tau) == (100, 20)
    assert upper.universe == lower.universe == 40
    assert upper.request.epsilon + lower.request.epsilon == 1


def test_the_difference_of_two_factors_is_off_by_as_much_as_it_should_be():
    """Users of 9/10 of the threshold count for 1.8 each, in place of 0.8 (M9)."""
    weights = np.arange(255, 511)
    upper, lower = (seen(tau, 255, 900 * weights).mean() for tau in (1_000, 500))
    assert (upper - lower) / 500 == pytest.approx(1.8, abs=0.03)


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"total": 9}, {"spacing": 1}, {"cells": 0}, {"k": 51}, {"total": 10**9}]
)
def test_sizes_of_heavy_hitters_that_do_not_go_together(wrong):
    with pytest.raises(pp.PlanError):
        CroppedHeavyHitters(**{"k": 5, "total": 100, "epsilon": 1, **wrong})


def test_users_of_any_kind_are_counted_in_both_runs():
    heavy = CroppedHeavyHitters(k=2, total=100, epsilon=200, cells=4_096, grid=1)
    heavy.update(["ada", b"grace", "ada"], [30, 50, 20])
    assert heavy.release().value == pytest.approx(2, abs=3)


def test_deltas_of_an_iterator_are_counted_in_both_runs():
    heavy = CroppedHeavyHitters(k=2, total=100, epsilon=200, cells=4_096, grid=1)
    heavy.update(iter(["ada", "grace", "ada"]), iter([30, 50, 20]))
    assert heavy.release().value == pytest.approx(2, abs=3)
