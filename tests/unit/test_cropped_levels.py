"""The cropped sum over levels: what collisions hide, exactly; plans over a range; bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.statistics.cropped.decoder import LevelledCroppedModel
from panprivacy.statistics.cropped.plan import MOST_SHARING
from panprivacy.tables.addressing import Levelled
from panprivacy.tables.ids import read_ids

RANGE = {"tau": 10, "bound": 100, "expected": (1_000, 1_000_000), "memory": 1 << 20, "epsilon": 1}
SUMS = np.geomspace(5_000, 10**7, 40)


def model(levels=6, cells_per_level=1_000, noise_variance=3.0, tau=10):
    return LevelledCroppedModel(
        levels, cells_per_level, noise_variance, tau, absent=0.4, contrast=0.2, sharing=4
    )


# What collisions hide


def mean_of_cells(states, tau, cells, share, modulus):
    """The exact mean of what a level's cells say in all, over every way to hash."""
    ways = itertools.product(range(-1, cells), repeat=len(states))
    mean = 0.0
    for way in ways:
        chance = math.prod(1 - share if cell < 0 else share / cells for cell in way)
        sums = np.bincount(np.array(way) + 1, states, minlength=cells + 1)[1:] % modulus
        mean += chance * np.minimum(np.minimum(sums, modulus - sums), tau).sum()
    return mean


