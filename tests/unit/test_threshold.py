"""Thresholds, soft and hard: answers, plans and refusals. Identities of cells: `test_heavy.py`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.notes import BELOW
from panprivacy.statistics.soft.block_plans import IN_PART

LARGE = {"universe": 2_000, "epsilon": 300}
HARD = {"hard": True, "epsilon": 1}


def soft(states, low):
    return float(np.clip(np.asarray(states) / low - 1, 0, 1).sum())


@pytest.mark.parametrize("least", [2, 3, 10, 11, 1_000])
def test_users_count_between_half_of_it_and_it(least):
    low = least // 2
    states = [0, low, 2 * low, least, 3 * least, 10 * least]
    busy = pp.ThresholdCount(threshold=least, bound=10 * least, **LARGE)
    assert (busy.plan.low, busy.plan.high) == (low, 2 * low)
    busy.update(np.arange(len(states)), states)
    assert busy.release().value == pytest.approx(soft(states, low), abs=1e-3)


@pytest.mark.parametrize("least", [4, 10, 11, 1_000])
def test_users_half_way_count_by_half_on_average(least):
    """Six standard deviations: one false alarm in 500 million runs."""
    low = least // 2
    busy = pp.ThresholdCount(threshold=least, bound=10 * least, universe=40_000, epsilon=300)
    states = np.repeat([0, low + low // 2, 5 * least, low + 1], 10_000)
    busy.update(np.arange(40_000), states)
    answer = busy.release().value
    assert answer == pytest.approx(soft(states, low), abs=6 * busy.plan.absolute_error())


def test_users_that_go_below_count_no_more():
    busy = pp.ThresholdCount(threshold=10, bound=100, releases=2, **LARGE)
    busy.update([1, 2, 3], [20, 90, 4])
    assert busy.release().value == pytest.approx(2, abs=1e-3)
    busy.update([1], [-16])
    assert busy.release().value == pytest.approx(1, abs=1e-3)


def test_a_sample_answers_for_all():
    busy = pp.ThresholdCount(threshold=10, bound=100, universe=100_000, cells=20_000, epsilon=300)
    busy.update(np.arange(50_000), np.full(50_000, 30))
    answer = busy.release(confidence=1 - 1e-9)
    assert answer.low < 50_000 < answer.high
    assert answer.value == pytest.approx(50_000, abs=6 * busy.plan.absolute_error(50_000))
    sampling = 100_000 * math.sqrt(0.25 / 20_000 * 0.8)
    assert sampling < busy.plan.absolute_error(50_000) < 1.6 * sampling


@pytest.mark.parametrize("least", [2, 20, 200, 2_000])
def test_the_deviation_does_not_depend_on_the_threshold(least):
    budget = pp.Budget(1, 40)
    plan = pp.ThresholdCount(
        threshold=least, bound=5 * least, universe=10_000, epsilon=41, budget=budget
    ).plan
    assert 2.5 < plan.absolute_error() / math.sqrt(plan.cells) < 3.2
    assert plan.absolute_margin(0.95) == pytest.approx(1.96 * plan.absolute_error(), rel=0.01)


def test_an_announced_intrusion_leaves_it_readable_and_costs_much():
    busy = pp.ThresholdCount(threshold=2, bound=4, universe=50_000, epsilon=20, intrusions=1)
    busy.update(np.arange(30_000), np.full(30_000, 2))
    busy.announce_intrusion()
    busy.update(np.arange(30_000), np.full(30_000, 1))
    answer = busy.release(confidence=1 - 1e-9)
    assert answer.value == pytest.approx(30_000, abs=6 * busy.plan.absolute_error())
    assert answer.low < 30_000 < answer.high


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threshold": 1}, "threshold must be at least 2; for who came at all"),
        ({"threshold": 0}, "threshold"),
        ({"threshold": 2.5}, "threshold"),
        ({"threshold": 11}, r"threshold \(11\) exceeds the bound \(10\)"),
        ({"universe": 0}, "universe"),
        ({"cells": 101}, r"cells \(101\) exceed the universe \(100\)"),
        ({"threshold": 9_000, "bound": 20_000, "intrusions": 2}, "24,5.. values cannot be read"),
        ({"bound": 1 << 30}, "bound"),
        ({"epsilon": "1e-30"}, "epsilon"),
    ],
)
def test_arguments_that_cannot_be_met(wrong, message):
    with pytest.raises(pp.PlanError, match=message):
        pp.ThresholdCount(**{"threshold": 4, "bound": 10, "universe": 100, "epsilon": 1, **wrong})


@pytest.mark.long
def test_without_a_bound_states_reach_64_times_as_far():
    plan = pp.plan("threshold", threshold=10, universe=100, epsilon=1)
    assert plan.bound == 640
    assert plan.law.modulus - plan.low >= 640


@pytest.mark.long
def test_a_high_threshold_without_a_bound_reaches_as_far_as_counters_do():
    plan = pp.plan("threshold", threshold=1_000_000, universe=100, epsilon=1)
    assert 1_000_000 <= plan.bound < 64_000_000


@pytest.mark.parametrize("epsilon", [4, 10, 20])
def test_blocks_of_one_state_have_no_state_in_between(epsilon):
    """So a large epsilon leaves hardly any error."""
    budget = pp.Budget(epsilon, 40)
    plan = pp.ThresholdCount(
        threshold=2, bound=20, universe=10_000, epsilon=epsilon + 40, budget=budget
    ).plan
    assert plan.absolute_error() < 800 * math.exp(-epsilon / 2)


@pytest.mark.long
@pytest.mark.parametrize(("least", "bound"), [(2, 2), (3, 10), (10, 10), (7, 90), (50, 300)])
def test_a_hard_threshold_counts_who_is_there_exactly(least, bound):
    states = np.array([0, 1, least - 1, least, (least + bound) // 2, bound])
    busy = pp.ThresholdCount(threshold=least, bound=bound, universe=2_000, epsilon=300, hard=True)
    busy.update(np.arange(6), states)
    assert busy.release().value == pytest.approx((states >= least).sum(), abs=0.1)


ROOM = [  # of a soft threshold: epsilon, threshold, bound, and the lowest state that counts 0
    (0.5, 10, 50, -5),
    (0.5, 10, None, -2),
    (1, 2, 10, -1),
    (1, 100, 500, -50),
    (1, 100, None, -25),
    (4, 100, 500, -50),
    (2, 100, 500, 0),
    (4, 10, None, 0),
]


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "least", "bound", "lowest"), ROOM)
def test_room_below_0_of_a_soft_threshold_costs_hardly_any_error(epsilon, least, bound, lowest):
    sizes = {"threshold": least, "bound": bound, "universe": 10**6, "epsilon": epsilon}
    roomy, tight = pp.plan("threshold", **sizes), pp.plan("threshold", **sizes, below=0)
    assert roomy.range_of_states[0] == lowest
    times = 3 if bound else 1  # 64 times the threshold is room enough
    assert roomy.range_of_states[1] >= min(tight.range_of_states[1], times * roomy.bound)
    assert roomy.absolute_error() <= 1.05 * tight.absolute_error()
    assert roomy.table.nbytes == tight.table.nbytes
    assert tight.caveat is None  # who says 0 knows that there are none
    assert (roomy.caveat is None) == (lowest < 0)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize(("least", "below"), [(10, 1), (10, 5), (10, 12), (1_000, 500)])
def test_room_that_is_asked_for_is_there_whatever_it_costs(least, below, epsilon):
    sizes = {"threshold": least, "bound": 5 * least, "universe": 10**6, "epsilon": epsilon}
    roomy, tight = pp.plan("threshold", **sizes, below=below), pp.plan("threshold", **sizes)
    low, high = roomy.range_of_states
    assert low <= -below
    assert high >= 5 * least
    assert roomy.absolute_error() <= (1.15 if below <= least / 2 else 1.5) * tight.absolute_error()


@pytest.mark.parametrize("given", [{}, {"below": 50}, {"cells": 500_000}])
def test_a_soft_threshold_counts_nobody_who_is_somewhat_below_0(given):
    users = 1_000_000
    sizes = {"threshold": 100, "bound": 500, "universe": users, "epsilon": 1}
    busy = pp.ThresholdCount(**sizes, **given)
    busy.update(np.arange(users // 2), np.full(users // 2, -50))
    busy.update(np.arange(users // 2, users), np.full(users // 2, -1))
    answer = busy.release(confidence=1 - 1e-6)
    assert answer.low == 0
    assert answer.high < 12 * busy.plan.absolute_error()
    without = pp.ThresholdCount(**sizes, below=0)
    without.update(np.arange(users // 2), np.full(users // 2, -50))
    assert without.release(confidence=1 - 1e-6).low > users // 3


@pytest.mark.long
def test_answers_without_room_say_that_users_below_0_count():
    sizes = {"threshold": 10, "universe": 100_000, "epsilon": 4}
    answer = pp.ThresholdCount(**sizes).release()
    assert answer.note.endswith(IN_PART)
    for below in (0, 5):  # by chance there is more to say, or nothing
        assert "in part" not in (pp.ThresholdCount(**sizes, below=below).release().note or "")
    assert (
        pp.plan("threshold", **sizes)
        .remarks[0]
        .startswith(f"{BELOW} count in part, from -5 on in full: say below=")
    )
    down = "down to -5 nobody counts; lower states do in part, from -"
    assert pp.plan("threshold", **sizes, below=5).remarks[0].startswith(down)


def test_a_state_of_other_blocks_is_refused(monkeypatch):
    sizes = {"threshold": 10, "bound": 50, "universe": 100_000, "epsilon": 1}
    roomy = pp.ThresholdCount(**sizes)
    assert roomy.plan.searched_law.encode() in roomy.state()
    other = pp.ThresholdCount(**sizes)
    other.resume(roomy.state())
    with monkeypatch.context() as patched:  # as it was before there was room
        patched.setattr(type(roomy.plan), "searched_law", "")
        before = pp.ThresholdCount(**sizes).state()
    with pytest.raises(pp.InputError, match="with another law"):
        other.resume(before)
    with pytest.raises(pp.InputError, match="with another below, law"):
        other.resume(pp.ThresholdCount(**sizes, below=0).state())


@pytest.mark.parametrize("given", [{}, {"below": 9}, {"below": 20}])
@pytest.mark.parametrize(("least", "epsilon"), [(20, 1), (20, 4), (6, 1)])
def test_variances_between_blocks_are_at_most_what_the_plan_says(least, epsilon, given):
    """And means are as claimed, for every state that is told right."""
    sizes = {"threshold": least, "bound": 3 * least, "universe": 50_000}
    plan = pp.plan("threshold", epsilon=epsilon, **sizes, **given)
    votes, model = plan.votes(0), plan.model(0)
    scores = np.repeat(plan.table.scores, plan.table.block)
    noise = plan.law.probabilities()
    low, high = plan.range_of_states
    for state in range(low, high + 1):
        shown = np.roll(scores, -state)
        mean = float(noise @ shown)
        off = (mean - votes.absent) / votes.contrast - np.clip(state / plan.low - 1, 0, 1)
        assert abs(off) <= 0.5 / votes.contrast
        assert plan.cells * votes.bias <= np.sqrt(plan.cells * votes.variance) / 60
        variance = float(noise @ (shown - mean) ** 2)
        assert variance <= model.above * (1 + 1e-9)
        if state <= plan.low:
            assert variance <= votes.below * (1 + 1e-9)
    assert plan.sensitivity(0) == np.ptp(scores)


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_tents_below_0_leave_room_after_each_intrusion(epoch):
    sizes = {"threshold": 4, "bound": 8, "universe": 10_000, "below": 3}
    plan = pp.plan("threshold", epsilon=24, intrusions=2, **sizes)
    check_scores(plan, epoch, lambda state: np.clip(state / plan.low - 1, 0, 1))
    assert plan.range_of_states[0] == -4
    assert plan.range_of_states[1] >= 8


def test_a_hard_threshold_has_the_room_that_is_asked_for():
    sizes = {"threshold": 10, "bound": 50, "universe": 10**6, **HARD}
    assert pp.plan("threshold", **sizes, below=30).range_of_states == (-30, 50)
    with pytest.raises(pp.PlanError, match="may be at most 4,095 together"):
        pp.plan("threshold", **sizes, below=4_050)


@pytest.mark.long
@pytest.mark.parametrize(("least", "bound", "lowest"), [(5, 25, -1), (10, 50, -2), (100, 500, -50)])
def test_a_hard_threshold_counts_nobody_who_is_somewhat_below_0(least, bound, lowest):
    """Without room a user in state -1 counts by up to a whole, as one just beyond the bound."""
    users = 1_000_000
    busy = pp.ThresholdCount(threshold=least, bound=bound, universe=users, **HARD)
    assert busy.plan.range_of_states == (lowest, bound)
    busy.update(np.arange(users // 2), np.full(users // 2, lowest))
    busy.update(np.arange(users // 2, users), np.full(users // 2, -1))
    answer = busy.release(confidence=1 - 1e-6)
    assert answer.low == 0
    assert answer.high < 12 * busy.plan.absolute_error()


@pytest.mark.long
@pytest.mark.parametrize(
    ("bound", "epsilon"),
    [(2, 0.5), (8, 0.5), (8, 2), (8, 4), (30, 1), (30, 4), (100, 0.5), (100, 2), (240, 1)],
)
def test_states_below_0_cost_a_hard_threshold_hardly_any_error_and_no_memory(bound, epsilon):
    for least in {2, 3, 5, bound // 3, bound} & set(range(2, bound + 1)):
        sizes = {"threshold": least, "bound": bound, "universe": 10**6, "hard": True}
        roomy = pp.plan("threshold", epsilon=epsilon, **sizes)
        tight = pp.plan("threshold", epsilon=epsilon, **sizes, below=0)
        assert tight.range_of_states == (0, bound)
        assert -roomy.range_of_states[0] in {0, *(least // part for part in (2, 4, 8))}
        assert roomy.absolute_error() <= 1.05 * tight.absolute_error()
        assert roomy.table.nbytes == tight.table.nbytes


@pytest.mark.long
@pytest.mark.parametrize(("least", "bound"), [(2, 2), (3, 9), (10, 50), (100, 250)])
@pytest.mark.parametrize(("epsilon", "epoch"), [(0.3, 0), (1, 0), (5, 0), (5, 1), (9, 2)])
def test_scores_of_a_hard_threshold_are_unbiased_but_for_their_rounding(
    least, bound, epsilon, epoch
):
    """Exact expectations, from the integers that are summed and the weights of the law."""
    sizes = {"threshold": least, "bound": bound, "universe": 10_000, "hard": True}
    plan = pp.plan("threshold", epsilon=epsilon, intrusions=epoch, **sizes)
    if epoch and plan.relative_error() > 10:
        return  # of no use, and so large that rounding is not looked at
    model, scores = plan.model(epoch), plan.table.scores[epoch]
    noise = noise_after(plan.law, epoch)
    unit = plan.cells / (model.contrast * plan.cells)  # of a score, in users of one cell
    for state in range(plan.range_of_states[0], bound + 1):
        shown = scores[(np.arange(plan.law.modulus) + state) % plan.law.modulus]
        mean = float(noise @ shown)
        counts = (mean - model.absent) * unit
        variance = float(noise @ (shown - mean) ** 2)
        assert abs(counts - (state >= least)) <= 0.5 * unit
        assert plan.cells * abs(counts - (state >= least)) <= plan.absolute_error() / 60
        most = model.above if state >= least else model.below
        assert variance <= most * (1 + 1e-9)
    assert plan.sensitivity(epoch) == scores.max() - scores.min()


def noise_after(law, epoch):
    """The probabilities of the noise of a birth and of so many announcements, added up one by one.

    Not by transforms, as the plan does it.
    """
    once = law.probabilities()
    noise = once
    for _ in range(epoch):
        noise = sum(noise[shift] * np.roll(once, shift) for shift in range(law.modulus))
    return noise


@pytest.mark.parametrize("epoch", [0, 1, 2, 3])
@pytest.mark.parametrize(("threshold", "bound"), [(2, 4), (4, 8), (5, 12)])
def test_scores_of_a_soft_threshold_are_unbiased_after_each_intrusion(threshold, bound, epoch):
    sizes = {"threshold": threshold, "bound": bound, "universe": 10_000}
    plan = pp.plan("threshold", epsilon=24, intrusions=3, **sizes)
    check_scores(plan, epoch, lambda state: np.clip(state / plan.low - 1, 0, 1))
    assert plan.low == threshold // 2
    assert plan.range_of_states[1] >= bound


@pytest.mark.parametrize("epoch", [0, 1, 2, 3])
@pytest.mark.parametrize(("tau", "bound"), [(1, 1), (3, 3), (3, 10), (10, 12)])
def test_scores_of_a_cropped_sum_are_unbiased_after_each_intrusion(tau, bound, epoch):
    """States below 0 count by their distance from 0, as they do without intrusions."""
    plan = pp.plan("cropped-sum", tau=tau, bound=bound, universe=10_000, epsilon=24, intrusions=3)
    check_scores(plan, epoch, lambda state: min(abs(state), tau) / tau)
    low, high = plan.range_of_states
    assert low == -high <= -bound
    assert plan.signed


def test_a_sample_of_a_cropped_sum_errs_as_samples_do_where_noise_is_small():
    sizes = {"tau": 3, "bound": 3, "universe": 60_000, "cells": 10_000}
    model = pp.plan("cropped-sum", **sizes, epsilon=60, intrusions=2).model(2)
    for share in (0.2, 0.5, 0.8):
        sampled = np.sqrt(share * (1 - share) / 10_000 * 50_000 / 59_999)
        assert model.deviation(share * 180_000) == pytest.approx(180_000 * sampled, rel=0.05)


def check_scores(plan, epoch, counted):
    """Exact expectations for each state that is told right, and variances below the plan's."""
    votes, scores = plan.votes(epoch), plan.table.scores[epoch]
    noise = noise_after(plan.law, epoch)
    low, high = plan.range_of_states
    for state in range(low, high + 1):
        shown = scores[(np.arange(plan.law.modulus) + state) % plan.law.modulus]
        mean = float(noise @ shown)
        off = (mean - votes.absent) / votes.contrast - counted(state)
        assert abs(off) <= 0.5 / votes.contrast
        assert plan.cells * votes.bias <= np.sqrt(plan.cells * votes.variance) / 60
        assert float(noise @ (shown - mean) ** 2) <= votes.variance * (1 + 1e-9)
    assert plan.sensitivity(epoch) == np.ptp(scores)


