"""Distinct counts: what their levels say of how many users came."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

import panprivacy as pp
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.statistics.distinct.plan import DistinctPlan, plan_distinct
from panprivacy.tables.addressing import Levelled
from panprivacy.tables.decoders.intervals import (
    confidence_interval,
    noise_quantile,
)
from panprivacy.tables.planning.bits import best_split
from panprivacy.testing import SeededCoins
from tests.unit.test_planning import KIB, ONE


def bit_levels(levels, cells_per_level, contrast, noise_variance):
    """The model of presence bits."""
    full = (1 + contrast) / 2
    return LevelModel(levels, cells_per_level, contrast, full, 1, noise_variance)


LEVELS = [
    bit_levels(1, 512, 0.6, 50.0),
    bit_levels(4, 256, 0.5, 10.0),
    bit_levels(8, 65_536, 0.44, 800.0),
    bit_levels(20, 1_000, 0.4, 0.0),
]


def expected_ones(model, users):
    """The expected number of ones of each level, from first principles."""
    level = np.arange(model.levels)
    share = np.where(level < model.levels - 1, 0.5 ** (level + 1), 0.5 ** (model.levels - 1))
    empty = (1 - share / model.cells_per_level) ** users
    return model.cells_per_level * (1 + model.contrast * (1 - 2 * empty)) / 2


@pytest.mark.parametrize(
    ("model", "users"),
    [
        (model, users)
        for model, most in zip(LEVELS, [1_000, 1_000, 10**7, 10**8], strict=True)
        for users in (0, 10, 100, 1_000, 100_000, 10**7)
        if users <= most
    ],
)
def test_the_estimate_is_read_from_the_expected_counts(model, users):
    estimate = model.estimate(expected_ones(model, users))
    assert abs(estimate - users) <= 0.1 * float(model.deviation(users))


@pytest.mark.parametrize("model", LEVELS)
def test_the_estimate_grows_with_the_counts(model):
    steps = np.linspace(0.1, 0.9, 30) * model.cells_per_level
    estimates = [model.estimate(np.full(model.levels, ones)) for ones in steps]
    assert estimates == sorted(estimates)
    assert estimates[0] == 0
    assert estimates[-1] > estimates[10]


def simulated_counts(model, users, runs, name):
    """Noised numbers of ones of each level, from users who are hashed one by one."""
    draw, coins = np.random.default_rng(name), SeededCoins(name)
    level = np.minimum(draw.geometric(0.5, (runs, users)), model.levels) - 1
    cell = draw.integers(0, model.cells_per_level, (runs, users))
    occupied = np.zeros((runs, model.levels, model.cells_per_level), bool)
    occupied[np.arange(runs)[:, None], level, cell] = True
    present = draw.random(occupied.shape) < (1 + np.where(occupied, 1, -1) * model.contrast) / 2
    scale = Fraction(math.sqrt(model.noise_variance / 2)).limit_denominator(100)
    noise = coins.discrete_laplace(scale, runs * model.levels).reshape(runs, -1)
    return present.sum(axis=2) + noise


SIMULATED = [(bit_levels(1, 512, 0.95, 2.0), 300), (bit_levels(4, 256, 0.5, 50.0), 1_000)]
"""In the first, bits and noise matter no more than which users share a cell."""


@pytest.mark.long
@pytest.mark.parametrize(("model", "users"), SIMULATED)
def test_estimates_stray_as_predicted(model, users):
    """False alarm 1e-6: 1,000 runs know a deviation to within 11 % (4.9 times 2.2 %).

    Power: what strays by 30 % more or less lies beyond that.
    """
    counts = simulated_counts(model, users, runs=1_000, name=1)
    errors = np.array([model.estimate(ones) for ones in counts]) - users
    predicted = float(model.deviation(users))
    assert np.std(errors) == pytest.approx(predicted, rel=0.11)
    assert np.std(1.3 * errors) != pytest.approx(predicted, rel=0.11)
    assert abs(np.mean(errors)) < 0.25 * predicted


@pytest.mark.parametrize(("model", "users"), SIMULATED)
def test_intervals_cover_the_truth_as_often_as_they_say(model, users):
    """False alarm 1e-6: of 500 intervals of 80 %, 400 cover, give or take 44 (4.9 deviations).

    Power: intervals that are 30 % shorter cover less often than that.
    """
    counts = simulated_counts(model, users, runs=500, name=2)
    estimates, low, high = np.transpose([model.answer(ones, 0.8) for ones in counts])

    def covering(width):
        below, above = width * (estimates - low), width * (high - estimates)
        return ((estimates - below <= users) & (users <= estimates + above)).sum()

    assert abs(covering(1) - 400) < 44
    assert covering(0.7) < 400 - 44


def score(model, users, ones):
    """How far the counts are from what `users` let expect, in deviations and half counts."""
    shares = np.minimum(2.0 ** -np.arange(1, model.levels + 1), 0.5)
    shares[-1] *= 2
    empty = (1 - model.decay * shares / model.cells_per_level) ** users
    mean = model.full - model.contrast * empty
    variance = model.cells_per_level * mean * (1 - mean) + model.noise_variance
    slope = -model.contrast * empty * np.log1p(-model.decay * shares / model.cells_per_level)
    slope *= model.cells_per_level
    weights = slope / variance
    spread = math.sqrt((slope * weights).sum() - users * (slope * weights).sum() ** 2)
    output = (weights**2).sum() * model.noise_variance / (slope * weights).sum()
    off = ((ones - model.cells_per_level * mean) * weights).sum()
    return off, spread, output, weights.max() / 2


@given(
    st.sampled_from(LEVELS), st.floats(0, 1), st.floats(-4, 4), st.sampled_from([0.5, 0.9, 0.99])
)
def test_the_interval_ends_where_the_counts_become_surprising(model, height, off, confidence):
    users = 10_000**height - 1
    ones = expected_ones(model, users) + off * math.sqrt(model.cells_per_level) / 2
    value, low, high = model.answer(ones, confidence)
    assert 0 <= low <= value <= high
    for end in (low, high):
        if not 1 < end < 0.9 * model.limit:
            continue
        distance, spread, output, half = score(model, end, ones)
        reach = noise_quantile(confidence, output) * spread + half
        assert abs(distance) == pytest.approx(reach, rel=5e-3)


def test_the_interval_does_not_rest_on_the_estimate():
    """Beyond what its cells tell, the estimate is anything, and the truth is held all the same."""
    model = bit_levels(1, 512, 0.5, 20.0)
    for users in (2_000, 5_000, 20_000, 10**6, 10**9):
        _, low, high = model.answer(expected_ones(model, users) + 10, 0.95)
        assert low < 2_000
        assert high == math.inf


@pytest.mark.parametrize("model", LEVELS)
def test_output_noise_has_a_share_of_the_variance(model):
    quiet = bit_levels(model.levels, model.cells_per_level, model.contrast, 0.0)
    for users in (0, 100, 10_000):
        assert quiet.output_share(users) == 0
        assert 0 <= model.output_share(users) < 1
        assert model.deviation(users) >= quiet.deviation(users)


def test_more_output_noise_has_a_larger_share():
    shares = [bit_levels(4, 256, 0.5, noise).output_share(100) for noise in (1, 10, 100, 1_000)]
    assert shares == sorted(shares)
    assert shares[0] < 0.05
    assert shares[-1] > 0.9


def test_a_single_cell_has_a_finite_answer():
    model = bit_levels(1, 1, 0.5, 1.0)
    for ones in (0, 1, 5):
        estimate, low, high = model.answer([ones], 0.95)
        assert 0 <= low <= estimate <= high
        assert math.isfinite(estimate)


def test_an_answer_without_noise_has_an_interval():
    """A deviation may be 0 at the estimate; the interval is then the estimate alone, or nearly."""
    certain = SimpleNamespace(
        output_share=lambda _: 0.0, deviation=lambda truth: 0.0 * np.asarray(truth, float)
    )
    low, high = confidence_interval(certain, 1.0, 0.95, limit=1e6, beyond=math.inf)
    assert low <= 1 <= high
    assert high - low < 1e-3


@pytest.mark.parametrize("model", LEVELS)
def test_full_levels_bound_the_number_of_users_from_below_only(model):
    value, low, high = model.answer(np.full(model.levels, model.cells_per_level), 0.95)
    assert high == math.inf
    assert 500 < low < value <= model.limit


@pytest.mark.parametrize("model", LEVELS)
def test_empty_levels_bound_the_number_of_users_from_above(model):
    value, low, high = model.answer(np.zeros(model.levels), 0.95)
    assert value == low == 0
    assert 0 <= high < 2_000


@pytest.mark.parametrize(
    ("users", "error"), [(10_000, 0.055), (279_379, 0.009), (1_000_000, 0.01), (10_000_000, 0.01)]
)
def test_64_kib_and_epsilon_1_are_good_for_ten_thousand_to_ten_million_users(users, error):
    assert plan_distinct((10_000, 10_000_000), 64 * KIB, ONE).relative_error(users) <= error


@pytest.mark.long
def test_a_plan_of_a_large_bound_takes_about_as_long_as_one_of_a_small_bound():
    """Neither transforms nor whole laws are made: their time would grow with the bound."""
    small, large = (_planning_seconds(bound) for bound in (1_000, 200_000))
    assert large < 4 * small


def _planning_seconds(bound):
    """Seconds of the processor that one plan takes."""
    start = time.process_time()
    pp.plan("distinct", deletions=True, bound=bound, signed=True, epsilon="7/8")
    return time.process_time() - start


def test_a_plan_takes_no_more_memory_than_it_needs():
    """3,000 users are counted better in 8 KiB than in all of 64, where more noise is summed."""
    plan = plan_distinct((3_000, 3_000), 64 * KIB, ONE)
    larger = [
        DistinctPlan((3_000, 3_000), levels, 8 * 64 * KIB // levels, ONE, split)
        for levels in (1, 2, 4, 8)
        for split in [best_split(ONE, 8 * 64 * KIB // levels)]
    ]
    assert plan.table.nbytes <= 8 * KIB
    assert plan.relative_error(3_000) < min(full.relative_error(3_000) for full in larger)


@pytest.mark.parametrize("memory", [1, 10, 1_000, 64 * KIB])
@pytest.mark.parametrize("expected", [(1, 1), (100, 100), (1, 10**9), (10**6, 10**7)])
def test_a_plan_stays_within_its_memory(memory, expected):
    assert 1 <= plan_distinct(expected, memory, ONE).table.nbytes <= memory


@pytest.mark.long
@pytest.mark.parametrize("expected", [(1_000, 100_000), (10_000, 10_000_000), (1_000, 10**9)])
def test_a_plan_for_a_range_is_nowhere_far_worse_than_a_plan_for_that_number(expected):
    plan = plan_distinct(expected, 64 * KIB, ONE)
    for users in np.geomspace(*expected, 7).round().astype(int).tolist():
        assert plan.relative_error(users) <= 3.5 * plan_distinct(
            (users, users), 64 * KIB, ONE
        ).relative_error(users)


def test_a_distinct_plan_addresses_its_levels():
    plan = plan_distinct((1_000, 10**6), 4_096, ONE)
    address = plan.address(bytes(plan.key_bytes))
    assert isinstance(address, Levelled)
    assert address.cells == plan.cells == plan.levels * plan.cells_per_level
    assert plan.groups == plan.levels > 1


@pytest.mark.parametrize("users", [0, 1, 30, 1_000, 20_000])
def test_the_estimate_is_where_the_weighted_residuals_balance(users):
    """To a thousandth of a user, and of what users there are."""
    model = bit_levels(4, 512, 0.5, 20.0)
    ones = expected_ones(model, users) + np.array([3.0, -2, 1, 0])
    found = model.estimate(ones)

    def residual(at):
        mean, variance, slope = model.moments(np.array([at]))
        return float(((ones - mean) * slope / variance).sum())

    nearest = optimize.brentq(residual, 0.0, 1e6) if residual(0.0) > 0 else 0.0
    assert found == pytest.approx(nearest, rel=1e-3, abs=1e-3)


def test_so_many_users_fill_every_cell():
    model = bit_levels(4, 512, 0.5, 20.0)
    assert model.limit == pytest.approx((math.log(512) + 10) * 512 * 8)
    assert bit_levels(1, 9, 0.5, 1.0).limit == pytest.approx((math.log(9) + 10) * 9)
    assert model.estimate(np.full(4, 1e6)) <= model.limit
