"""Laws of what devices report."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.devices.federated import mean
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.distributions import (
    _LOG_TAIL,
    _U,
    Distribution,
    bernoulli,
    binomial,
    discrete_gaussian,
    gaussian_sum,
    hockey_stick,
)
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise, largest_epsilon_0, worst_of_others


@pytest.mark.parametrize(
    ("count", "probability", "sure"), [(0, "1/3", 0), (5, "0", 0), (5, "1", 5)]
)
def test_a_number_of_coins_that_is_sure_is_known_without_an_error(count, probability, sure):
    law = binomial(count, Fraction(probability))
    assert (law.first, law.weights.tolist(), law.missing, law.error) == (sure, [1.0], 0.0, 0.0)


def test_discrete_gaussians_add_up_to_one_but_for_what_the_page_says():
    variance, count = Fraction(4), 10**5
    one, added = discrete_gaussian(variance * count), gaussian_sum(variance, count)
    assert added.weights == pytest.approx(one.weights)
    ripple = 5 * count * math.exp(-4 * math.pi**2)
    assert added.error - one.error == pytest.approx(ripple, rel=1e-3, abs=0)


def test_a_discrete_gaussian_allows_for_rounding_of_each_weight():
    """An exponent is at most `_LOG_TAIL`, and each of its four steps rounds."""
    law = discrete_gaussian(Fraction(100))
    rounded = 4 * _LOG_TAIL * _U * len(law.weights)
    assert law.error == pytest.approx(2 * (rounded + law.missing + 4 * _U), rel=1e-9, abs=0)
    assert rounded > law.missing


def test_tails_of_a_law_are_hardly_larger_than_they_are():
    """Half of the law of 1001 coins, but for `_slack`."""
    law = binomial(1_001, Fraction(1, 2))
    assert law.above(501) == pytest.approx(1 / 2, abs=1e-9)
    assert law.below(500) == pytest.approx(1 / 2, abs=1e-9)


TINY = Fraction(1, 10**20)


@pytest.mark.parametrize(
    ("count", "probability"),
    [(1, "1/2"), (7, "1/3"), (400, "1/3"), (10**4, "1/1000"), (10**4, "999/1000"), (10**5, "1/2")],
)
def test_a_binomial_reaches_as_far_as_bernstein_says_and_no_further(count, probability):
    """`exp(-t**2 / (2 (variance + t/3)))` is `exp(-65)`."""
    chance = Fraction(probability)
    law = binomial(count, chance)
    variance = float(count * chance * (1 - chance))
    reach = next(t for t in itertools.count() if t**2 >= 130 * (variance + t / 3))
    mode = round(count * chance)
    for end, bound in ((mode - law.first, mode), (law.last - mode, count - mode)):
        assert end == bound or reach <= end <= reach + 2
    whole = (law.first, law.last) == (0, count)
    assert law.missing == (0 if whole else 2 * math.exp(-65))
    steps = 6 * 2.0**-52 * len(law.weights)
    assert law.error == pytest.approx(2 * (steps + law.missing + 4 * 2.0**-52), rel=1e-9, abs=0)


def test_what_a_binomial_leaves_out_is_missing():
    """Exactly, with whole numbers."""
    law = binomial(400, Fraction(1, 400))
    outside = sum(
        math.comb(400, number) * Fraction(1, 400) ** number * Fraction(399, 400) ** (400 - number)
        for number in range(401)
        if not law.first <= number <= law.last
    )
    assert 0 < outside <= law.missing


@pytest.mark.parametrize("variance", ["1/100", "1", "9", "10000"])
def test_a_gaussian_reaches_as_far_as_its_tail_and_no_further(variance):
    law = discrete_gaussian(Fraction(variance))
    least = math.sqrt(130 * float(Fraction(variance)))
    assert law.last == -law.first
    assert least + 1 <= law.last <= least + 2
    assert law.missing == 2 * math.exp(-65)


def test_a_sum_has_the_errors_of_both_and_those_of_its_terms():
    one, other = binomial(5, Fraction(1, 3)), binomial(9, Fraction(1, 3))
    added = one + other
    rounded = (min(len(one.weights), len(other.weights)) + 4) * 2.0**-52
    assert added.error == pytest.approx(one.error + other.error + rounded, rel=1e-12, abs=0)
    assert added.missing == pytest.approx(3e-28, rel=1e-9, abs=0)
    far = Distribution(3, np.ones(1), 1e-9, 1e-3) + Distribution(-5, np.ones(1), 2e-9, 2e-3)
    assert (far.first, far.last, far.weights.tolist()) == (-2, -2, [1.0])
    assert far.missing == pytest.approx(3e-9, rel=1e-9, abs=0)
    assert far.error == pytest.approx(3e-3, rel=1e-9, abs=0)


def test_ends_of_a_sum_that_hold_nearly_nothing_are_left_out():
    kept = np.array([2e-28, 0.5, 0.5, 2e-28])
    assert len((Distribution(0, kept) + Distribution(0, np.ones(1))).weights) == 4
    cut = np.array([1e-29, 1e-29, 0.5, 0.5, 1e-29])
    trimmed = Distribution(0, cut) + Distribution(0, np.ones(1))
    assert (trimmed.first, trimmed.last) == (2, 3)
    assert trimmed.missing >= 3e-29


@pytest.mark.parametrize("count", range(9))
def test_a_law_times_a_number_is_added_to_itself_so_often(count):
    summed, repeated = discrete_gaussian(Fraction(1)).times(count), bernoulli(Fraction(0))
    for _ in range(count):
        repeated = repeated + discrete_gaussian(Fraction(1))
    assert summed.variance == pytest.approx(repeated.variance)
    assert summed.above(3) == pytest.approx(repeated.above(3))


def test_a_coin_is_0_or_1():
    law = bernoulli(Fraction(1, 3))
    assert (law.first, law.weights.tolist()) == (0, [pytest.approx(2 / 3), pytest.approx(1 / 3)])
    assert (law.missing, law.error) == (0, 2.0**-52)
    moved = binomial(400, Fraction(1, 400)).shifted(-7)
    plain = binomial(400, Fraction(1, 400))
    assert (moved.first, moved.missing, moved.error) == (-7, plain.missing, plain.error)
    assert moved.variance == pytest.approx(399 / 400)


def test_tails_have_room_for_what_is_wrong_and_for_what_is_missing():
    law = Distribution(2, np.array([0.25, 0.5, 0.25]), 1e-3, 1e-2)
    slack = 1 + 2e-2 + 3 * 2.0**-52
    for least, weight in ((1, 1), (2, 1), (3, 0.75), (4, 0.25), (5, 0)):
        expected = min(weight * slack + 1e-3, 1)
        assert law.above(least) == pytest.approx(expected, rel=1e-14, abs=0)
        assert law.below(6 - least) == pytest.approx(expected, rel=1e-14, abs=0)


@pytest.mark.parametrize(("variance", "single"), [("3.999", True), ("4", False), ("9", False)])
def test_gaussians_are_one_from_a_variance_of_4_on(variance, single):
    one = discrete_gaussian(Fraction(variance))
    assert gaussian_sum(Fraction(variance), 1).error == one.times(1).error
    added, repeated = gaussian_sum(Fraction(variance), 3), one.times(3)
    assert (added.error == repeated.error) == single
    if not single:
        ripple = 15 * math.exp(-(math.pi**2) * float(variance))
        exact = discrete_gaussian(3 * Fraction(variance)).error
        assert added.error == pytest.approx(exact + ripple, rel=1e-9, abs=0)


def test_laws_that_do_not_meet_are_apart_as_they_are_and_allow_for_errors():
    one, other = Distribution(0, np.ones(1), 1e-3, 0.0), Distribution(5, np.ones(1), 0.0, 0.0)
    assert hockey_stick(Fraction(1), (one, other)) == 1.0
    half = (
        Distribution(0, np.array([0.5, 0.5]), 1e-4, 0.0),
        Distribution(1, np.array([0.5, 0.5]), 0.0, 0.0),
    )
    assert hockey_stick(Fraction(1), half) == pytest.approx(0.5 + 1e-4, rel=1e-12)
    wrong = [Distribution(law.first, law.weights, 0.0, 1e-2) for law in half]
    assert hockey_stick(Fraction(1), tuple(wrong)) == pytest.approx(0.51, rel=1e-12)
    same = Distribution(0, np.array([0.5, 0.5])), Distribution(0, np.array([0.5, 0.5]))
    assert hockey_stick(Fraction(1), half, same) == pytest.approx(0.5 + 1e-4, rel=1e-12)
    assert hockey_stick(Fraction(1), same) == 0
    assert hockey_stick(Fraction(1, 10**9), (same[0], Distribution(0, np.array([0.6, 0.4])))) == (
        pytest.approx(0.1)
    )


@pytest.mark.parametrize("devices", [2, 256, 257, 258, 513, 5_000])
def test_ranges_are_split_until_one_has_a_256th_of_the_others(devices):
    """Where the bound is highest, and each half has all that the other has not."""
    for highest in (0, (devices - 1) // 3, devices - 1):
        seen = []

        def apart(ranges, highest=highest, seen=seen):
            seen.append(ranges[0])
            return -min(abs(at - highest) for at in ranges[0]) * (
                not ranges[0][0] <= highest <= ranges[0][1]
            )

        assert worst_of_others(devices, 1, apart) == 0
        holding = [one for one in seen if one[0] <= highest <= one[1]]
        assert holding[0] == (0, devices - 1)
        widths = [most - fewest for fewest, most in holding]
        assert widths[-1] <= (devices - 1) // 256
        assert all(width > (devices - 1) // 256 for width in widths[:-1])
        for wide, narrow in itertools.pairwise(holding):
            middle = sum(wide) // 2
            assert narrow in {(wide[0], middle), (middle + 1, wide[1])}


def test_no_more_devices_than_there_are_hold_a_1_in_either_place():
    seen = []
    worst_of_others(1_001, 2, lambda ranges: seen.append(ranges) or -len(seen))
    assert max(first[0] + second[0] for first, second in seen) <= 1_000
    reached = []

    def towards_the_ends(ranges):
        reached.append(ranges)
        return sum(most for _, most in ranges) + sum(fewest for fewest, _ in ranges)

    worst_of_others(11, 2, towards_the_ends)
    assert max(first[0] + second[0] for first, second in reached) == 10


def test_a_promise_is_said_in_full():
    one = Promise(epsilon=Fraction(1, 3))
    assert str(one) == "epsilon 0.333334 for all that one device observed, in its report by itself"
    many = Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6), devices=2_000)
    assert str(many) == (
        "epsilon 1 and delta 0.000001 for all that one device observed, in the sum over 2,000 "
        "devices or more that follow the protocol"
    )


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("epsilon", [Fraction(1, 10**9), Fraction(100)], [Fraction(0), Fraction(-1), 100 + TINY]),
        ("delta", [Fraction(0), 1 - TINY], [-TINY, Fraction(1)]),
        ("devices", [1, 10**7], [0, 10**7 + 1]),
    ],
)
def test_a_promise_is_taken_up_to_either_end_of_each_number(name, taken, refused):
    for value in taken:
        Promise(**{"epsilon": Fraction(1), name: value})
    said = {
        "epsilon": "^epsilon must be above 0 and at most 100$",
        "delta": "^delta must be at least 0 and below 1$",
        "devices": "^devices must be",
    }[name]
    for value in refused:
        with pytest.raises(pp.PlanError, match=said):
            Promise(**{"epsilon": Fraction(1), name: value})


def test_epsilon_0_is_searched_from_the_promised_one_up_to_40():
    promise = Promise(epsilon=Fraction(1, 3), devices=2)
    tried = []
    assert largest_epsilon_0(promise, lambda at: tried.append(at) or 0.0) == 40
    assert all(Fraction(1, 3) - Fraction(1, 1024) < at <= 40 for at in tried)
    assert largest_epsilon_0(promise, lambda at: 1.0) == Fraction(1, 3)
    exact = Promise(epsilon=Fraction(1), delta=Fraction(1, 8), devices=2)
    assert largest_epsilon_0(exact, lambda at: 0.125) == 40


@pytest.mark.parametrize(
    ("most", "variance", "message"),
    [
        (0, 1, "most"),
        (1_001, 1, "most"),
        (1, Fraction(99, 10_000), "variance must be 1/100 to 100,000,000"),
        (1, 10**8 + 1, "variance must be 1/100 to 100,000,000"),
    ],
)
def test_a_mean_out_of_range_is_refused(most, variance, message):
    with pytest.raises(pp.PlanError, match=message):
        Mean(most=most, variance=Fraction(variance))


def test_a_mean_of_too_much_noise_is_refused():
    promise = Promise(epsilon=Fraction(1, 100), delta=Fraction(1, 10**9))
    with pytest.raises(pp.PlanError, match="takes too much noise"):
        Mean.planned(promise, most=1_000)
    more = Promise(epsilon=Fraction(2), delta=promise.delta)
    assert Mean.planned(more, most=1_000).variance > 10**6


def test_noise_that_is_too_wide_to_be_written_down_is_bounded():
    wide, narrow = Mean(most=1, variance=Fraction(10**8)), Mean(most=1, variance=Fraction(10**6))
    assert wide._reach(101, 0.05) == pytest.approx(math.sqrt(2 * 101e8 * math.log(20)))
    assert narrow._reach(100, 0.05) == pytest.approx(1.645 * 10**4, rel=1e-3)
    assert Mean(most=1, variance=Fraction(1))._reach(1, 0.2) == 1


@pytest.mark.parametrize("share", [0.3, 0.2, 0.05, 1e-6])
def test_noise_goes_beyond_its_reach_no_more_often_than_is_asked(share):
    kind = Mean(most=1, variance=Fraction(2))
    reach, law = kind._reach(5, share), gaussian_sum(Fraction(2), 5)
    assert law.above(int(reach) + 1) <= share < law.above(int(reach))


def test_the_place_of_a_variance_on_the_grid_is_that_of_500_a_factor_of_ten():
    assert [mean._grid_index(one) for one in (0, Fraction(1, 100), 1, 10, 10**8)] == [
        -1_000, -1_000, 0, 500, 4_000,
    ]  # fmt: skip
    assert [mean._step(one) for one in (-1_000, 0, 1, 500)] == [
        Fraction(1, 100), 1, Fraction("1.005"), 10,
    ]  # fmt: skip
    for place in range(-1_000, 4_001, 7):
        assert mean._grid_index(mean._step(place)) == place


def test_of_ever_so_many_devices_so_many_are_added_up_that_it_is_enough(monkeypatch):
    """Smooth noise up to a variance of 1e10, other noise up to a million."""
    asked = []
    monkeypatch.setattr(mean, "gaussian_sum", lambda *given: asked.append(given) or bernoulli(TINY))
    for variance in (10**8, 4, Fraction("3.99"), 1):
        for devices in (7, 10**7):
            Mean(most=1, variance=Fraction(variance)).delta(Fraction(1), devices)
    assert [count for _, count in asked] == [7, 100, 7, 10**7, 7, 250_627, 7, 10**6]


@pytest.mark.long
def test_what_is_planned_once_is_planned_again():
    """Devices and servers that plan for themselves get the same task."""
    promise = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}
    found = [
        (
            CountNonZero.planned(Promise(**promise, devices=devices)).epsilon_0 * 1024,
            DeviceHistogram.planned(Promise(**promise, devices=devices), most=4).epsilon_0 * 1024,
            Mean.planned(Promise(**promise, devices=devices), most=4).variance,
        )
        for devices in (1, 1_000)
    ]
    assert found == [(1_024, 1_024, Fraction(1_429, 5)), (3_530, 4_896, Fraction(1_517, 5_000))]
