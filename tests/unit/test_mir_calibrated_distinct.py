"""Users in a state other than 0, each with a calibrated counter: what is read, and how far off."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedDistinctCount
from panprivacy.papers.published.mir_calibrated_distinct import NonzeroModel
from panprivacy.testing import SeededCoins


@pytest.fixture
def exact():
    """One with so much privacy loss that no counter has noise."""
    with pytest.warns(pp.WeakEpsilonWarning):
        return CalibratedDistinctCount(universe=4, modulus=5, epsilon=80, coins=SeededCoins(2))


def test_users_whose_state_is_not_0_modulo_m_are_counted(exact):
    assert exact.release().value == pytest.approx(0, abs=0.1)


def test_states_are_taken_modulo_m_and_may_come_back_to_0(exact):
    exact.update([0, 1, 1, 2, 3], [-3, 2, -2, 5, 2**62])
    assert exact.release().value == pytest.approx(2, abs=0.1)


def test_announced_noise_is_noise_once_more():
    once, twice = (
        CalibratedDistinctCount(universe=9, modulus=5, epsilon=3, intrusions=1).plan.model(epoch)
        for epoch in (0, 1)
    )
    law = CalibratedDistinctCount(universe=9, modulus=5, epsilon=3, intrusions=1).plan.law
    both = np.fft.ifft(law.spectrum() ** 2).real
    assert once.absent == pytest.approx(1 - law.probabilities()[0])
    assert (twice.absent, twice.present) == pytest.approx((1 - both[0], 1 - both[1]))


def test_what_is_told_of_the_truth_is_how_many_states_are_not_0():
    plan = CalibratedDistinctCount(universe=9, modulus=5, epsilon=1).plan
    states = np.array([0, 3, -2, 0, 1])
    assert plan.truth(plan.name, states, states) == 3
    assert plan.range_of_states == (-4, 4)
    assert plan.largest == plan.cells == 9


MODEL = NonzeroModel(cells=100, absent=0.2, present=0.8, noise_variance=4.0)


def test_an_estimate_undoes_the_noise_of_counters_and_is_cut_to_the_universe():
    for users in (0, 37, 100):
        assert MODEL.estimate([0.8 * users, 0.2 * (100 - users)]) == pytest.approx(users)
    assert MODEL.estimate([5]) == 0
    assert MODEL.estimate([95]) == 100


def test_the_deviation_is_that_of_counters_and_of_noise_on_their_number():
    variance = 100 * 0.2 * 0.8 + 4
    assert MODEL.deviation(30) == pytest.approx(variance**0.5 / 0.6)
    assert MODEL.output_share(30) == pytest.approx(4 / variance)


def test_an_interval_is_within_the_universe_and_wider_the_surer():
    for estimate in (0, 50, 100):
        low, high = MODEL.interval(estimate, 0.9)
        less, more = MODEL.interval(estimate, 0.999)
        assert 0 <= less <= low <= estimate <= high <= more <= 100
    assert MODEL.interval(50, 0.9)[0] > MODEL.interval(50, 0.999)[0]


def test_so_little_epsilon_that_nothing_is_told_is_refused():
    with pytest.raises(pp.PlanError):
        CalibratedDistinctCount(universe=9, modulus=5, epsilon=1e-12)
