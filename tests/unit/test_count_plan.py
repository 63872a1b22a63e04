"""Plans of one number: the errors that they foretell, and what a release of them says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import PlanError
from panprivacy.statistics.count_plan import CountPlan


def distinct(**given):
    return pp.DistinctCount(**{"expected": (1_000, 100_000), "epsilon": 1, **given}).plan


def density(**given):
    return pp.Density(**{"universe": 10_000, "epsilon": 1, **given}).plan


def test_errors_of_a_range_are_told_at_its_ends_and_at_their_middle():
    assert distinct().error_points == (1_000, pytest.approx(10_000), 100_000)
    assert distinct(expected=(500, 500)).error_points == (500,)
    assert density().error_points == ()


def test_the_error_of_a_plan_is_its_worst_one():
    plan = distinct()
    each = [plan.relative_error(truth) for truth in plan.error_points]
    assert plan.relative_error() >= max(each)
    assert plan.relative_error() < 1.5 * max(each)
    assert plan.absolute_error(5_000) == pytest.approx(5_000 * plan.relative_error(5_000))


def test_of_what_may_be_nobody_errors_are_shares_of_the_largest_answer():
    plan = density()
    assert plan.relative_error() == pytest.approx(plan.absolute_error() / plan.largest)


def test_a_margin_is_wider_for_more_confidence():
    plan = distinct()
    assert plan.absolute_margin(0.95, 5_000) == pytest.approx(
        plan.reach(0.95, 5_000) * plan.absolute_error(5_000)
    )
    margins = [plan.relative_margin(confidence) for confidence in (0.5, 0.95, 0.99999)]
    assert margins == sorted(margins)
    assert plan.relative_margin(0.95) == pytest.approx(
        plan.reach(0.95, None) * plan.relative_error(), rel=1e-9
    )


def test_who_is_not_numbered_has_room_for_collisions():
    """The hypotenuse with one deviation is what hashing may hide."""
    hashed = pp.CroppedSum(tau=3, bound=9, expected=1_000, epsilon=4).plan
    known = pp.CroppedSum(tau=3, bound=9, universe=1_000, epsilon=4).plan
    assert (hashed.numbered, known.numbered is None) == (None, False)
    own = math.sqrt(CountPlan.reach(hashed, 0.68, None) ** 2 - 1)
    assert own == pytest.approx(CountPlan.reach(known, 0.68, None), rel=0.1)


def test_counts_that_do_not_grow_noise_with_looks_have_no_growth():
    assert density().growth is None
    cropped = pp.CroppedSum(tau=3, bound=9, universe=1_000, epsilon=8, intrusions=1).plan
    assert cropped.growth > 1


def test_what_cannot_be_merged_says_what_to_do():
    plan = density()
    with pytest.raises(PlanError, match="it cannot be merged: let each shard release, and add up"):
        CountPlan.joint_model(plan, 0, 2)


def test_a_reading_adds_noise_of_the_scale_of_its_share():
    plan = distinct()
    reading = plan.reading(None, 0)
    (scale,) = reading.scales
    assert scale == plan.sensitivity(0) / plan.split.budget.release
    assert reading.size == plan.groups
    assert plan.names(None) == (plan.name,)


def test_an_answer_says_what_it_cost_and_lies_in_its_interval():
    plan = distinct()
    reading = plan.reading(None, 0)
    answer = reading.answer(np.zeros(plan.groups, np.int64), 0.9)
    assert answer.low <= answer.value <= answer.high
    assert answer.epsilon == float(plan.split.budget.release)
    assert answer.confidence == 0.9
    assert answer.counts == (0,) * plan.groups


def test_states_are_made_up_for_as_many_users_as_the_answer_says():
    plan = density(universe=100)
    answer = plan.reading(None, 0).answer(np.zeros(plan.groups, np.int64), 0.9)
    made = plan.drawing.made_up({plan.name: answer, "lost": None})
    assert len(made) <= 100
