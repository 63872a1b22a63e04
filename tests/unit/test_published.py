"""The papers' algorithms: sizes, constants, refused input, one ledger, one state."""

from __future__ import annotations

import math
import pickle
import sys
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.published import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
    PrimeIncidence,
    draw_primes,
)
from panprivacy.published.mir_moments import contributions, seen
from panprivacy.testing import SeededCoins

ALL = {
    "first moment": (CroppedFirstMoment, {"tau": 3, "universe": 50, "epsilon": 1}),
    "distinct": (CroppedDistinctCount, {"universe": 50, "epsilon": 1}),
    "heavy": (CroppedHeavyHitters, {"k": 5, "total": 100, "epsilon": 1}),
    "primes": (PrimeIncidence, {"universe": 50, "bound": 9, "primes": (3, 5, 7), "epsilon": 1}),
}


@pytest.fixture(params=ALL)
def make(request):
    """Makes one of them."""
    kind, arguments = ALL[request.param]
    return lambda **others: kind(**{**arguments, **others})


# All


def test_each_spends_its_epsilon_exactly_and_refuses_a_release_too_many(make):
    statistic = make(epsilon=Fraction(7, 3), releases=2)
    statistic.release()
    assert statistic.ledger.remaining > 0
    statistic.release()
    assert statistic.ledger.spent == statistic.ledger.total == Fraction(7, 3)
    assert statistic.guarantee.epsilon == Fraction(7, 3)
    with pytest.raises(pp.BudgetError):
        statistic.release()


def test_each_shares_a_ledger(make):
    ledger = pp.Ledger(1)
    make(ledger=ledger, epsilon=Fraction(3, 4))
    with pytest.raises(pp.BudgetError):
        make(ledger=ledger, epsilon=Fraction(1, 2))
    assert ledger.available == Fraction(1, 4)


def test_the_state_is_what_the_coins_make_it(make):
    states = []
    for _ in range(2):
        statistic = make(coins=SeededCoins(5))
        statistic.update([1, 2, 1], [1, 4, -1])
        states.append(statistic.state())
    assert states[0] == states[1]
    assert make(coins=SeededCoins(5)).state() != states[0]


@pytest.mark.parametrize(
    ("users", "deltas"),
    [([1, None], None), ([1.5], None), ([1, 2], [1]), ([1, 2], [1, None]), ([1], [0.5])],
)
def test_a_batch_that_cannot_be_counted_changes_nothing(make, users, deltas):
    statistic = make(coins=SeededCoins(5))
    before = statistic.state()
    with pytest.raises(pp.InputError):
        statistic.update(users, deltas)
    assert statistic.state() == before


def test_an_id_outside_of_the_universe_is_refused():
    for name in ("first moment", "distinct", "primes"):
        kind, arguments = ALL[name]
        with pytest.raises(pp.InputError, match=r"row 2.*universe"):
            kind(**arguments).update([1, 50])


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, "much", None])
def test_epsilon_must_be_positive(make, epsilon):
    with pytest.raises(pp.PlanError, match="epsilon"):
        make(epsilon=epsilon)


def test_none_can_be_pickled(make):
    with pytest.raises(TypeError, match="intrusion"):
        pickle.dumps(make())


def test_what_is_forgotten_is_gone(make):
    statistic = make()
    statistic.forget()
    statistic.forget()
    with pytest.raises(pp.PanPrivacyError):
        statistic.release()


# Algorithm 2


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


@pytest.mark.parametrize(
    "wrong",
    [
        {"tau": 0},
        {"tau": 1.5},
        {"universe": 0},
        {"grid": 6},
        {"grid": 256},
        {"grid": 0},
        {"bound": 0},
        {"bound": 385},
        {"tau": 40_000},
        {"releases": 0},
        {"epsilon": 1e-12},
    ],
)
def test_sizes_of_a_first_moment_that_do_not_go_together(wrong):
    with pytest.raises(pp.PlanError):
        CroppedFirstMoment(**{"tau": 3, "universe": 50, "epsilon": 1, **wrong})


def test_a_first_moment_goes_on_from_its_state_with_its_weights():
    first, second = (CroppedFirstMoment(tau=3, universe=50, epsilon=1) for _ in range(2))
    first.update([1, 2], [3, 4])
    second.resume(first.state())
    for one in (first, second):
        one.update([2, 7], [-1, 5])
    assert first.state() == second.state()


# Algorithm 3


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


# Primes


def counted(**others):
    """With epsilon so large that noise is rare."""
    states = np.repeat([0, 1, 4, 9], [10, 20, 15, 5])
    statistic = PrimeIncidence(**{**ALL["primes"][1], "epsilon": 200, **others})
    statistic.update(np.arange(50), states + 21)
    statistic.update(np.arange(50), np.full(50, -21))
    return statistic.release()


def test_counters_are_modulo_each_prime():
    answer = counted()
    assert len(answer.counts) == 3 + 5 + 7
    assert answer.estimates(4) == pytest.approx((35, 20, 15), abs=3)
    assert answer.minimum(4) == min(answer.estimates(4))
    assert answer.epsilon == pytest.approx(20)


def test_the_linear_programme_finds_the_states():
    pytest.importorskip("scipy")
    answer = counted(primes=(3, 5, 7, 11))
    expected = np.bincount(np.repeat([0, 1, 4, 9], [10, 20, 15, 5]), minlength=10)
    found = answer.states()
    assert found.sum() == pytest.approx(50)
    np.testing.assert_allclose(found, expected, atol=3)


def test_without_scipy_the_linear_programme_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    answer = counted()
    with pytest.raises(ImportError, match=r"panprivacy\[published\]"):
        answer.states()


@pytest.mark.parametrize("state", [-1, 10, 1.5])
def test_states_beyond_the_bound_cannot_be_asked_for(state):
    with pytest.raises(pp.PlanError):
        counted().estimates(state)


@pytest.mark.parametrize("primes", [(), (3, 3), (4,), (1,), (3.5,), 7, (4_099,), None])
def test_moduli_must_be_different_primes(primes):
    with pytest.raises(pp.PlanError):
        PrimeIncidence(universe=5, bound=3, primes=primes, epsilon=1)


def test_primes_are_drawn_from_the_range_of_the_lecture():
    """4 log2(64)/0.5 = 48 primes, the last of which is 223."""
    drawn = {prime for _ in range(40) for prime in draw_primes(8, 64, 0.5)}
    assert max(drawn) <= 223
    assert len(drawn) > 30
    assert len(set(draw_primes(48, 64, 0.5))) == 48
    with pytest.raises(pp.PlanError):
        draw_primes(3, 4_096, 0.01)


def test_primes_that_cannot_be_planned_spend_nothing():
    ledger = pp.Ledger(1)
    with pytest.raises(pp.PlanError):
        PrimeIncidence(
            universe=10, bound=4, primes=(3, 4_093), epsilon=Fraction(1, 10**5), ledger=ledger
        )
    assert ledger.remaining == 1


@pytest.mark.parametrize("error", [5e-324, 1e-50])
def test_errors_that_need_more_primes_than_there_are(error):
    with pytest.raises(pp.PlanError, match="error is too small"):
        draw_primes(1, 100, error)
