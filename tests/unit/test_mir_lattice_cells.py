"""A sketch as one point of a lattice: how it is born, moved, re-randomised and checked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedNorm
from panprivacy.papers.published.mir_lattice import SketchMap, probabilities
from panprivacy.papers.published.mir_lattice_cells import LatticeCells
from panprivacy.testing import SeededCoins


def cells(columns=((1, 0), (0, 1), (1, 1)), modulus=7, norm=1, epsilon=2):
    return LatticeCells(SketchMap(columns, modulus), norm, Fraction(epsilon))


def table_of(number):
    return np.array([number], cells().dtype)


def test_a_table_is_one_point_of_the_lattice():
    table = cells()
    assert table.points == 7**2
    assert table.nbytes == table.dtype.itemsize == 1
    assert table.says == "a noisy point of 7**2"
    assert table.is_table(table.initial(SeededCoins(1)))


def test_what_no_sketch_reaches_is_no_table():
    line = cells(columns=((2, 0),), modulus=4)
    reached = [number for number in range(20) if line.is_table(np.array([number]))]
    assert reached == [0, 8]
    assert not line.is_table(np.array([0, 0]))


@pytest.mark.parametrize("norm", [0, 1])
def test_a_sketch_is_the_sum_of_columns_times_states(norm):
    columns = np.array([[1, 0], [3, 2], [0, 4]])
    statistic = CalibratedNorm(
        columns=columns.tolist(), modulus=7, norm=norm, epsilon=1, coins=SeededCoins(1)
    )
    table = statistic.plan.table
    before = table.entries(statistic.internals.memory.now.table)
    statistic.update([0, 2, 1, 0], [3, -1, 2**62, 1])
    after = table.entries(statistic.internals.memory.now.table)
    states = [4, 2**62 % 7, -1]
    assert ((after - before - states @ columns) % 7 == 0).all()


def test_without_deltas_each_row_adds_a_column_once():
    table = table_of(0)
    cells().update(table, [np.array([0, 2]), np.array([2])], None, 0, SeededCoins(1))
    assert cells().entries(table).tolist() == [3, 2]


def test_without_noise_a_table_begins_at_0():
    found = cells().without_noise([np.array([0, 1])], np.array([-1, 3]), SeededCoins(1))
    assert found.tolist() == [6 * 7 + 3]


def test_fresh_noise_is_added_modulo_m():
    table, noise = table_of(5 * 7 + 3), table_of(4 * 7 + 6)
    cells().rerandomise(table, noise)
    assert cells().entries(table).tolist() == [2, 2]
    assert cells().picture_values(table).tolist() == [2 * 7 + 2]


def test_what_is_read_is_the_length_of_the_point():
    for point, length in (((0, 0), 0), ((1, 1), 1), ((3, 4), 4), ((3, 6), 4), ((2, 2), 2)):
        table = table_of(7 * point[0] + point[1])
        assert cells().group_sums(table, 1, 0).tolist() == [length]


@pytest.mark.long
def test_a_sketch_is_born_with_the_law_of_its_weights():
    table = cells(columns=((1,), (2,)), modulus=5, epsilon=1)
    coins, number = SeededCoins(3), 4_000
    found = np.bincount([int(table.initial(coins)[0]) for _ in range(number)], minlength=5) / number
    law = probabilities(table.weights(table.epsilon))
    assert law[0] == law.max()
    np.testing.assert_allclose(found, law, atol=5 * (0.25 / number) ** 0.5)


def test_noise_of_two_looks_is_the_sum_of_two_draws():
    plan = CalibratedNorm(columns=[[1], [2]], modulus=5, epsilon=3, intrusions=1).plan
    once, twice = plan.noise(0), plan.noise(1)
    sums = [sum(once[i] * once[(total - i) % 5] for i in range(5)) for total in range(5)]
    np.testing.assert_allclose(twice, sums, atol=1e-12)


def test_a_release_costs_no_more_than_a_look_where_there_is_one():
    def plan(releases, **given):
        return CalibratedNorm(columns=[[1], [2]], modulus=5, releases=releases, **given).plan

    one = plan(1, epsilon=3, budget=pp.Budget(state=1, release=2))
    assert one.guarantee.unseen_loss.epsilon == 1
    two = plan(2, epsilon=5, budget=pp.Budget(state=1, release=2))
    assert two.guarantee.unseen_loss.epsilon == 4


@pytest.mark.parametrize(("modulus", "states"), [(5, (-2, 2)), (6, (-2, 2)), (7, (-3, 3))])
def test_states_are_those_that_are_what_they_are_modulo_m(modulus, states):
    plan = CalibratedNorm(columns=[[1], [1]], modulus=modulus, epsilon=1).plan
    assert plan.range_of_states == states
