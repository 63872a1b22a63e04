"""Sketches modulo M: what is enumerated, what is refused, and what is read."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.published import (
    CalibratedDistinctCount,
    CalibratedNorm,
    StableDistinctCount,
)
from panprivacy.published.mir_exponential import StableMap
from panprivacy.published.mir_lattice import MOST_POINTS, lattice_of
from panprivacy.testing import SeededCoins

# What is enumerated


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: StableDistinctCount(universe=9, rows=4, modulus=101, epsilon=1),
            r"101\*\*4 .* at most 65,536 may be: take modulus=16 with 4 rows or 2 rows",
        ),
        (
            lambda: CalibratedNorm(columns=[[1] * 20], modulus=5, epsilon=1),
            r"5\*\*20 .* take 6 rows with modulus=5",
        ),
        (
            lambda: CalibratedNorm(
                columns=[[1, entry] for entry in range(200)], modulus=251, epsilon=1
            ),
            "steps of a lattice of 63,001 points are too many",
        ),
        (
            lambda: CalibratedNorm(
                columns=[[1, entry] for entry in range(200)], modulus=199, norm=2, epsilon=1
            ),
            "steps of a lattice of 39,601 points are too many",
        ),
        (
            lambda: StableDistinctCount(universe=9, rows=2, modulus=2, grid=2, epsilon=1),
            "half of the entries are 0",
        ),
        (lambda: CalibratedNorm(columns=[[3, 0]], modulus=3, epsilon=1), "all 0 modulo M"),
    ],
)
def test_what_cannot_be_enumerated_is_refused_with_what_can(make, message):
    with pytest.raises(pp.PlanError, match=message):
        make()


def test_what_the_refusal_names_is_taken():
    for rows, modulus in ((4, 16), (2, 101)):
        sketch = StableMap(9, rows, modulus, 2, 20, 0)
        assert len(lattice_of(sketch, 0).lengths) == modulus**rows <= MOST_POINTS


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": []},
        {"columns": [[]]},
        {"columns": [[1], [1, 2]]},
        {"columns": [[1.5]]},
        {"columns": 3},
        {"columns": "1,x"},
        {"modulus": 1},
        {"norm": 3},
        {"universe": 1},
        {"universe": 5, "norm": 2},
    ],
)
def test_sizes_of_a_norm_that_do_not_go_together(wrong):
    with pytest.raises(pp.PlanError):
        CalibratedNorm(**{"columns": [[1], [2]], "modulus": 5, "epsilon": 1, **wrong})


def test_columns_may_be_a_text():
    text, lists = (
        CalibratedNorm(columns=columns, modulus=5, epsilon=1).sizes
        for columns in ("1,0;0,-1", [[1, 0], [0, -1]])
    )
    assert text == lists


# The sketch


@pytest.mark.parametrize("norm", [0, 1])
def test_a_sketch_is_the_sum_of_columns_times_states(norm):
    columns = np.array([[1, 0], [3, 2], [0, 4]])
    statistic = CalibratedNorm(
        columns=columns.tolist(), modulus=7, norm=norm, epsilon=1, coins=SeededCoins(1)
    )
    table = statistic.plan.table
    before = table.entries(statistic._state.table)
    statistic.update([0, 2, 1, 0], [3, -1, 2**62, 1])
    after = table.entries(statistic._state.table)
    states = [4, 2**62 % 7, -1]
    assert ((after - before - states @ columns) % 7 == 0).all()


def test_a_map_that_loses_nothing_is_told_on_both_sides():
    plans = [
        CalibratedNorm(columns=columns, modulus=5, epsilon=1).plan
        for columns in ([[1, 0], [0, 1]], [[1, 1], [1, 2]], [[1, 0], [0, 1], [1, 1]], [[1, 2]])
    ]
    assert [plan.model(0).exact for plan in plans] == [True, True, False, True]


def test_users_who_share_a_column_are_told_from_below_alone():
    plan = CalibratedNorm(columns=[[1, 0], [0, 1]], modulus=5, universe=3, epsilon=1).plan
    assert not plan.model(0).exact
    assert plan.model(0).answer([1], 0.9)[2] == 3


def test_announced_noise_is_noise_once_more():
    once, twice = (
        CalibratedDistinctCount(universe=9, modulus=5, epsilon=3, intrusions=1).plan.model(epoch)
        for epoch in (0, 1)
    )
    law = CalibratedDistinctCount(universe=9, modulus=5, epsilon=3, intrusions=1).plan.law
    both = np.fft.ifft(law.spectrum() ** 2).real
    assert once.absent == pytest.approx(1 - law.probabilities()[0])
    assert (twice.absent, twice.present) == pytest.approx((1 - both[0], 1 - both[1]))


# Stable variables
