"""Slopes: room below 0 where nobody counts, and sets of values of the size that epsilon wants."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from panprivacy.statistics.soft.sloped_plans import Slope, _set_sizes
from panprivacy.tables.cells.shapes import Shape
from panprivacy.tables.planning.room import sets_of


def test_a_slope_is_made_of_blocks():
    shape = Shape(4, 20, 30, 9, 3, 2)
    slope = Slope(shape, None, 5)
    assert slope.modulus == 5 * 30
    assert slope.fall == 5 * (30 - 3 - 20)
    assert slope.between
    assert not Slope(shape, None, 1).between
    law = slope.of_values(Fraction(1))
    assert law.modulus == slope.modulus


def test_a_difference_set_stands_in_for_a_shape():
    chosen = sets_of(13, 4)[0]
    shape = Shape(2, chosen.modulus - 3, chosen.modulus, chosen.size, 2)
    slope = Slope(shape, chosen, 4)
    assert slope.law(Fraction(1)).modulus == chosen.modulus
    assert len(slope.question()) == len(slope.countable_states()) == chosen.modulus


@pytest.mark.parametrize("modulus", [5, 40, 900])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 1e6])
@pytest.mark.parametrize("few", [True, False])
def test_sizes_of_sets_are_in_order_within_the_values_and_around_what_epsilon_wants(
    modulus, epsilon, few
):
    sizes = _set_sizes(modulus, epsilon, few=few)
    assert sizes == sorted(set(sizes))
    assert sizes[0] >= 1
    assert sizes[-1] <= modulus - 1
    wanted = modulus / (math.exp(min(0.75 * epsilon, 700)) + 1)
    if wanted >= 1:
        assert sizes[0] <= round(wanted) <= sizes[-1] + 1
    assert len(sizes) <= (5 if few else 3)
