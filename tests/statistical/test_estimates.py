"""The mean of `estimate` is the truth, where `value` is cut; and sums have intervals that hold.

Coins have seeds, so that an assertion on a correct program holds always; with others it would fail
once in a million runs. Power: a mean that is off by a quarter of a standard error is
found all but once in a million; what cutting does to a mean, 0.4 standard errors, is shown to be.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.devices.federated import CountNonZero
from panprivacy.papers import local
from panprivacy.testing import SeededCoins

from .checks import accepted, centred, happens, rejected

pytestmark = pytest.mark.long

RUNS = 1_600
WIDE = {"expected": (1_000, 100_000), "memory": 4_096}
DISTINCT = partial(pp.DistinctCount, **WIDE, epsilon=1)
CUT = {
    "an empty distinct count": (DISTINCT, (0, 1), 0),
    "a distinct count of few": (DISTINCT, (20, 1), 20),
    "an empty net count": (
        partial(pp.DistinctCount, expected=2_000, memory=1_024, deletions=True, bound=2, epsilon=2),
        (0, 1),
        0,
    ),
    "a full density": (partial(pp.Density, universe=2_000, epsilon=0.5), (2_000, 1), 1),
    "a threshold that few reach": (
        partial(pp.ThresholdCount, threshold=5, bound=10, universe=5_000, epsilon=1),
        (37, 10),
        37,
    ),
    "a cropped sum of few": (
        partial(pp.CroppedSum, tau=4, universe=3_000, epsilon=1), (5, 4), 20,
    ),
    "an empty running count of users": (
        partial(pp.RunningDistinct, horizon=8, expected=500, memory=512, epsilon=2), (0, 1), 0,
    ),
}  # fmt: skip


def answers(make, users, delta=1, runs=RUNS):
    """Releases of so many users who all have the same sum."""
    found = []
    for seed in range(runs):
        statistic = make(coins=SeededCoins(seed))
        deltas = None if delta == 1 else np.full(users, delta)
        statistic.update(np.arange(users), deltas)
        found.append(statistic.release())
    return found


@cache
def answers_of(case):
    make, users, _ = CUT[case]
    return answers(make, *users)


def less_bias(found, truth):
    """Errors of estimates, moved towards 0 by their bias, whose sign is not known."""
    errors = np.array([one.estimate for one in found]) - truth
    bias = np.mean([one.bias for one in found])
    return errors - np.sign(errors.mean()) * min(bias, abs(errors.mean()))


@pytest.mark.parametrize("case", CUT)
def test_the_mean_of_estimates_is_the_truth_where_answers_are_cut(case):
    found, truth = answers_of(case), CUT[case][2]
    errors, values = less_bias(found, truth), np.array([one.value for one in found])
    assert accepted(centred(errors))
    assert rejected(centred(errors + np.mean([one.standard_error for one in found]) / 4))
    assert rejected(centred(values - truth))


@pytest.mark.parametrize("case", CUT)
def test_standard_errors_are_those_of_estimates(case):
    """Six deviations of a spread are 11 %: a law that is off by 30 % is found."""
    found = answers_of(case)
    spread = np.std([one.estimate for one in found])
    told = np.sqrt(np.mean([one.standard_error**2 for one in found]))
    assert 0.85 * told <= spread <= 1.15 * told


def test_levels_of_a_cropped_sum_are_off_by_no_more_than_their_bias():
    make = partial(pp.CroppedSum, tau=3, expected=(1_000, 100_000), memory=8_192, epsilon=2)
    for users in (0, 900):
        assert accepted(centred(less_bias(answers(make, users, 3), 3 * users)))


def test_means_of_devices_and_of_reports_are_the_truth():
    kind, coins = CountNonZero(epsilon_0=1), SeededCoins(1)
    events = np.zeros(50, np.int64)
    counted = [
        kind.release(kind.noised(events, coins).sum(axis=0).tolist(), 50, 0.95, 1.0).only()
        for _ in range(RUNS)
    ]
    randomiser = local.RandomisedResponse(4, epsilon=1)
    reported = [
        randomiser.estimate(randomiser.randomise([1] * 60, coins=coins)).of(3) for _ in range(RUNS)
    ]
    for found in counted, reported:
        estimates = np.array([one.estimate for one in found])
        assert accepted(centred(estimates))
        assert rejected(centred(np.array([one.value for one in found])))
        assert 0.85 <= estimates.std() / np.mean([one.standard_error for one in found]) <= 1.15


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_totals_of_groups_hold_the_truth_as_often_as_they_say(confidence):
    """Power: intervals that hold 5 % less are found; sums of cut answers hold next to nothing."""
    runs, groups, truth = 400, 25, 25 * 20
    pool = answers_of("a distinct count of few")
    rng = np.random.default_rng(7)
    held = cut = 0
    for _ in range(runs):
        chosen = rng.choice(len(pool), groups, replace=False)
        each = pp.Answers(pool[at].under(group=int(at)) for at in chosen)
        found = each.total(confidence=confidence)
        held += found.low <= truth <= found.high
        cut += found.low <= sum(one.value for one in each.values()) <= found.high
    assert accepted(happens(held, runs, confidence - 0.02, 1.0))
    assert held / runs <= confidence + 0.04
    assert rejected(happens(cut, runs, confidence - 0.02, 1.0))
