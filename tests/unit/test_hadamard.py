"""Hadamard response: sets of half of all outcomes, one for each value."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.papers.local.hadamard import HadamardResponse, _transform
from panprivacy.testing import SeededCoins


@pytest.mark.parametrize("size", [1, 2, 8])
def test_the_transform_is_that_of_the_matrix_of_parities(size):
    rng = np.random.default_rng(1)
    rows = rng.integers(-9, 9, (3, size)).astype(float)
    place = np.arange(size)
    matrix = 1 - 2 * (np.bitwise_count(place[:, None] & place).astype(int) & 1)
    found = rows.copy()
    _transform(found)
    assert (found == rows @ matrix).all()


@pytest.mark.parametrize(("values", "epsilon"), [(2, 1), (7, "0.5"), (100, 3), (1_000, 1)])
def test_a_value_has_half_of_the_outcomes_of_its_block_and_no_two_the_same(values, epsilon):
    made = HadamardResponse(values, epsilon)
    assert made.columns & (made.columns - 1) == 0
    assert made.columns > -(-values // made.blocks)
    assert made.outcomes == made.blocks * made.columns
    uniform = np.arange(made.outcomes, dtype=np.uint32)
    sets = set()
    for value in range(values):
        chosen = frozenset(made._into_set(uniform, np.full(len(uniform), value)).tolist())
        assert len(chosen) == made.columns // 2
        assert {one // made.columns for one in chosen} == {value % made.blocks}
        sets.add(chosen)
    assert len(sets) == values


@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
def test_the_loss_is_epsilon_at_most_and_hardly_less(epsilon):
    made = HadamardResponse(50, epsilon)
    assert -1e-12 < float(epsilon) - made.loss < 1e-5
    assert 2 ** (made.bits - 1) < made.outcomes <= 2**made.bits


def test_who_holds_what_is_estimated():
    made = HadamardResponse(5, 2)
    held = [0, 500, 1_500, 6_000, 12_000]
    found = made.estimate(made.randomise(np.repeat(range(5), held), SeededCoins(1)))
    assert found.estimates == pytest.approx(held, abs=900)
