"""Cells that are cut off where they are counted: unbiased, and as far off as is said."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.tables.cells.cropped import CroppedCells

REACH = 400
NOISE = np.arange(-REACH, REACH + 1)


def law(scale):
    weights = np.exp(-np.abs(NOISE) / float(scale))
    return weights / weights.sum()


def cells(*corners, scale=Fraction(3), unit=1 << 20, count=1):
    return CroppedCells(count, scale, corners, unit)


def counted(made, state):
    """What a cell of this state counts for, by its noise, in units."""
    one = [made.group_sums(np.array([state + noise]), 1, 0)[0] for noise in NOISE.tolist()]
    return np.array(one) / made.unit


@pytest.mark.parametrize("corners", [(5,), (8, 4)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_a_cell_is_unbiased_and_strays_as_predicted(corners, scale):
    made = cells(*corners, scale=scale)
    for state in (-3, 0, 3, 4, 5, 6, 8, 11):
        mean = law(scale) @ counted(made, state)
        cut = min(state, corners[0]) - (min(state, corners[1]) if len(corners) > 1 else 0)
        assert mean == pytest.approx(cut, abs=1e-5)
        variance = law(scale) @ (counted(made, state) - mean) ** 2
        assert made.variance(np.array([float(state)]))[0] == pytest.approx(
            variance, rel=1e-4, abs=1e-6
        )


def test_deltas_are_added_and_those_of_nobody_are_not():
    made, table = cells(5, count=3), np.zeros(3, np.int64)
    made.update(table, [np.array([0, 2, 2]), np.array([-1, 0])], np.array([1, 2, 3, 9, 4]), 0, None)
    assert table.tolist() == [5, 0, 5]
    made.update(table, [np.array([1, -1])], None, 0, None)
    assert table.tolist() == [5, 1, 5]


def test_no_event_moves_the_sum_further_than_its_reach():
    for corners in ((5,), (8, 4)):
        made = cells(*corners, unit=16)
        sums = [made.group_sums(np.array([one]), 1, 0)[0] for one in range(-5, 20)]
        for delta in (1, 3):
            moved = max(abs(b - a) for a, b in zip(sums, sums[delta:], strict=False))
            assert moved <= made.reach(delta)
    assert cells(5, unit=16).reach(2) == 2 * 16 * 2 + 4 * cells(5, unit=16).spike
    assert cells(8, 4, unit=16).reach(0) == 8 * cells(8, 4, unit=16).spike


def test_all_cells_are_added_up():
    made = cells(5, unit=1, scale=Fraction(1, 100), count=4)
    assert made.spike == 0
    assert made.group_sums(np.array([1, 5, 9, -2]), 1, 0).tolist() == [1 + 5 + 5 - 2]