@pytest.mark.long
@pytest.mark.parametrize(("least", "bound", "gain"), [(5, 8, 1.4), (10, 50, 1.6), (100, 500, 3)])
def test_a_hard_threshold_errs_less_than_a_flat_law(least, bound, gain):
    plan = pp.plan("threshold", threshold=least, bound=bound, universe=10**6, **HARD)
    histogram = pp.Incidence(universe=10**6, bound=bound, epsilon=1)
    answer = histogram.release(at_least=least).at_least(least)
    margin = (answer.high - answer.low) / 2 if answer.low else answer.high - answer.value
    assert gain * plan.absolute_margin(0.95) < margin


@pytest.mark.parametrize("epsilon", [0.3, 1])
@pytest.mark.parametrize(("least", "bound"), [(3, 10), (10, 50), (100, 500)])
def test_a_shaped_law_is_near_the_best_that_there_can_be(least, bound, epsilon):
    sizes = {"threshold": least, "bound": bound, "universe": 10**6, "hard": True}
    plan = pp.plan("threshold", epsilon=epsilon, **sizes)
    shape, spent = plan.shape, float(plan.split.budget.state)
    assert 1 <= shape.price(spent) / shape.price_bound(spent) < 1.35


@pytest.mark.long
def test_what_was_searched_for_stands_in_the_front_of_a_state(monkeypatch):
    busy = pp.ThresholdCount(threshold=4, bound=20, universe=100, **HARD)
    assert str(busy.plan.law) in busy.plan.searched_law
    assert busy.plan.searched_law.encode() in busy.state()
    counted = pp.CroppedSum(tau=4, bound=5, universe=100, epsilon=9, intrusions=2)
    assert counted.plan.searched_law.startswith("block ")
    assert counted.plan.searched_law.encode() in counted.state()
    other = pp.ThresholdCount(threshold=4, bound=20, universe=100, **HARD)
    monkeypatch.setattr(type(busy.plan), "searched_law", "another law")
    with pytest.raises(pp.InputError, match="with another law"):
        other.resume(busy.state().replace(b"another law", b"another one"))


