"""Stable sketches, and the norms that noise is drawn from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.papers.published import (
    StableDistinctCount,
)
from panprivacy.papers.published.mir_exponential import StableMap, medians
from panprivacy.papers.published.mir_lattice import lattice_of


@pytest.mark.parametrize("roots", [1, 2, 4])
def test_entries_are_stable_variables(roots):
    """`X**p` of p-stable X: a sum of two has the law of one, stretched by `2**(1/p)`."""
    entries = StableMap(20_000, 2, 2**52, roots, 1_000, 0).columns()
    entries = np.where(entries > 2**51, entries - 2**52, entries).astype(float)
    sums, one = entries.sum(axis=1), entries[:, 0] * 2.0**roots
    for share in (0.2, 0.5, 0.8):
        quantiles = np.quantile(np.abs(sums), share), np.quantile(np.abs(one), share)
        assert quantiles[0] == pytest.approx(quantiles[1], rel=0.1 * roots)


def test_the_median_is_divided_by_its_factor():
    """One user of state 1 among many rows: printed is a product, right a quotient (M6)."""
    sketch = StableMap(30, 2, 251, 2, 3, 0)
    lattice = lattice_of(sketch, 0)
    model = StableDistinctCount(universe=30, rows=2, modulus=251, grid=3, epsilon=1).plan.model(0)
    values = medians(lattice, lattice.columns, 2)
    assert model.factor == sketch.factor == math.sqrt(3)
    assert np.median(values / sketch.factor) == pytest.approx(1, abs=0.35)
    assert np.median(values * sketch.factor) > 2
    assert model.estimate(lattice.columns[4]) == pytest.approx(values[4] / sketch.factor)


def test_another_draw_is_another_public_matrix():
    first, again, other = (StableMap(9, 2, 101, 2, 9, draw).columns() for draw in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_the_errors_of_a_stable_sketch_are_those_of_all_its_noise():
    """Against a sum over all points of noise, for three users."""
    plan = StableDistinctCount(universe=5, rows=2, modulus=11, grid=2, epsilon=8).plan
    model, lattice = plan.model(0), plan.table.lattice
    once = plan.noise(0)
    points = np.stack(np.unravel_index(np.arange(len(once)), lattice.shape), axis=1)
    sketch, square = lattice.columns[:3].sum(axis=0), 0.0
    for first, chance in zip(points, once, strict=True):
        answers = medians(lattice, sketch + first + points, plan.roots) / model.factor
        square += chance * float(once @ (answers - 3) ** 2)
    assert float(model.deviation(3)) == pytest.approx(math.sqrt(square), rel=1e-6)


def test_a_release_of_a_stable_sketch_leaves_its_noise_out_of_the_state():
    statistic = StableDistinctCount(universe=9, rows=2, modulus=11, grid=9, epsilon=1)
    before = statistic.internals.memory.now.table.copy()
    statistic.release()
    assert (statistic.internals.memory.now.table == before).all()
