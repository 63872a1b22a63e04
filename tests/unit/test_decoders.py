"""What the models predict is what estimates do, by exact enumeration or by simulation."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.statistics.density.decoder import DensityModel
from panprivacy.tables.decoders.intervals import (
    _first,
    discrete_laplace_variance,
    margin_beside,
    noise_quantile,
    noise_quantiles,
    score_interval,
)
from panprivacy.tables.decoders.separate import SeparateModel

CONFIDENCES = [0.5, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6]

# Output noise


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 0.00125, 0.002, 0.05, 0.5, 1, 20, 300])
def test_the_variance_of_discrete_laplace_noise_is_its_second_moment(scale):
    k = np.arange(-20_000, 20_001)
    weights = np.exp(-np.abs(k) / scale)
    assert discrete_laplace_variance(scale) == pytest.approx((k**2 * weights).sum() / weights.sum())


def test_noise_of_a_very_large_scale_is_that_of_laplace():
    for scale in (1e7, 1e9, 1e100):
        assert discrete_laplace_variance(scale) == pytest.approx(2 * scale**2)


def tail(x, output_share):
    """`P(|X| > x)` for a normal plus a Laplace variable of total variance 1, by Simpson's rule."""
    deviation, scale = math.sqrt(1 - output_share), math.sqrt(output_share / 2)
    laplace = np.linspace(0, 50 * scale, 8_001)
    beyond = [
        math.erfc((x - y) / deviation / math.sqrt(2))
        + math.erfc((x + y) / deviation / math.sqrt(2))
        for y in laplace
    ]
    values = np.exp(-laplace / scale) / scale * beyond / 2
    weights = np.array([1, *[4, 2] * 3_999, 4, 1]) * laplace[1] / 3
    return float(weights @ values)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("output_share", [0.001, 0.5, 0.999])
@pytest.mark.parametrize("bias", [0, 0.1, 0.5, 1.2, 4])
def test_an_interval_beside_a_bias_misses_as_seldom_as_it_says(confidence, output_share, bias):
    """The bias is on one side: there all of it is used up, and on the other side twice as much."""
    reach = margin_beside(2 * bias, 2, confidence) * noise_quantile(confidence, output_share)
    missed = (tail(reach, output_share) + tail(reach + 2 * bias, output_share)) / 2
    assert 0.6 * (1 - confidence) < missed < 1.005 * (1 - confidence)


def test_without_a_bias_an_interval_needs_the_quantile_of_both_sides():
    assert margin_beside(0, 1, 0.95) == pytest.approx(1)
    assert margin_beside(0, 0, 0.95) == pytest.approx(1)
    assert margin_beside(9, 0, 0.95) == pytest.approx(1.6449 / 1.96, rel=1e-4)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("output_share", [0.02, 0.1, 0.5, 0.9, 0.99])
def test_the_quantile_is_that_of_the_convolution(confidence, output_share):
    quantile = noise_quantile(confidence, output_share)
    assert tail(quantile, output_share) == pytest.approx(1 - confidence, rel=1e-6)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_a_share_of_output_noise_below_a_hundredth_hardly_shows(confidence):
    quantile = noise_quantile(confidence, 0.0099)
    assert quantile == noise_quantile(confidence, 0)
    assert tail(quantile, 0.0099) == pytest.approx(1 - confidence, rel=0.01)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_output_noise_alone_has_the_quantile_of_laplace(confidence):
    expected = -math.log(1 - confidence) / math.sqrt(2)
    assert noise_quantile(confidence, 1) == pytest.approx(expected)


@given(st.floats(0.01, 0.9999), st.floats(0, 1))
def test_more_confidence_needs_a_wider_interval(confidence, output_share):
    wider = noise_quantile((1 + confidence) / 2, output_share)
    assert 0 < noise_quantile(confidence, output_share) < wider


def test_the_largest_confidence_below_1_has_a_quantile():
    assert noise_quantile(math.nextafter(1, 0), 0.5) > 8


# Density


def density_law(universe, cells, contrast, present):
    """The exact law of the number of ones, over all samples and bits, without output noise."""
    law = np.zeros(cells + 1)
    samples = list(combinations(range(universe), cells))
    for sample, bits in product(samples, product((0, 1), repeat=cells)):
        ones = [(1 + contrast if user < present else 1 - contrast) / 2 for user in sample]
        chances = [one if bit else 1 - one for one, bit in zip(ones, bits, strict=True)]
        law[sum(bits)] += math.prod(chances) / len(samples)
    return law


