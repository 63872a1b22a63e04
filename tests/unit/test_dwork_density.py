"""Density of users in a sample, by bits that lean."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.papers.published import (
    OptBernDensity,
    loss_of_bias,
)
from panprivacy.papers.published.digalakis_density import (
    exponential,
)
from panprivacy.papers.published.dwork_density import biased_coin
from panprivacy.privacy.guarantee import randomised_response
from tests.unit.test_published_density import state_and_counts


def variance(laws, share):
    """Of an estimate from one cell, without output noise and sampling."""
    absent, absent_variance, present, present_variance = laws.moments()
    return (absent_variance + share * (present_variance - absent_variance)) / (
        present - absent
    ) ** 2


def test_optimal_bits_of_a_sample_are_density():
    assert state_and_counts(OptBernDensity, cells=700) == state_and_counts(pp.Density, cells=700)


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
