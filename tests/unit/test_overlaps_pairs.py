"""How pairs of bits tell whether cells are empty: the same as independent bits, where they are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.statistics.overlaps.occupancy import BitNoise
from panprivacy.statistics.overlaps.pairs import PairNoise
from panprivacy.tables.cells.pairs import PairLaw

ABSENT, PRESENT = 0.25, 0.625
TWO = PairLaw(Fraction(1, 4), Fraction(5, 8), Fraction(1, 16))
JOINT = PairLaw(Fraction(1, 4), Fraction(5, 8), Fraction(3, 16))
EMPTY = np.array([[1, 0.5, 0.25, 0.2], [1, 0.9, 0.8, 0.75]])
"""Of two levels: the probability that a cell is empty in no table, the left, the right, both."""


def noise_of(law):
    return PairNoise(tuple(tuple(map(float, one)) for one in law.laws))


@pytest.mark.parametrize("name", ["law", "debias", "squares", "influence"])
def test_independent_bits_are_one_case(name):
    plain = BitNoise((ABSENT,) * 2, (PRESENT,) * 2)
    shares = plain.law(EMPTY)
    for given in (EMPTY, shares):
        expected, found = (getattr(one, name)(given) for one in (plain, noise_of(TWO)))
        assert found == pytest.approx(expected, abs=1e-12)


def test_each_bit_alone_is_as_in_its_stream():
    noise = noise_of(JOINT)
    assert noise.absent == pytest.approx((ABSENT,) * 2)
    assert noise.present == pytest.approx((PRESENT,) * 2)
    assert noise.spread == BitNoise((ABSENT,) * 2, (PRESENT,) * 2).spread


def test_the_law_is_that_of_the_four_kinds_of_cells():
    """Cells with users in no stream, the left alone, the right alone, both."""
    one, left, right, both = EMPTY.T
    kinds = np.stack([both, right - both, left - both, one - left - right + both], axis=-1)
    expected = kinds @ np.array(noise_of(JOINT).laws)
    assert noise_of(JOINT).law(EMPTY) == pytest.approx(expected)
    assert expected.sum(axis=-1) == pytest.approx([1, 1])


def test_what_is_debiased_is_unbiased_and_influences_add_up():
    noise = noise_of(JOINT)
    shares = noise.law(EMPTY)
    assert noise.debias(shares) == pytest.approx(EMPTY)
    weights = np.array([0.0, -1, -1, 1])
    added = (noise.influence(weights) * shares).sum(axis=-1)
    assert added == pytest.approx(EMPTY @ weights)