@pytest.mark.parametrize(("universe", "cells"), [(1, 1), (4, 4), (6, 3), (6, 1), (7, 6)])
@pytest.mark.parametrize("contrast", [0.1, 0.6, 1])
def test_the_deviation_of_a_density_is_exact(universe, cells, contrast):
    model, ones = DensityModel(universe, cells, contrast, 2.5), np.arange(cells + 1)
    unbiased = (ones / cells - (1 - contrast) / 2) / contrast
    for present in range(universe + 1):
        law, share = density_law(universe, cells, contrast, present), present / universe
        variance = law @ (unbiased - share) ** 2 + 2.5 / (contrast * cells) ** 2
        assert law @ unbiased == pytest.approx(share)
        assert model.deviation(share) == pytest.approx(math.sqrt(variance))
        output = 2.5 / (contrast * cells) ** 2 / variance
        assert model.output_share(share) == pytest.approx(output)


@given(st.integers(1, 10**6), st.floats(0.01, 1), st.floats(0, 1))
def test_a_density_is_read_from_the_expected_number_of_ones(cells, contrast, share):
    ones = cells * (share * (1 + contrast) + (1 - share) * (1 - contrast)) / 2
    model = DensityModel(10**6, cells, contrast, 1.0)
    assert model.estimate([ones]) == pytest.approx(share, abs=1e-9)


@given(st.floats(-1e12, 1e12))
def test_a_density_lies_between_0_and_1(ones):
    assert 0 <= DensityModel(1_000, 100, 0.5, 1.0).estimate([ones]) <= 1


@given(st.integers(-50, 150))
def test_a_density_grows_with_the_number_of_ones(ones):
    model = DensityModel(1_000, 100, 0.5, 1.0)
    assert model.estimate([ones]) <= model.estimate([ones + 1])


DENSITIES = [
    DensityModel(1, 1, 0.4, 3.0),
    DensityModel(100, 100, 0.4, 3.0),
    DensityModel(10_000, 400, 0.9, 0.0),
    DensityModel(10**12, 10**6, 0.05, 1e4),
]


@given(st.sampled_from(DENSITIES), st.integers(0, 100), st.floats(0.5, 0.999))
def test_the_interval_of_a_density_holds_the_estimate_and_grows_with_confidence(
    model, percent, confidence
):
    estimate = percent / 100
    low, high = model.interval(estimate, confidence)
    lower, higher = model.interval(estimate, (1 + confidence) / 2)
    assert 0 <= lower <= low <= estimate <= high <= higher <= 1


@pytest.mark.long
@given(st.sampled_from(DENSITIES), st.integers(0, 99))
def test_the_ends_of_the_interval_of_a_density_grow_with_the_estimate(model, percent):
    low, high = model.interval(percent / 100, 0.95)
    low_of_more, high_of_more = model.interval((percent + 1) / 100, 0.95)
    assert low <= low_of_more
    assert high <= high_of_more


# Levels


class Asked:
    """A model whose interval reaches 3 and 4 from its estimate; it notes what it is asked."""

    def __init__(self):
        self.levels = []

    def answer(self, ones, confidence):
        self.levels.append(confidence)
        value = float(np.sum(ones))
        return value, value - 3.0, value + 4.0

    def deviation(self, truth):
        return np.full_like(np.asarray(truth, float), 2.0)


def test_distances_to_the_ends_of_intervals_of_several_tables_add_up_like_deviations():
    each = Asked()
    value, low, high = SeparateModel(each, 4).answer([5, 6, 7, 8], 0.95)
    assert (value, low, high) == (26.0, 26.0 - 2 * 3.0, 26.0 + 2 * 4.0)
    assert each.levels == [0.95] * 4
    assert SeparateModel(each, 4).deviation(10.0) == 2.0 * 2.0


def test_no_interval_of_several_tables_begins_below_nobody():
    _, low, _ = SeparateModel(Asked(), 4).answer([0, 0, 1, 0], 0.95)
    assert low == 0.0


def test_what_collisions_hide_in_several_tables_adds_up_as_it_is():
    each = Asked()
    value, low, high = SeparateModel(each, 4, hides=True).answer([5, 6, 7, 8], 0.96)
    assert (value, low, high) == (26.0, 26.0 - 4 * 3.0, 26.0 + 4 * 4.0)
    assert each.levels == pytest.approx([0.99] * 4)  # so that all four hold at once
    assert SeparateModel(each, 4, hides=True).deviation(10.0) == 4 * 2.0