@pytest.mark.long
def test_a_plan_seen_before_takes_no_search():
    sizes = {"threshold": 4, "bound": 20, "universe": 100, **HARD}
    assert pp.plan("threshold", **sizes) is pp.plan("threshold", **sizes)


def test_a_hard_threshold_says_what_a_soft_one_costs():
    plan = pp.plan("threshold", threshold=100, bound=500, universe=10**6, **HARD)
    assert plan.remarks[0].startswith("it errs 2.1 times as much as without hard")
    assert 10 < plan.growth < 1_000


def test_a_hard_threshold_without_a_bound_reaches_as_far_as_it_can():
    assert pp.plan("threshold", threshold=3, universe=100, **HARD).bound == 192
    with pytest.raises(pp.PlanError, match="soft threshold, which has no such limit"):
        pp.plan("threshold", threshold=5_000, universe=100, **HARD)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bound": 4_096}, "may be at most 4,095; lower it, or leave out hard="),
        ({"threshold": 1}, "for who came at all, count distinct users"),
        ({"cells": 10, "memory": 10}, "cells= or memory="),
        ({"epsilon": "1e-6"}, "epsilon"),
        ({"hard": 2}, "hard"),
    ],
)
def test_hard_thresholds_that_cannot_be(wrong, message):
    sizes = {"threshold": 4, "bound": 10, "universe": 100, **HARD}
    with pytest.raises(pp.PlanError, match=message):
        pp.ThresholdCount(**{**sizes, **wrong})
