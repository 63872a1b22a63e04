"""Randomised response: its law, its loss, and what is read off its reports."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.errors import PlanError
from panprivacy.papers.local.response import RandomisedResponse, two_coins
from panprivacy.testing import SeededCoins


@pytest.mark.parametrize(("values", "epsilon"), [(2, 1), (5, "0.3"), (1_000, 3)])
def test_the_ratio_of_two_reports_is_epsilon_at_most_and_hardly_less(values, epsilon):
    made = RandomisedResponse(values, epsilon)
    other = (1 - made.keep) / values
    assert made.ratio == (made.keep + other) / other
    assert -1e-12 < float(epsilon) - made.loss < 1e-6


@pytest.mark.parametrize(("values", "bits"), [(2, 1), (3, 2), (4, 2), (5, 3), (256, 8), (257, 9)])
def test_a_report_has_as_few_bits_as_name_a_value(values, bits):
    assert RandomisedResponse(values, 1).bits == bits


@pytest.mark.parametrize("values", [0, 1, (1 << 20) + 1])
def test_values_are_two_or_more(values):
    with pytest.raises(PlanError, match="values must be"):
        RandomisedResponse(values, 1)


def test_reports_have_the_law_that_is_undone():
    made = RandomisedResponse(4, 1)
    reports = made.randomise(np.full(40_000, 2), SeededCoins(1))
    shares = np.bincount(reports, minlength=4) / 40_000
    other = float((1 - made.keep) / 4)
    assert shares == pytest.approx([other, other, other + float(made.keep), other], abs=0.02)
    assert made.estimate(reports).estimates == pytest.approx([0, 0, 40_000, 0], abs=1_500)


def test_the_variance_of_one_report_is_that_of_two_coins():
    """Of one of two values, both probabilities add up to 1."""
    made = RandomisedResponse(2, 1)
    keep = float(made.keep)
    right = (1 + keep) / 2
    assert right == pytest.approx(math.e / (1 + math.e), abs=1e-6)
    assert made.variance == pytest.approx(right * (1 - right) / keep**2)


def test_two_coins_are_undone():
    own, other = 0.7, 0.2
    spread = two_coins(np.array([30, 70]), 100, own, other, own - other)
    assert spread.estimates == pytest.approx([20, 100])
    assert spread.fixed == pytest.approx([100 * 0.16 / 0.25] * 2)
    assert spread.slope == pytest.approx([(0.21 - 0.16) / 0.25] * 2)
    assert spread.step == pytest.approx([2, 2])


def test_all_of_epsilon_is_a_fraction():
    assert isinstance(RandomisedResponse(3, "1/3").keep, Fraction)
