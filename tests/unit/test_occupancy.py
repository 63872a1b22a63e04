"""The law of patterns, by enumeration of all places of all users."""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.statistics.overlaps.patterns import CellLayout
from tests.unit.overlap_cases import (
    ABSENT,
    LAYOUTS,
    MANY,
    PRESENT,
    model,
    noise,
    occupied,
    placements,
)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_share_of_empty_cells_is_exact(layout):
    users = [0, 2, 1, 1]
    mean = np.zeros((layout.levels, 4))
    for cells, probability in placements(layout, users):
        found = occupied(layout, users, cells).reshape(layout.levels, -1)
        for tables in range(4):
            mean[:, tables] += probability * (found & tables == 0).mean(axis=-1)
    exact = model(layout)
    assert mean == pytest.approx(exact.empty(exact.unions(users)))


def test_the_law_of_a_cell_is_that_of_its_noise():
    one = noise(3)
    empty_in = np.array([1.0] + [0.0] * 7)  # in all of no table: it is full in every table
    assert one.law(empty_in) == pytest.approx(
        [
            math.prod(PRESENT[i] if bits >> i & 1 else 1 - PRESENT[i] for i in range(3))
            for bits in range(8)
        ]
    )
    assert one.law(np.ones(8)) == pytest.approx(
        [
            math.prod(ABSENT[i] if bits >> i & 1 else 1 - ABSENT[i] for i in range(3))
            for bits in range(8)
        ]
    )


def test_reading_is_the_inverse_of_noise_and_of_counting():
    values = np.random.default_rng(1).random((5, 8))
    one, exact = noise(3), model(CellLayout(9), 3)
    assert one.debias(one.law(values)) == pytest.approx(values)
    values[:, 0] = 0
    assert exact.users(exact.unions(values)) == pytest.approx(values)
    weights = np.append(0, np.random.default_rng(2).random(7))
    assert exact.unions(values) @ exact.weights(weights) == pytest.approx(
        values[:, 1:] @ weights[1:]
    )


def test_influence_and_squares_are_sums_over_products():
    one = noise(2)
    debiased = [[PRESENT[i], PRESENT[i] - 1] / np.subtract(PRESENT[i], ABSENT[i]) for i in range(2)]
    products = np.array(
        [
            [math.prod(debiased[i][bits >> i & 1] for i in range(2) if tables >> i & 1)
             for tables in range(4)]
            for bits in range(4)
        ]
    )  # fmt: skip
    weights = np.array([0.5, 2, -1, 3])
    assert one.influence(weights) == pytest.approx(products @ weights)
    assert one.debias(weights) == pytest.approx(weights @ products)
    assert one.squares(weights) == pytest.approx(weights @ products**2)


def test_possible_users_are_as_many_as_the_union():
    exact = model(CellLayout(1_000), 3)
    rough = np.array([0, 50.0, -30, 20, 0, -10, 40, 10])
    users = exact.possible(exact.unions(rough))
    assert users.min() == 0
    assert users.sum() == pytest.approx(80)
    assert users == pytest.approx([0, 40, 0, 10, 0, 0, 30, 0])
    assert exact.possible(exact.unions(MANY)) == pytest.approx(MANY)
    assert exact.possible(exact.unions(-MANY)) == pytest.approx(np.zeros(8))
