"""The count of heavy hitters: exact identities, collisions, rounding, plans and answers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.statistics.heavy.decoder import CellsModel, HeavyModel
from panprivacy.statistics.heavy.plan import HeavyPlan
from panprivacy.tables.cells.difference_sets import biquadratic, point, residues, singer
from panprivacy.tables.cells.law import on_blocks
from panprivacy.tables.cells.threshold import ThresholdCells
from panprivacy.tables.decoders.intervals import margin_beside
from panprivacy.tables.planning.blocks import block_chances, count_range, count_variances
from panprivacy.testing import SeededCoins

SETS = [
    *(residues(q) for q in (3, 7, 11, 19)),
    biquadratic(37),
    *(singer(q) for q in (7, 13, 15, 40)),
    *(point(q) for q in (3, 4, 6)),
]
BLOCKS = [(chosen, block) for chosen in SETS for block in (1, 2, 5)]
IDS = [f"{block} x {chosen.family} {chosen.modulus}" for chosen, block in BLOCKS]
EVERY_BLOCK = pytest.mark.parametrize(("chosen", "block"), BLOCKS, ids=IDS)
BUDGET = pp.Budget(1, 1)


def threshold(state, block):
    """0 up to a block, 1 from two blocks on, and a line between."""
    return min(max(Fraction(state, block) - 1, 0), 1)


def counted(law, block, epoch):
    """The exact mean and mean square of what a cell of each state counts for."""
    weights = [int(weight) for weight in law.weights]
    marks = ThresholdCells(1, law, block, 1)._marks(epoch).tolist()
    noises = list(enumerate(weights))
    if epoch:
        noises = [(x - y, v * w) for (x, v), (y, w) in itertools.product(noises, repeat=2)]
    total = sum(weight for _, weight in noises)

    def moments(state):
        shown = [(marks[(noise + state) % len(weights)], weight) for noise, weight in noises]
        return tuple(Fraction(sum(w * mark**power for mark, w in shown), total) for power in (1, 2))

    return moments


def some(chosen, block, most):
    """Some of all states up to a block below the modulus, and those around both thresholds."""
    reach = block * (chosen.modulus - 1)
    return sorted({*range(0, reach + 1, max(reach // most, 1)), *range(2 * block + 1), reach})


SMALL = [pair for pair in BLOCKS if pair[0].modulus * pair[1] <= 60]


@pytest.mark.parametrize(
    ("chosen", "block", "epoch"),
    [*((*pair, 0) for pair in BLOCKS), *((*pair, 1) for pair in SMALL)],
)
def test_a_cell_counts_on_average_for_what_is_affine_in_a_soft_threshold(chosen, block, epoch):
    moments = counted(on_blocks(chosen, block, Fraction(1)), block, epoch)
    absent, contrast = moments(0)[0], moments(2 * block)[0] - moments(0)[0]
    assert contrast > 0
    for state in some(chosen, block, 30):
        assert moments(state)[0] == absent + contrast * threshold(state, block)
    plain, known = block_chances(chosen, block, BUDGET, epoch)
    assert contrast == pytest.approx(known, rel=1e-5)
    assert absent == pytest.approx(2 * plain + known - epoch, rel=1e-5)


@EVERY_BLOCK
def test_the_variance_of_a_cell_is_what_is_said(chosen, block):
    moments = counted(on_blocks(chosen, block, Fraction(1)), block, 0)

    def variance(state):
        mean, square = moments(state)
        return float(square - mean**2)

    light, most = count_variances(chosen, block, BUDGET)
    below = [variance(state) for state in range(block + 1)]
    assert max(below) == pytest.approx(light, rel=1e-5)
    assert max(variance(state) for state in some(chosen, block, 60)) <= most * (1 + 1e-5)
    ends = max(variance(number * block) for number in range(chosen.modulus))
    assert ends <= most * (1 + 1e-5) <= 1.25 * ends


@pytest.mark.parametrize(("chosen", "most"), [(residues(19), 2), (singer(13), 2), (point(5), 1)])
def test_a_user_moves_a_count_by_as_much_as_two_values_differ(chosen, most):
    law = on_blocks(chosen, 2, Fraction(1))
    assert count_range(chosen) == most
    assert np.ptp(ThresholdCells(1, law, 2, 1)._marks(0)) == most
    assert ThresholdCells(1, law, 2, 1)._marks(1).tolist() == [0, 1, 0] + [1] * (law.modulus - 3)


@pytest.mark.parametrize(("total", "most"), [(10**5, 3.1), (10**9, 3.2)])
def test_at_epsilon_1_the_deviation_is_about_three_times_the_root_of_the_cells(total, most):
    budget = pp.Budget(1, 40)
    plan = pp.HeavyHitterCount(k=3_000, total=total, epsilon=41, budget=budget).plan
    deviation = float(plan.model(0).over_cells.deviation(0)) / math.sqrt(plan.cells)
    assert 2.7 < deviation < most


@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("state", ["0.2", 1, 3, 6])
def test_no_deviation_is_much_above_that_of_two_coins(k, state):
    budget = pp.Budget(Fraction(state), 40)
    plan = pp.HeavyHitterCount(k=k, total=9_999, epsilon=46, budget=budget).plan
    deviation = float(plan.model(0).over_cells.deviation(0)) / math.sqrt(plan.cells)
    assert deviation * math.tanh(float(budget.state) / 2) < 1.5


# Rounding


@pytest.mark.parametrize("block", [1, 4, 25, 100])
@pytest.mark.parametrize("resolution", [2, 5, 100])
def test_rounding_moves_a_cell_by_no_more_than_is_said(block, resolution):
    """Users of ones: the counter is binomial. The bound is a share of what the cell holds."""
    for state in np.unique(np.geomspace(1, 4 * block * resolution, 40).astype(int)):
        steps = np.arange(state + 1)
        logs = [
            math.lgamma(state + 1) - math.lgamma(n + 1) - math.lgamma(state - n + 1) for n in steps
        ]
        law = np.exp(logs - steps * math.log(resolution))
        law *= (1 - 1 / resolution) ** (state - steps)
        holds = state / (block * resolution)
        mean = float(law @ np.clip(steps / block - 1, 0, 1))
        assert abs(mean - min(max(holds - 1, 0), 1)) <= holds / (2 * math.sqrt(block)) + 1e-9


# Collisions


STATES = st.lists(st.floats(0, 3), min_size=1, max_size=5)


def g(holds):
    return np.clip(holds - 1, 0, 1)


@given(STATES)
def test_pairs_lift_a_cell_by_at_most_their_products(states):
    pairs = sum(x * y for x, y in itertools.combinations(states, 2))
    over_users = sum(map(g, states))
    assert min(over_users, 1) - 1e-9 <= g(sum(states)) <= over_users + pairs + 1e-9


@given(STATES, st.integers(2, 4))
def test_the_mean_over_cells_lies_where_the_interval_takes_it_to_be(states, cells):
    """Over every way to hash the users to the cells."""
    hashings = itertools.product(range(cells), repeat=len(states))
    sums = np.array([np.bincount(hashed, states, minlength=cells) for hashed in hashings])
    mean, users = g(sums).sum(axis=1).mean(), sum(map(g, states))
    model = HeavyModel(CellsModel(cells, max(sum(states) / 2, 1e-9), 0.5, 0.2, 0.5, 0.0), 0.0)
    assert users - users**2 / (2 * cells) - 1e-9 <= mean <= users + model.lift + 1e-9
    assert mean <= model.over_cells.limit + 1e-9


# Plans


@pytest.mark.parametrize(("k", "total"), [(1, 2), (7, 999), (1_000, 10**6), (10_000, 10**15)])
@pytest.mark.parametrize("epsilon", [1, 5])
def test_thresholds_and_counters_fit_the_total(k, total, epsilon):
    plan = pp.plan("heavy-hitters", k=k, total=total, epsilon=epsilon)
    assert plan.high <= total / k
    assert plan.low > (total / (2 * k) - plan.resolution)
    assert plan.resolution == 1 or plan.block >= 60
    assert plan.law.modulus >= total / plan.resolution + plan.block
    assert plan.cells >= 2 * k


@pytest.mark.long
def test_memory_depends_on_k_and_epsilon_alone():
    sizes = {
        pp.plan("heavy-hitters", k=500, total=total, epsilon=2).table.nbytes
        for total in (10**9, 10**12, 10**18)
    }
    assert len(sizes) == 1
    assert sizes.pop() <= 64 * 500 * 4


@pytest.mark.long
def test_a_finer_resolution_takes_wider_counters():
    coarse, fine = (
        pp.plan("heavy-hitters", k=10, total=5_000_000, epsilon=1, resolution=r) for r in (50, 1)
    )
    assert fine.law.modulus > 40 * coarse.law.modulus
    assert isinstance(fine, HeavyPlan)
    assert not fine.model(0).rounding
    assert 0 < coarse.model(0).rounding < 0.02 * coarse.limit


@pytest.mark.long
def test_margins_and_errors_grow_with_what_is_unknown():
    plan = pp.plan("heavy-hitters", k=1_000, total=10**6, epsilon=2)
    assert plan.absolute_error(0) <= plan.absolute_error() < plan.absolute_margin(0.95)
    assert plan.model(0).output_share(0) < 0.5
    planned = pp.plan("heavy-hitters", k=10, total=200, epsilon=4, intrusions=1)
    calm = pp.plan("heavy-hitters", k=10, total=200, epsilon=2)
    assert planned.absolute_error() > 5 * calm.absolute_error()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 2.5}, "k must be"),
        ({"k": "7"}, "k must be"),
        ({"k": 32_769}, "k must be at most"),
        ({"total": 0}, "total must be"),
        ({"total": 1 << 61}, "total must be at most"),
        ({"total": 19}, r"total \(19\) must be at least 2 k \(20\)"),
        ({"cells": 19}, r"cells \(19\) must be at least 2 k \(20\)"),
        ({"cells": 0}, "cells must be"),
        ({"resolution": 0}, "resolution must be"),
        ({"resolution": 51}, "at least 2 k times the resolution"),
        ({"total": 1 << 30, "resolution": 1}, "more than 16,777,216 values"),
        ({"intrusions": 2}, r"after 2 announced intrusions: its error .* at least about \d"),
        ({"epsilon": "1e-18"}, "too small to leave any signal"),
        ({"epsilon": 0}, "epsilon must be"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(arguments, says):
    with pytest.raises(pp.PlanError, match=says):
        pp.HeavyHitterCount(**{"epsilon": 1, "k": 10, "total": 1_000, **arguments})


def test_a_delta_beyond_the_total_is_refused():
    heavy = pp.HeavyHitterCount(k=10, total=1_000, epsilon=1)
    before = heavy.state()
    with pytest.raises(pp.InputError, match="within ±1,000"):
        heavy.update([1, 2], [1_000, 1_001])
    assert heavy.state() == before


# Answers


@pytest.mark.parametrize("resolution", [1, 4])
def test_with_a_huge_epsilon_users_far_from_the_thresholds_are_counted(resolution):
    """Where no two of them share a cell, which 2**20 cells make likely; the coins are seeded."""
    sizes = {"k": 100, "total": 40_000, "cells": 1 << 20, "resolution": resolution}
    heavy = pp.HeavyHitterCount(epsilon=120, coins=SeededCoins(1), **sizes)
    heavy.update(np.arange(30), np.full(30, 1_000))
    heavy.update(np.arange(30, 1_030), np.full(1_000, 10))
    answer = heavy.release()
    assert answer.value == pytest.approx(30, abs=0.5)
    assert answer.low <= 30 <= answer.high


def test_after_an_announced_intrusion_other_cells_count():
    """Within seven deviations of the truth; the count before it would be further off."""
    sizes = {"k": 1_000, "total": 4_000, "cells": 1 << 17, "intrusions": 1}
    heavy = pp.HeavyHitterCount(epsilon=30, budget=pp.Budget(14, 2), **sizes)
    heavy.update(np.arange(1_000), np.full(1_000, 2))
    heavy.announce_intrusion()
    heavy.update(np.arange(1_000), np.full(1_000, 2))
    assert abs(heavy.plan.model(1).over_cells.unbiased(heavy.release().counts) - 1_000) < 7 * (
        heavy.plan.absolute_error()
    )
    assert heavy.plan.absolute_error() < 1_000


def test_an_interval_covers_what_may_hide_and_what_may_be_added():
    model = HeavyModel(CellsModel(800, 100.0, 1.0, 0.9, 0.2, 10.0), 5.0)
    assert model.lift == 30
    low, high = model.interval(70.0, 0.5)
    _, most = model.over_cells.interval(70.0, 0.5)
    part = margin_beside((30 + 5) / 2, float(model.over_cells.deviation(most)), 0.5)
    inner = model.over_cells.interval(70.0, 0.5, part)
    assert inner[1] < most
    assert low == inner[0] - 30 > 0
    assert high == pytest.approx(800 * (1 - math.sqrt(1 - 2 * (inner[1] + 5) / 800)))
    assert model.interval(100.0, 0.95)[1] == 100
    assert HeavyModel(CellsModel(2, 1.0, 1.0, 0.3, 0.5, 0.0), 1.0).interval(1.0, 0.9) == (0, 1)


def test_a_resolution_that_moves_the_thresholds_is_refused():
    with pytest.raises(pp.PlanError, match="moves the thresholds"):
        pp.HeavyHitterCount(k=1_000, total=10**6, resolution=260, epsilon=60)
    plan = pp.plan("heavy-hitters", k=1_000, total=10**6, resolution=250, epsilon=60)
    assert (plan.low, plan.high, plan.limit) == (500, 1_000, 1_000)


def test_a_delta_beyond_the_total_is_told_so():
    heavy = pp.HeavyHitterCount(k=10, total=299, epsilon=4)
    with pytest.raises(pp.InputError, match="as the total says: plan for larger ones with total="):
        heavy.update([1], [300])
