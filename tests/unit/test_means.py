"""The mean of the users that came, of a cropped sum."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.means.reading import MEAN, FirstValues

SIZES = {"tau": 5, "universe": 20_000, "bound": 40}


def plan_of(tau=5, **sizes):
    return pp.CroppedSum(**{**SIZES, "tau": tau, "epsilon": 4, **sizes}).plan


def chances(plan, scores):
    """The probability of each pair of scores of a cell, for each state; by brute force."""
    weights = plan.law.weights.astype(float)
    weights = weights / weights.sum()
    pairs = sorted({tuple(one) for one in scores.T.tolist()})
    found = np.zeros((plan.modulus, len(pairs)))
    for state in range(plan.modulus):
        shifted = np.roll(weights, state)
        for place, pair in enumerate(pairs):
            found[state, place] = shifted[(pair == scores.T).all(axis=1)].sum()
    return found, pairs


@pytest.mark.parametrize("tau", [1, 2, 5])
def test_first_values_tell_state_0_from_all_others(tau):
    plan = plan_of(tau)
    firsts = FirstValues.of(plan.law, tau)
    found, pairs = chances(plan, firsts.scores)
    second = found @ np.array([pair[1] for pair in pairs])
    assert second[0] == pytest.approx(firsts.away + firsts.gain)
    assert second[1 : plan.modulus - tau + 1] == pytest.approx(firsts.away)
    first = found @ np.array([pair[0] for pair in pairs])
    assert first[0] == pytest.approx(float(plan.counted[0]))
    assert first[tau] == pytest.approx(float(plan.counted[1]))


@pytest.mark.parametrize("tau", [1, 2, 5])
def test_all_sets_of_scores_are_within_their_chances(tau):
    plan = plan_of(tau)
    firsts = FirstValues.of(plan.law, tau)
    found, pairs = chances(plan, firsts.scores)
    ends = []
    for size in range(1, len(pairs)):
        for chosen in itertools.combinations(range(len(pairs)), size):
            sums = found[:, list(chosen)].sum(axis=1)
            ends.append((sums.min(), sums.max()))
    told = [(float(low), float(high)) for low, high in plan.also_counted]
    told += [(1 - high, 1 - low) for low, high in told]
    for low, high in ends:  # each of them is told, and nothing narrower
        assert any(abs(low - a) + abs(high - b) < 1e-9 for a, b in told)


def test_a_release_costs_what_it_may():
    plan = plan_of(tau=20, bound=100)
    first, second = plan.mean_reading().scales
    assert 1 / first + 2 / second == plan.split.budget.release
    assert second < first  # a mean rests on who came


@pytest.mark.parametrize(
    "sizes",
    [
        {"intrusions": 1, "epsilon": 9},
        {"universe": None, "expected": (1_000, 100_000)},
    ],
    ids=["intrusions", "levels"],
)
def test_what_does_not_tell_who_came_refuses_in_one_line(sizes):
    count = pp.CroppedSum(**{**SIZES, "epsilon": 4, **sizes})
    spent = count.ledger.spent
    with pytest.raises(pp.PlanError, match="ask an incidence for its mean") as caught:
        count.release(mean=True)
    assert "\n" not in str(caught.value)
    assert count.ledger.spent == spent


def test_a_mean_has_a_name_and_a_unit():
    count = pp.CroppedSum(**SIZES, epsilon=8)
    count.update(np.arange(10_000), np.full(10_000, 3))
    answer = count.release(mean=True)
    assert answer.name.question == MEAN.question
    assert answer.unit == "mean, at most 5 of each user"
    assert 2 < answer.low <= answer.value <= answer.high < 4  # 30 deviations
    assert f"{answer}".startswith(("2.", "3."))


def test_a_mean_of_nobody_says_so():
    answer = pp.CroppedSum(**SIZES, epsilon=1).release(mean=True, confidence=1 - 1e-7)
    assert answer.note == "more noise than signal: perhaps nobody came"


def test_amounts_have_a_mean():
    count = pp.CroppedSum(**SIZES, unit=60, epsilon=8)
    count.update(np.arange(10_000), np.full(10_000, 150.0))
    answer = count.release(mean=True)
    assert answer.unit == "mean in units of 60, at most 5 of each user"
    assert 2 < answer.value < 3


def test_shards_of_different_users_have_a_mean():
    shards = [pp.CroppedSum(**SIZES, epsilon=8) for _ in range(2)]
    for number, shard in enumerate(shards):
        shard.update(np.arange(number * 5_000, number * 5_000 + 5_000), np.full(5_000, 3))
    answer = pp.merge([shard.contribute(mean=True) for shard in shards])
    assert 2 < answer.value < 4  # 10 deviations


def test_shards_of_hashed_users_have_no_mean_together():
    shards = [pp.CroppedSum(tau=5, expected=5_000, bound=40, epsilon=8) for _ in range(2)]
    with pytest.raises(pp.PlanError, match="shards of hashed users have no mean together"):
        pp.merge([shard.contribute(mean=True) for shard in shards])


def test_the_loss_of_a_state_that_nobody_sees_has_room_for_a_mean():
    plan = plan_of()
    assert Fraction(0) < plan.guarantee.unseen <= plan.split.budget.release