@pytest.mark.long
@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=5),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0.5, 0.25, 1.0]),
)
def test_a_level_says_no_more_and_no_less_than_its_ends(states, tau, cells, share):
    """Also where the users of a cell add up to more than the modulus can tell."""
    bound = max(tau, *states)
    modulus = tau * -(-(MOST_SHARING * bound + tau) // tau)
    exact = mean_of_cells(np.array(states), tau, cells, share, modulus) / (tau * cells)
    load = share * np.minimum(states, tau).sum() / (tau * cells)
    least = model()._least(np.array(load))
    assert least - 1e-12 <= exact <= min(load, 1) + 1e-12


def test_more_users_than_are_told_from_none_are_allowed_for():
    """Eight users of the bound, two cells, a modulus of nine bounds: what wraps is lost."""
    load = np.array(4.0)
    assert model()._least(load) == 0
    assert model()._least(np.array(0.1)) == pytest.approx(-math.expm1(-0.1), rel=1e-3)


# Answers


def counts_of(one, total, side=0):
    """The mean counts if collisions hide nothing (1), or all they can (-1)."""
    middle, _, _, hidden = one.parts(np.asarray(total))
    return middle + side * hidden


def test_without_collisions_and_noise_the_answer_is_the_truth():
    one = model(cells_per_level=10**7)
    assert one.estimate(counts_of(one, 5_000.0)) == pytest.approx(5_000, rel=1e-3)


@pytest.mark.parametrize("total", [500.0, 3_000.0, 20_000.0, 200_000.0])
def test_the_answer_lies_where_the_middle_of_the_counts_does(total):
    one = model()
    assert one.estimate(counts_of(one, total)) == pytest.approx(total, rel=0.01)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("total", [0.0, 500.0, 20_000.0, 200_000.0])
@pytest.mark.parametrize("side", [1, -1])
def test_intervals_hold_the_answer_and_what_collisions_hide(total, confidence, side):
    one = model()
    value, low, high = one.answer(counts_of(one, total, side), confidence)
    assert 0 <= low <= value <= high
    assert low <= total <= high


def test_more_confidence_is_a_wider_interval():
    one = model()
    counts = counts_of(one, 20_000.0)
    (_, low, high), (_, lower, higher) = one.answer(counts, 0.5), one.answer(counts, 0.99)
    assert lower < low
    assert high < higher


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("epsilon", [1, 8])
def test_collisions_bias_an_answer_by_no_more_than_it_says(epsilon, side):
    """Counts without noise, of users that hide all that can be hidden, or nothing."""
    planned = pp.plan("cropped-sum", **{**RANGE, "epsilon": epsilon}).model(0)
    for truth in (10**5, 10**6, 10**7):
        middle, _, _, hidden = planned.parts(np.array(float(truth)))
        bias = side * (planned.estimate(middle + side * hidden) - truth)
        # The bound is of first order: the slope of the score changes by as large a share.
        stated = float(planned.bias(truth))
        assert bias == pytest.approx(stated, rel=2 * stated / truth + 0.05)


def test_a_release_says_how_far_collisions_may_move_it():
    counted = pp.CroppedSum(**RANGE)
    counted.update(np.arange(20_000), np.full(20_000, 5))
    answer = counted.release()
    expected = float(counted.plan.model(0).bias(answer.value))
    assert answer.bias == pytest.approx(expected)
    assert 0 < answer.bias < (answer.high - answer.low) / 2


def test_a_plan_says_how_far_collisions_may_move_an_answer():
    plan = pp.plan("cropped-sum", **RANGE)
    (remark,) = plan.remarks
    share = float(remark.split(" times ")[0].split()[-1])
    for total in (10_000.0, 10**5, 10**6, 10**7):
        assert plan.model(0).bias(total) <= 1.05 * share * total
    assert not pp.plan("cropped-sum", tau=10, bound=100, universe=1_000, epsilon=1).remarks


@pytest.mark.parametrize("total", [3_000.0, 20_000.0, 200_000.0])
def test_no_other_weights_have_a_smaller_largest_error(total):
    """Against the weights of noise alone, those with a penalty on each level, and random ones."""
    one = model()
    _, slope, noise, hidden = one.parts(np.asarray(total))

    def largest_error(weights):
        variance, bias = (weights**2 * noise).sum(), (weights * hidden).sum()
        return np.sqrt(variance + bias**2) / (weights * slope).sum()

    least = float(one.deviation(total))
    rng = np.random.default_rng(1)
    for caution in (0, 1, 2, 10):
        assert largest_error(slope / (noise + (caution * hidden) ** 2)) >= least * (1 - 1e-12)
    best = slope / (noise + hidden**2)
    for _ in range(1_000):
        moved = best * np.exp(rng.normal(0, 1, len(best)) * rng.integers(0, 2, len(best)))
        assert largest_error(moved) >= least * (1 - 1e-12)
    errors = [largest_error(best * np.exp(rng.normal(0, 0.1, len(best)))) for _ in range(3_000)]
    assert min(errors) < 1.1 * least


def test_full_levels_bound_nothing():
    one = model()
    full = one.answer(np.full(6, 0.6 * 1_000), 0.95)
    assert math.isfinite(full[0])
    assert full[2] == math.inf
    assert 0 <= one.output_share(full[0]) <= 1


def test_empty_levels_say_that_there_are_few():
    value, low, high = model().answer(np.full(6, 0.4 * 1_000), 0.95)
    assert low == 0
    assert value < 1_000
    assert high < 10_000


def test_what_crowded_cells_pass_for_has_no_part_in_the_answer():
    """A sum of 200,000 crowds all but the last levels, whose cells then pass for empty ones."""
    one = model()
    counts = counts_of(one, 200_000.0)
    counts[:3] = 0.4 * 1_000
    value, low, high = one.answer(counts, 0.95)
    assert value == pytest.approx(200_000, rel=0.05)
    assert low < 200_000 < high


# Plans


def test_errors_are_as_small_a_share_of_every_sum_in_the_range():
    plan = pp.plan("cropped-sum", **RANGE)
    errors = np.array([plan.absolute_error(total) / total for total in SUMS[SUMS >= 50_000]])
    assert plan.levels > 5
    assert errors.max() < 0.12
    assert plan.table.nbytes <= RANGE["memory"]


@pytest.mark.long
def test_more_memory_or_epsilon_errs_less():
    def error(**changed):
        return pp.plan("cropped-sum", **{**RANGE, **changed}).absolute_error(10**6) / 10**6

    assert error(memory=1 << 24) < error() < error(memory=1 << 16)
    assert error(epsilon=4) < error() < error(epsilon=0.25)


def test_a_wide_range_errs_less_at_its_low_end_than_one_table():
    """So many cells as a million users need are noise to a thousand of them."""
    one = pp.plan("cropped-sum", tau=10, bound=100, expected=1_000_000, epsilon=1)
    levels = pp.plan("cropped-sum", **{**RANGE, "memory": None})
    assert levels.absolute_error(10_000) < one.absolute_error(10_000) / 3


def test_a_plan_addresses_its_levels():
    plan = pp.plan("cropped-sum", **RANGE)
    key, ids = bytes(range(16)), read_ids(np.arange(10_000))
    ours, theirs = (
        np.concatenate(list(one.slots(ids)))
        for one in (plan.address(key), Levelled(plan.levels, plan.cells // plan.levels, key))
    )
    assert (ours == theirs).all()
    assert plan.groups == plan.levels
    each = np.bincount(ours // (plan.cells // plan.levels), minlength=plan.levels)
    assert each[0] == pytest.approx(5_000, abs=400)


def test_plans_are_found_by_name_too():
    sizes = {name: RANGE[name] for name in ("tau", "bound", "expected", "memory", "epsilon")}
    assert pp.plan("cropped-sum", **sizes) == pp.CroppedSum(**RANGE).plan
    assert pp.plan("cropped-sum", **{**sizes, "bound": None}).bound == 640


def test_numbers_of_users_may_be_floats():
    sizes = {"tau": 10, "bound": 100, "epsilon": 1}
    for users, same in ((1e4, 10_000), ((1e3, 1e6), [1_000, 1_000_000])):
        one, other = (pp.CroppedSum(expected=each, **sizes) for each in (users, same))
        assert one.plan == other.plan


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"universe": 10}, "leave out expected="),
        ({"cells": 100}, "planned by memory="),
        ({"expected": (100, 10)}, "from low to high"),
        ({"expected": (0, 10)}, "expected"),
        ({"expected": (1, 2, 3)}, "pair"),
        ({"tau": 200}, "exceeds the bound"),
        ({"memory": 1}, "memory must be at least"),
        ({"memory": 8}, "memory must be larger"),
        ({"intrusions": 2}, r"after 2 announced intrusions: its error .* at least about \d"),
        ({"epsilon": 1e-300}, "too small to leave any signal"),
        ({"bound": 4_194_304}, "lower the bound"),
    ],
)
def test_what_cannot_be_planned_is_refused(changed, says):
    with pytest.raises(pp.PlanError, match=says):
        pp.CroppedSum(**{**RANGE, **changed})
