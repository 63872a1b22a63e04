"""Cells that count towards two thresholds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.tables.cells.threshold import rounded_to
from panprivacy.testing import SeededCoins


class Tape:
    """Coins that were tossed before."""

    def __init__(self, bits):
        self.bits = list(bits)

    def bernoulli(self, probability, size):
        assert probability == Fraction(1, 2)
        return np.array([self.bits.pop(0) for _ in range(size)], np.uint8)


@pytest.mark.parametrize("delta", [0, 1, 3, 4, 5, 7, 8, 11, -1, -8, -13])
def test_a_delta_is_rounded_up_with_exactly_the_probability_of_its_fraction(delta):
    """Over all outcomes of the three coins that eighths need at most."""
    rounded = [
        int(rounded_to(np.array([delta]), 8, Tape(bits))[0])
        for bits in itertools.product((0, 1), repeat=3)
    ]
    assert Fraction(sum(rounded), 8) == Fraction(delta, 8)
    assert set(rounded) <= {delta // 8, -(-delta // 8)}


@given(st.lists(st.integers(-(2**60), 2**60), max_size=30), st.integers(1, 2**60), st.integers())
def test_rounding_goes_to_a_neighbour(deltas, resolution, seed):
    deltas = np.array(deltas, np.int64)
    rounded = rounded_to(deltas, resolution, SeededCoins(seed % 1_000))
    up = rounded - deltas // resolution
    assert ((up == 0) | ((up == 1) & (deltas % resolution > 0))).all()


def test_whole_multiples_need_no_coins():
    assert rounded_to(np.array([5, -3]), 1, None).tolist() == [5, -3]
    assert rounded_to(np.array([6, -3]), 3, Tape([])).tolist() == [2, -1]
