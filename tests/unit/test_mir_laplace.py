"""Sketches with Laplace noise: what is refused, what is added up, and how far a length strays."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedNorm, CalibratedTotal, LaplaceNorm
from panprivacy.papers.published.mir_laplace import law_of_lengths
from panprivacy.papers.published.mir_lattice import SketchMap, lattice_of, weights_of
from panprivacy.tables.decoders.intervals import discrete_laplace_variance
from panprivacy.testing import SeededCoins


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"columns": [[0, 0]]}, "all 0"),
        ({"columns": [[1] * 4_097]}, "4,096 numbers each"),
        pytest.param({"columns": [[1] * 4_096] * 257}, "1,048,576 in all", marks=pytest.mark.slow),
        ({"universe": 1}, "a user for each column"),
        ({"bound": 0}, "bound"),
        ({"columns": [[1], [1, 2]]}, "lists of whole numbers"),
        ({"columns": [[2**16]], "bound": 2**20, "epsilon": "1/1000000"}, "fits in no 64 bits"),
    ],
)
def test_sizes_that_do_not_go_together(wrong, message):
    with pytest.raises(pp.PlanError, match=message):
        LaplaceNorm(**{"columns": [[1], [2]], "bound": 3, "epsilon": 1, **wrong})


@pytest.mark.parametrize("columns", [[[1] * 20], [[1, entry, 0] for entry in range(9)]])
def test_a_map_that_is_too_large_to_enumerate_is_drawn(columns):
    """The refusal names the class that takes it."""
    with pytest.raises(pp.PlanError, match="or LaplaceNorm, which enumerates nothing"):
        CalibratedNorm(columns=columns, modulus=251, norm=1, epsilon=1)
    with pytest.raises(pp.PlanError) as refused:
        CalibratedNorm(columns=columns, modulus=251, norm=0, epsilon=1)
    assert "Laplace" not in str(refused.value)
    assert LaplaceNorm(columns=columns, bound=125, epsilon=1).plan.cells == len(columns[0])


def test_noise_of_an_enumerated_map_falls_apart_into_that_of_its_numbers():
    """Where each user has a single 1, the exponential mechanism draws discrete Laplace noise."""
    columns, modulus = ((1, 0), (0, -1), (1, 0)), 11
    weights = weights_of(SketchMap(columns, modulus), 1, Fraction(3))
    lattice = lattice_of(SketchMap(columns, modulus), 1)
    plan = LaplaceNorm(columns=columns, bound=5, epsilon=4, budget=pp.Budget(3, 1)).plan
    for point in itertools.product(range(-5, 6), repeat=2):
        here = weights[lattice.numbers([point])[0]] / weights[0]
        apart = math.exp(-sum(map(abs, point)) / plan.table.scale)
        assert here == pytest.approx(apart, rel=1e-6)


def test_a_column_is_as_long_as_its_sizes_add_up_to():
    """And noise is for the longest one, for the bound and, after a look, for twice that."""
    columns, budget = [[1, -2, 0], [3, 0, -4], [0, 1, 1]], pp.Budget("1/2", "1/4")
    for signed, states in ((False, 5), (True, 10)):
        sizes = {"columns": columns, "bound": 5, "signed": signed, "intrusions": 1}
        plan = LaplaceNorm(epsilon=2, budget=budget, **sizes).plan
        assert plan.table.scale == 7 * states * 2
        assert plan.table.later == 2 * plan.table.scale
        assert plan.sensitivity(0) == plan.sensitivity(1) == 2 * 7 * states
        (scale,) = plan.reading(None, 0).scales
        assert scale == plan.sensitivity(0) * 4


@pytest.mark.parametrize("universe", [None, 8])
def test_a_sketch_is_the_sum_of_columns_times_states(universe):
    columns = np.array([[1, 0, 5], [3, -2, 0], [0, 4, 0]])
    statistic = LaplaceNorm(
        columns=columns.tolist(),
        bound=9,
        signed=True,
        universe=universe,
        epsilon=1,
        coins=SeededCoins(1),
    )
    before = statistic.internals.memory.now.table.copy()
    statistic.update([0, 2, 1, 0], [3, -1, 7, 1])
    statistic.update([1, 2])
    after = statistic.internals.memory.now.table
    np.testing.assert_array_equal(after - before, [4, 8, 0] @ columns)
    if universe:
        statistic.update([4, 7], [-8, 2])  # columns 1 and 1
        np.testing.assert_array_equal(after - before, [4, 2, 0] @ columns)


@pytest.mark.long
def test_an_announcement_adds_noise_of_its_own():
    columns, coins = np.eye(500, dtype=int).tolist(), SeededCoins(5)
    statistic = LaplaceNorm(columns=columns, bound=1, epsilon=1, intrusions=1, coins=coins)
    before = statistic.internals.memory.now.table.copy()
    statistic.announce_intrusion()
    spread = float(((statistic.internals.memory.now.table - before) ** 2).mean())
    variance = discrete_laplace_variance(float(statistic.plan.table.later))
    assert 0.7 * variance < spread < 1.4 * variance  # that of birth has a quarter of it


@pytest.mark.parametrize(("rows", "scales"), [(1, ("3",)), (3, ("1/5",)), (4, ("2", "4"))])
def test_the_law_of_lengths_is_that_of_sums_of_sizes(rows, scales):
    """Against the convolution of the laws of single sizes."""
    scales = tuple(map(Fraction, scales))
    places, law = np.arange(4_000), np.eye(1, 4_000)[0]
    for scale in [scale for scale in scales for _ in range(rows)]:
        once = np.exp(-places / float(scale)) * np.where(places, 2, 1)
        law = np.convolve(law, once / once.sum())[: len(places)]
    changes, chances = law_of_lengths(rows, scales)
    assert changes.tolist() == list(range(len(changes)))
    np.testing.assert_allclose(chances, law[: len(chances)], atol=1e-13)
    assert law[len(chances) :].sum() < 1e-13


def test_a_law_of_long_lengths_is_rounded_up_and_by_little():
    """Means and deviations of so many Laplace variables, where steps are not 1."""
    for rows, loose in ((1, 1.01), (100, 1.03)):
        scale = 10**6
        changes, chances = law_of_lengths(rows, (Fraction(scale),))
        assert 1 < changes[1] < scale
        assert chances.sum() == pytest.approx(1)
        mean = float(chances @ changes)
        deviation = math.sqrt(float(chances @ (changes - mean) ** 2))
        assert rows * scale <= mean <= rows * scale * loose
        assert deviation == pytest.approx(math.sqrt(rows) * scale, rel=0.01)


def test_a_map_with_a_number_for_each_user_is_told_on_both_sides():
    told = {
        "a number each": ([[1, 0], [0, -1]], None),
        "a factor for all": ([[0, 3], [3, 0]], None),
        "two factors": ([[1, 0], [0, 2]], None),
        "one number for both": ([[1], [1]], None),
        "two numbers for one": ([[1, 1, 0], [0, 0, 2]], None),
        "one who is in none": ([[1, 0], [0, 0]], None),
        "users who share a column": ([[1, 0], [0, 1]], 3),
    }
    exact = {
        name: LaplaceNorm(columns=columns, bound=2, universe=users, epsilon=1).plan.model(0).exact
        for name, (columns, users) in told.items()
    }
    assert {name for name, one in exact.items() if one} == {"a number each", "a factor for all"}


def test_a_length_counts_steps_of_the_longest_column():
    plan = LaplaceNorm(columns=[[1, 1], [0, -4]], bound=50, epsilon=1).plan
    value, low, high = plan.model(0).answer([40], 0.9)
    assert (value, low, high) == (10, 0, 100)


def test_the_deviation_of_a_norm_is_no_less_than_that_of_its_noises():
    plan = LaplaceNorm(columns=[[1]], bound=3, epsilon=2, budget=pp.Budget(1, 1)).plan
    variance = sum(discrete_laplace_variance(scale) for scale in (3.0, 6.0))
    assert plan.absolute_error() == pytest.approx(math.sqrt(variance), rel=1e-6)


# A total


def test_a_bound_above_the_total_is_refused():
    with pytest.raises(pp.PlanError, match="bound"):
        CalibratedTotal(total=3, bound=4, epsilon=1)


@pytest.mark.parametrize("delta", [6, -6])
def test_a_delta_beyond_the_bound_is_refused_by_row(delta):
    for statistic in (
        CalibratedTotal(total=30, bound=5, epsilon=1),
        LaplaceNorm(columns=[[1], [1], [1]], bound=5, epsilon=1),
    ):
        with pytest.raises(pp.InputError, match="row 2"):
            statistic.update([1, 2], [5, delta])


@pytest.mark.parametrize("total", [1_000, 10**12])
def test_a_total_of_any_size_errs_by_its_bound_alone(total):
    plan = CalibratedTotal(total=total, bound=500, epsilon=2).plan
    budget = plan.split.budget
    scales = float(500 / budget.state), float(1_000 / budget.release)
    variance = sum(map(discrete_laplace_variance, scales))
    assert plan.absolute_error() == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert plan.absolute_error() == pytest.approx(5.92 * 500 / 2, rel=0.01)
    assert plan.largest == total


def test_a_total_is_a_frequency_moment_of_order_1():
    budget = pp.Budget(1, 2)
    total, moment = (
        made(epsilon=3, budget=budget, bound=7, coins=SeededCoins(3))
        for made in (
            lambda **others: CalibratedTotal(total=10**6, **others),
            lambda **others: pp.FrequencyMoment(order=1, **others),
        )
    )
    assert total.plan.table == moment.plan.table
    assert total.plan.sensitivity(0) == moment.plan.sensitivity(0) == 14
    assert total.guarantee.unseen_loss.epsilon == moment.guarantee.unseen_loss.epsilon
