"""Unary encoding: a bit for each value."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.errors import InputError, PlanError
from panprivacy.papers.local.unary import MOST_BITS, UnaryEncoding
from panprivacy.testing import SeededCoins


def ones(made, reports):
    return np.unpackbits(reports, axis=1, count=made.values, bitorder="little").mean(axis=0)


def test_a_held_bit_is_kept_with_a_half_and_others_as_epsilon_says():
    made = UnaryEncoding(3, 1)
    shares = sorted(ones(made, made.randomise(np.full(40_000, 1), SeededCoins(1))))
    assert shares[-1] == pytest.approx(0.5, abs=0.02)
    assert shares[:2] == pytest.approx([1 / (1 + np.e)] * 2, abs=0.02)


@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
def test_the_loss_is_epsilon_at_most_and_hardly_less(epsilon):
    assert -1e-12 < float(epsilon) - UnaryEncoding(9, epsilon).loss < 1e-5


@pytest.mark.parametrize(("values", "width"), [(2, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_a_report_is_a_row_of_as_few_bytes_as_hold_a_bit_each(values, width):
    made = UnaryEncoding(values, 1)
    reports = made.randomise([0, 1], SeededCoins(1))
    assert reports.shape == (2, width)
    assert made.bits == values
    with pytest.raises(InputError, match=f"rows of {width} bytes"):
        made.estimate(np.zeros((2, width + 1), np.uint8))


def test_more_values_than_a_report_may_have_bits_are_refused():
    with pytest.raises(PlanError, match="values must be at most"):
        UnaryEncoding(MOST_BITS + 1, 1)
    assert UnaryEncoding(MOST_BITS, 1).bits == MOST_BITS


def test_who_holds_what_is_estimated():
    made = UnaryEncoding(4, 2)
    found = made.estimate(
        made.randomise(np.repeat(range(4), [0, 1_000, 3_000, 16_000]), SeededCoins(2))
    )
    assert found.estimates == pytest.approx([0, 1_000, 3_000, 16_000], abs=900)
