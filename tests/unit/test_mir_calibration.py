"""Norms and counts with noise of the shape of a sketch: what moves it, and what is read."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.published import CalibratedDistinctCount, CalibratedNorm
from panprivacy.testing import SeededCoins


def norm(**given):
    sizes = {"columns": [[1, 0], [0, 1], [1, 1]], "modulus": 7, "norm": 1, "epsilon": 60}
    return CalibratedNorm(**{**sizes, "coins": SeededCoins(1), **given})


def test_with_a_huge_epsilon_the_least_norm_is_read():
    """A state of 1 and 1 in the first two columns is as well 1 in the third."""
    with pytest.warns(pp.WeakEpsilonWarning):
        made = norm()
    made.update([0, 1])
    answer = made.release()
    assert answer.value == pytest.approx(1, abs=0.1)
    made.forget()


def test_a_state_as_large_as_the_modulus_is_none():
    with pytest.warns(pp.WeakEpsilonWarning):
        made = norm()
    made.update([2], [7])
    assert made.release().value == pytest.approx(0, abs=0.1)


def test_a_table_is_one_point_of_the_lattice():
    with pytest.warns(pp.WeakEpsilonWarning):
        table = norm().plan.table
    assert table.points == 7**2
    assert table.is_table(table.born(SeededCoins(1)))


def test_distinct_users_are_counted_by_their_columns():
    with pytest.warns(pp.WeakEpsilonWarning):
        made = CalibratedDistinctCount(universe=4, modulus=5, epsilon=60, coins=SeededCoins(2))
    nobody = made.release()
    assert nobody.low <= 0 <= nobody.high
