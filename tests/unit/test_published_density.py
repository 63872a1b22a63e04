"""The density estimators of the papers: what they are beside `Density`, levels, refused sizes."""

from __future__ import annotations

import math
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.guarantee import randomised_response
from panprivacy.published import (
    ContinuousDensity,
    DworkDensity,
    DworkRothDensity,
    OptBernDensity,
    PPDSDensity,
    loss_of_bias,
)
from panprivacy.published.digalakis_density import (
    OVERFULL,
    PPDSSizes,
    exponential,
    overfull,
)
from panprivacy.published.dwork_density import biased_coin
from panprivacy.statistics.statistic import request
from panprivacy.testing import SeededCoins


def variance(laws, share):
    """Of an estimate from one cell, without output noise and sampling."""
    absent, absent_variance, present, present_variance = laws.moments()
    return (absent_variance + share * (present_variance - absent_variance)) / (
        present - absent
    ) ** 2


# What they are


def state_and_counts(kind, **sizes):
    statistic = kind(universe=5_000, epsilon=1, coins=SeededCoins(3), **sizes)
    statistic.update(np.arange(2_000))
    return statistic._state.table.tobytes(), statistic.release().counts


def test_optimal_bits_of_a_sample_are_density():
    assert state_and_counts(OptBernDensity, cells=700) == state_and_counts(pp.Density, cells=700)


def test_distinct_sampling_at_a_public_level_is_density_of_so_many_users():
    level = PPDSSizes(universe=5_000, cells=1_000).level(request(1))
    assert level == 2
    assert state_and_counts(PPDSDensity, cells=1_000) == state_and_counts(pp.Density, cells=1_250)


def test_room_for_all_ids_is_no_sample():
    assert PPDSDensity(universe=100, cells=100, epsilon=1).plan.cells == 100


def test_the_sketch_of_the_textbook_is_the_sampled_bits_without_a_sample():
    assert state_and_counts(DworkRothDensity) == state_and_counts(DworkDensity)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_one_step_is_an_optimal_bit(epsilon):
    present = exponential(1, epsilon).probabilities()[1][1]
    assert present <= randomised_response(epsilon)
    assert float(present) == pytest.approx(float(randomised_response(epsilon)), rel=1e-12)


@pytest.mark.parametrize("bias", [Fraction(1, 40), Fraction(1, 8), Fraction(9, 20)])
def test_the_bias_is_the_one_that_was_asked_for(bias):
    fair, biased = biased_coin(loss_of_bias(bias)).probabilities()
    assert fair == [Fraction(1, 2)] * 2
    assert 0 <= Fraction(1, 2) + bias - biased[1] < Fraction(1, 10**13)


@pytest.mark.parametrize("bias", [0, -0.1, 0.5, 0.7, math.inf, "much", None])
def test_a_bias_that_is_none_is_refused(bias):
    with pytest.raises(pp.PlanError, match="bias"):
        loss_of_bias(bias)


# What they err beside bits of the same loss


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3)])
def test_a_fair_coin_errs_by_a_factor_that_epsilon_names(epsilon):
    """e**epsilon where nobody came, 2 - e**-epsilon where all did."""
    bit, coin = exponential(1, epsilon), biased_coin(epsilon)
    assert variance(coin, 0) / variance(bit, 0) == pytest.approx(math.exp(epsilon), rel=1e-9)
    expected = 2 - math.exp(-epsilon)
    assert variance(coin, 1) / variance(bit, 1) == pytest.approx(expected, rel=1e-9)


def test_printed_the_fair_coin_errs_by_a_factor_of_four():
    """Of a bias of epsilon/4 half of the loss is unused: 4.01 at epsilon 1/5."""
    printed, bit = biased_coin(loss_of_bias("0.05")), exponential(1, Fraction(1, 5))
    assert variance(printed, 0) / variance(bit, 0) == pytest.approx(4.013, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "factors"),
    [("0.1", (1.501, 2.649, 2.979)), ("0.5", (1.516, 2.690, 3.026)), ("1", (1.564, 2.822, 3.180))],
)
def test_finer_grids_err_more_up_to_about_three_times(epsilon, factors):
    loss = Fraction(epsilon)
    bit = variance(exponential(1, loss), 0.5)
    found = [variance(exponential(grid, loss), 0.5) / bit for grid in (2, 15, 255)]
    assert found == pytest.approx(factors, abs=1e-3)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("grid", [2, 15])
