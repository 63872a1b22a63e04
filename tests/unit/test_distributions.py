"""Laws of what devices report."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from panprivacy.federated.distributions import (
    _LOG_TAIL,
    _U,
    binomial,
    discrete_gaussian,
    gaussian_sum,
)


@pytest.mark.parametrize(
    ("count", "probability", "sure"), [(0, "1/3", 0), (5, "0", 0), (5, "1", 5)]
)
def test_a_number_of_coins_that_is_sure_is_known_without_an_error(count, probability, sure):
    law = binomial(count, Fraction(probability))
    assert (law.first, law.weights.tolist(), law.missing, law.error) == (sure, [1.0], 0.0, 0.0)


def test_discrete_gaussians_add_up_to_one_but_for_what_the_page_says():
    variance, count = Fraction(4), 10**5
    one, added = discrete_gaussian(variance * count), gaussian_sum(variance, count)
    assert added.weights == pytest.approx(one.weights)
    ripple = 5 * count * math.exp(-4 * math.pi**2)
    assert added.error - one.error == pytest.approx(ripple, rel=1e-3, abs=0)


def test_a_discrete_gaussian_allows_for_rounding_of_each_weight():
    """An exponent is at most `_LOG_TAIL`, and each of its four steps rounds."""
    law = discrete_gaussian(Fraction(100))
    rounded = 4 * _LOG_TAIL * _U * len(law.weights)
    assert law.error == pytest.approx(2 * (rounded + law.missing + 4 * _U), rel=1e-9, abs=0)
    assert rounded > law.missing


def test_tails_of_a_law_are_hardly_larger_than_they_are():
    """Half of the law of 1001 coins, but for `_slack`."""
    law = binomial(1_001, Fraction(1, 2))
    assert law.above(501) == pytest.approx(1 / 2, abs=1e-9)
    assert law.below(500) == pytest.approx(1 / 2, abs=1e-9)