# Searches


def beyond(edge, start):
    return lambda points: np.abs(points - start) >= abs(edge - start)


@pytest.mark.parametrize(
    ("start", "step", "end", "edge"),
    [(0, 1, 100, 37.123), (50, -1, 0, 12.3), (0, 0.001, 1e6, 4e5), (0, 0, 10, 3), (5, 9, 6, 5.9)],
)
def test_the_first_value_that_meets_a_condition_is_found(start, step, end, edge):
    """Within a hundred-thousandth: each of four grids is 64 times finer than the one before."""
    found = _first(beyond(edge, start), start, step, end)
    assert 0 <= abs(found - start) - abs(edge - start) <= 1e-5 * abs(end - start) / 4


def test_a_condition_that_nothing_meets_has_no_first_value_and_the_end_is_looked_at():
    assert _first(beyond(11, 0), 0, 1, 10) is None
    assert _first(beyond(10, 0), 0, 1, 10) == pytest.approx(10)
    assert _first(beyond(0, 5), 5, 1, 5) is None
    assert _first(beyond(0, 0), 0, 1, 10) == pytest.approx(0, abs=1e-6)


def test_an_end_that_is_near_is_searched_for_as_finely_as_its_step():
    """The first grid begins at an eighth of the step, and no further than half of the way."""
    seen = []
    _first(lambda points: seen.append(points) or points < -1, 0, 8, 100)
    _first(lambda points: seen.append(points) or points < -1, 0, 800, 100)
    _first(lambda points: seen.append(points) or points < -1, 0, 0, 100)
    for points, least in zip(seen, (1, 50, 1e-10), strict=True):
        assert points[:2] == pytest.approx([0, least])
        assert points[-2:] == pytest.approx([100, 100])
        assert len(points) == 66
        ratios = points[2:-1] / points[1:-2]
        assert ratios == pytest.approx(np.full(63, (100 / least) ** (1 / 63)))


SCORE = np.array([3.0, 2.0, 0.5, -0.5, -2.0, -3.0])
TRUTHS = np.arange(6.0)


@pytest.mark.parametrize(
    ("score", "reach", "ends"),
    [
        (SCORE, 1, (1 + 2 / 3, 3 + 1 / 3)),
        (SCORE, 2, (1, 4)),
        (SCORE, 2.5, (0.5, 4.5)),
        (SCORE, 4, (0, math.inf)),
        (-SCORE, 1, (0, math.inf)),  # whose ends are no larger than 1
        (SCORE + 10, 1, (2.5, 2.5)),
        (SCORE - 10, 1, (0, 2.5)),
        (np.array([-5.0, -5, 5, 0.5, 5, 5]), 1, (0, 3.9)),
    ],
)
def test_ends_are_where_the_score_becomes_surprising(score, reach, ends):
    """Over its reach the score is straight between two candidates."""
    value, low, high = score_interval(2.5, TRUTHS, score.copy(), np.full(6, float(reach)))
    assert value == 2.5
    assert low <= 2.5 <= high
    surprise = np.array(score) / reach
    surprise[0] = max(surprise[0], 0)
    fine = np.linspace(0, 5, 50_001)
    within = fine[np.abs(np.interp(fine, TRUTHS, surprise)) <= 1]
    expected = (2.5, 2.5) if not len(within) else (min(within[0], 2.5), max(within[-1], 2.5))
    assert low == pytest.approx(expected[0], abs=1e-3)
    assert high == (math.inf if expected[1] == 5 else pytest.approx(expected[1], abs=1e-3))


def test_quantiles_of_many_shares_are_those_of_each():
    shares = np.linspace(0, 1, 21)
    exact = [noise_quantile(0.95, share) for share in shares]
    assert noise_quantiles(0.95, shares) == pytest.approx(np.array(exact))
    assert noise_quantiles(0.95, np.array([0.525])) == pytest.approx((exact[10] + exact[11]) / 2)


def test_a_share_of_a_hundredth_is_the_least_that_is_read_as_one():
    normal = noise_quantile(0.999, 0.0)
    assert noise_quantile(0.999, 0.01) != normal == noise_quantile(0.999, math.nextafter(0.01, 0))