def test_a_cell_of_any_loss_is_made_from_a_bit_of_the_same_loss(grid, epsilon):
    """So no such cell beats bits: there are two laws, one for each bit, that mix to its own."""
    absent, present = exponential(grid, epsilon).probabilities()
    truth = absent[0] / present[0] / (1 + absent[0] / present[0])
    for one, other in ((present, absent), (absent, present)):
        given = [
            (truth * mine - (1 - truth) * theirs) / (2 * truth - 1)
            for mine, theirs in zip(one, other, strict=True)
        ]
        assert min(given) >= 0
        assert sum(given) == 1


# Levels


@pytest.mark.parametrize(
    ("users", "room", "present"), [(40, 30, 0.6), (97, 80, 0.55), (12, 11, 0.7)]
)
def test_the_bound_of_an_overfull_sample_is_one(users, room, present):
    exact = sum(
        math.comb(users, ones) * present**ones * (1 - present) ** (users - ones)
        for ones in range(room + 1, users + 1)
    )
    assert exact <= overfull(users, room, present) <= 20 * exact + 1e-12
    assert overfull(users, users, present) == 0
    assert overfull(users, int(present * users) - 1, present) == 1


@pytest.mark.parametrize("room", [1, 100, 1_000, 10_000, 99_999])
@pytest.mark.parametrize("epsilon", ["0.2", "1", "6"])
def test_the_level_is_the_lowest_at_which_the_ids_fit(room, epsilon):
    sizes, asked = PPDSSizes(universe=100_000, cells=room), request(epsilon)
    level, plan = sizes.level(asked), sizes.plan(asked)
    assert plan.cells == 100_000 >> level
    assert overfull(plan.cells, room, float(plan.table.presence(0))) <= OVERFULL
    if level:
        assert overfull(2 * plan.cells, room, float(plan.table.presence(0))) > OVERFULL


def test_the_printed_hash_samples_the_users_of_one_residue():
    """`(a u + b) mod 2**Q` ends in L zeros for one u in `2**L`, and so for all u modulo that."""
    level, generator = 5, np.random.default_rng(1)
    users = np.arange(1 << 12)
    for _ in range(20):
        a, b = 2 * generator.integers(1 << 11) + 1, generator.integers(1 << 12)
        sampled = users[(a * users + b) % (1 << 12) % (1 << level) == 0]
        assert len(set((sampled % (1 << level)).tolist())) == 1
        assert len(sampled) == len(users) >> level


# Sizes


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (DworkDensity, {"universe": 0}),
        (DworkDensity, {"cells": 101}),
        (DworkDensity, {"cells": 0}),
        (DworkDensity, {"epsilon": "1e-12"}),
        (DworkDensity, {"intrusions": 1}),
        (DworkDensity, {"budget": pp.Budget("0.9", "0.5")}),
        (DworkRothDensity, {"intrusions": 1}),
        (DworkRothDensity, {"cells": 10}),
        (PPDSDensity, {}),
        (PPDSDensity, {"cells": 0}),
        (OptBernDensity, {"cells": 101}),
        (ContinuousDensity, {"grid": 0}),
        (ContinuousDensity, {"grid": 256}),
        (ContinuousDensity, {"intrusions": 1}),
    ],
)
def test_sizes_that_do_not_go_together(kind, wrong):
    with pytest.raises(pp.PlanError):
        kind(**{"universe": 100, "epsilon": 1, **wrong})


@pytest.mark.parametrize("kind", [DworkDensity, DworkRothDensity, ContinuousDensity])
@pytest.mark.parametrize("epsilon", ["0.001", "0.4", "30", "1000000"])
def test_all_of_epsilon_is_spent_and_no_more(kind, epsilon):
    with pytest.warns(pp.WeakEpsilonWarning) if float(epsilon) > 20 else nullcontext():
        statistic = kind(universe=1_000, epsilon=epsilon, releases=3)
    for _ in range(3):
        statistic.release()
    spent, total = statistic.ledger.spent, statistic.ledger.total
    assert (1 - Fraction(1, 10**6)) * total < spent <= total
