"""Bins of published histograms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from panprivacy.service.outgoing.histograms import is_bin, published_bins
from tests.dashboard.rows import ROW
from tests.service.binned import bins


def test_the_rows_of_a_release_are_put_together_in_any_order():
    rows = bins([1, 2, 4], [0, 5, 7, -1])
    (found,) = published_bins([*rows[::-1], ROW])
    assert (found.stream, found.statistic, found.group) == ("shop", "times", None)
    assert found.edges.tolist() == [-math.inf, 1, 2, 4, math.inf]
    assert found.inner.tolist() == [1, 2, 4]
    assert found.estimates.tolist() == [0, 5, 7, -1]
    assert found.low.tolist() == [0, 2, 4, 0]
    assert found.high.tolist() == [3, 8, 10, 2]
    assert found.margin == 3


def test_edges_with_twelve_digits_fit_together():
    edges = np.geomspace(1, 1e5, 1_000)
    (found,) = published_bins(bins(edges, range(1_001)))
    assert np.allclose(found.inner, edges, rtol=1e-11)


def test_the_newest_of_each_group_counts_even_if_the_edges_have_changed():
    old, new = bins([1, 2, 4], [1, 1, 1, 1]), bins([1, 3], [2, 2, 2], hours=1)
    other = bins([1, 2], [9], is_open=False, group="home")
    found = {one.group: one.estimates.tolist() for one in published_bins([*old, *new, *other])}
    assert found == {None: [2, 2, 2], "home": [9]}


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: rows[:1] + rows[2:],
        lambda rows: [rows[0], rows[-1]],
        lambda rows: [*rows, rows[1]],
        lambda rows: [replace(rows[0], estimate=None), *rows[1:]],
        lambda rows: [replace(one, arguments="low=x,high=1") for one in rows],
        lambda rows: [replace(one, arguments="low=1") for one in rows],
        lambda rows: [replace(one, question="quantile") for one in rows],
        lambda rows: rows[:1],
    ],
)
def test_what_is_not_whole_is_left_out(damage):
    assert published_bins(damage(bins([1, 2, 4], [1, 2, 3, 4]))) == []


def test_a_bin_is_told_from_other_answers():
    assert is_bin(bins([1, 2], [3], is_open=False)[0])
    assert not is_bin(ROW)
    assert not is_bin(replace(ROW, question="count", arguments=""))


@pytest.mark.parametrize("seed", range(20))
def test_possible_counts_are_the_nearest_ones_with_the_same_sum(seed):
    coins = np.random.default_rng(seed)
    noised = coins.integers(-9, 10, 8) + 20 * coins.integers(0, 2, 8)
    (found,) = published_bins(bins(range(9), noised, is_open=False))
    possible, total = found.possible(), max(noised.sum(), 0)
    assert possible.dtype == np.int64
    assert possible.min() >= 0
    assert possible.sum() == total

    def distance(counts):
        return np.linalg.norm(counts - noised)

    for _ in range(200):  # no other possible counts are nearer, but for what whole numbers cost
        other = coins.dirichlet(np.ones(8)) * total
        assert distance(possible) <= distance(other) + math.sqrt(8)


def test_counts_that_are_possible_stay():
    (found,) = published_bins(bins([1, 2, 3], [4, 0, 9, 1]))
    assert found.possible().tolist() == [4, 0, 9, 1]


def test_of_nothing_but_noise_below_zero_nothing_remains():
    (found,) = published_bins(bins([1, 2], [-1, -2, 1]))
    assert found.possible().tolist() == [0, 0, 0]


def test_the_sum_takes_the_middle_of_each_bin_and_the_outer_edges():
    (found,) = published_bins(bins([10, 20, 40], [1, 2, 3, 4]))
    assert found.total(found.possible()) == 1 * 10 + 2 * 15 + 3 * 30 + 4 * 40


def test_the_margin_is_that_of_intervals_that_are_not_cut():
    (found,) = published_bins(bins([1, 2], [-9, 5, -1]))
    assert found.margin == 3
    (noise,) = published_bins(bins([1, 2], [-9, -9, -9]))
    assert noise.margin == 0
