"""What a promise says of sums over devices, against exact laws of small numbers of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit.exact.numbers import exp
from panprivacy.federated import mean
from panprivacy.federated.count_nonzero import CountNonZero
from panprivacy.federated.histogram import Histogram
from panprivacy.federated.laws import (
    Law,
    bernoulli,
    binomial,
    discrete_gaussian,
    gaussian_sum,
    hockey_stick,
)
from panprivacy.federated.mean import Mean
from panprivacy.federated.promise import Promise, largest_epsilon_0, worst_of_others

TINY = Fraction(1, 10**20)


def convolved(*laws):
    """The exact law of a sum, by number."""
    total = {0: Fraction(1)}
    for law in laws:
        added = {}
        for (a, p), (b, q) in itertools.product(total.items(), law.items()):
            added[a + b] = added.get(a + b, 0) + p * q
        total = added
    return total


def coin(probability):
    return {0: 1 - probability, 1: probability}


def exact_delta(epsilon, law, other):
    factor = exp(epsilon)
    return sum(max(p - factor * other.get(at, 0), 0) for at, p in law.items())


def worst_count(kind, epsilon, devices):
    """The exact delta of the sum of reported bits, over all that others may hold, both ways."""
    present, absent = kind.reporting
    worst = Fraction(0)
    for ones in range(devices):
        others = [coin(present)] * ones + [coin(absent)] * (devices - 1 - ones)
        pair = [convolved(*others, coin(mine)) for mine in (present, absent)]
        worst = max(worst, exact_delta(epsilon, *pair), exact_delta(epsilon, *pair[::-1]))
    return worst


@pytest.mark.parametrize(("epsilon_0", "devices"), [("1", 2), ("2", 7), ("3", 12)])
def test_the_bound_of_a_count_is_the_worst_of_all_others(epsilon_0, devices):
    kind = CountNonZero(epsilon_0=Fraction(epsilon_0))
    epsilon = kind.epsilon_0 / 2
    worst = worst_count(kind, epsilon, devices)
    assert float(worst) <= kind.delta(epsilon, devices) <= float(worst) * (1 + 1e-9) + 1e-12


def worst_histogram(kind, epsilon, devices):
    present, absent = kind.reporting
    factor, worst = exp(epsilon), Fraction(0)
    for first, second in itertools.product(range(devices), repeat=2):
        if first + second >= devices:
            continue
        laws = []
        for ones, mine in ((first, (present, absent)), (second, (absent, present))):
            others = [coin(present)] * ones + [coin(absent)] * (devices - 1 - ones)
            laws.append([convolved(*others, coin(one)) for one in mine])
        (p, q), (r, s) = laws
        gap = sum(max(p[a] * r[b] - factor * q[a] * s[b], 0) for a in p for b in r)
        worst = max(worst, gap)
    return worst


def test_the_bound_of_a_histogram_is_the_worst_of_all_others():
    kind = Histogram(most=3, epsilon_0=Fraction(2))
    worst = worst_histogram(kind, Fraction(1), 5)
    assert float(worst) <= kind.delta(Fraction(1), 5) <= float(worst) * (1 + 1e-9) + 1e-12


def test_more_others_are_left_open_at_a_resolution_that_costs_little():
    kind = CountNonZero(epsilon_0=Fraction(4))
    bound = kind.delta(Fraction(1), 2_000)
    present, absent = kind.reporting
    for ones in (0, 1, 7, 100, 1_000, 1_999):
        others = binomial(ones, present) + binomial(1_999 - ones, absent)
        here, there = others + bernoulli(present), others + bernoulli(absent)
        apart = sum(
            max(p - math.e * q, 0)
            for p, q in zip(here.weights[:2_000], there.weights[:2_000], strict=False)
        )
        assert apart <= bound * (1 + 1e-9)
    assert bound > 0


@pytest.mark.parametrize(
    "promise",
    [
        Promise(epsilon=Fraction(1)),
        Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
        Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6), devices=1_000),
    ],
    ids=str,
)
def test_what_is_planned_keeps_the_promise_and_a_little_less_noise_does_not(promise):
    counted = CountNonZero.planned(promise)
    histogram = Histogram.planned(promise, most=3)
    assert counted.keeps(promise)
    assert histogram.keeps(promise)
    more = Fraction(1, 1024)
    assert not CountNonZero(epsilon_0=counted.epsilon_0 + more).keeps(promise)
    assert not Histogram(most=3, epsilon_0=histogram.epsilon_0 + more).keeps(promise)


def test_many_devices_allow_each_of_them_less_noise():
    found = [
        CountNonZero.planned(
            Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6), devices=devices)
        ).epsilon_0
        for devices in (1, 100, 10_000)
    ]
    assert found == sorted(found)
    assert found[-1] > 5


@pytest.mark.parametrize(("most", "devices"), [(1, 1), (6, 1), (6, 50), (6, 100_000)])
def test_a_mean_is_planned_with_the_least_variance_of_the_grid(most, devices):
    promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 10**5), devices=devices)
    kind = Mean.planned(promise, most=most)
    assert kind.keeps(promise)
    assert not Mean(most=most, variance=kind.variance * Fraction(99, 100)).keeps(promise)


def test_a_mean_needs_a_delta():
    with pytest.raises(pp.PlanError, match="delta above 0"):
        Mean.planned(Promise(epsilon=Fraction(1)), most=2)


def test_the_bound_of_one_gaussian_is_its_exact_divergence():
    """Canonne, Kamath, Steinke 2020, Theorem 7."""
    variance, shift, epsilon = Fraction(9), 4, Fraction(1)
    weights = {k: exp(-Fraction(k * k, 18)) for k in range(-60, 61)}
    total = sum(weights.values())
    law = {k: w / total for k, w in weights.items()}
    moved = {k + shift: p for k, p in law.items()}
    exact = float(exact_delta(epsilon, moved, law))
    bound = Mean(most=shift, variance=variance).delta(epsilon, 1)
    assert exact <= bound <= exact * (1 + 1e-9) + 1e-12


def test_smooth_gaussians_add_up_to_one_within_the_bound():
    variance = Fraction(4)
    summed, one = discrete_gaussian(variance).times(6), gaussian_sum(variance, 6)
    assert summed.error + one.error < 1e-10
    for number in range(-30, 31):
        first, second = (law.weights[number - law.first] for law in (summed, one))
        assert first == pytest.approx(second, rel=summed.error + one.error, abs=0)


def test_a_binomial_is_the_exact_one_within_its_bound():
    law = binomial(40, Fraction(1, 7))
    for number, weight in enumerate(law.weights, law.first):
        exact = math.comb(40, number) * Fraction(1, 7) ** number * Fraction(6, 7) ** (40 - number)
        assert weight == pytest.approx(float(exact), rel=law.error, abs=0)


@pytest.mark.parametrize(
    "law", [bernoulli(Fraction(1, 3)).shifted(5), binomial(10**5, Fraction(1, 3))]
)
def test_beyond_the_ends_of_a_law_lies_what_is_missing_and_before_them_all(law):
    for beyond in (1, 2, 3, 100):
        assert law.below(law.first - beyond) == law.missing == law.above(law.last + beyond)
        assert law.below(law.last + beyond) == law.below(law.last) >= 1 - law.missing
        assert law.above(law.first - beyond) == law.above(law.first) >= 1 - law.missing


def test_the_estimate_of_a_count_is_off_by_what_theorem_7_says_with_the_right_denominator():
    """sqrt(ln(1/delta))/epsilon, up to a constant: 2 at each number of devices."""
    for devices in (100, 1_000, 10_000):
        promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6), devices=devices)
        odds = math.exp(CountNonZero.planned(promise).epsilon_0)
        deviation = math.sqrt(devices * odds) / (odds - 1)
        assert 1.4 < deviation / math.sqrt(math.log(10**6)) < 1.7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": Fraction(0)}, "epsilon"),
        ({"epsilon": Fraction(101)}, "epsilon"),
        ({"epsilon": Fraction(1), "delta": Fraction(1)}, "delta"),
        ({"epsilon": Fraction(1), "devices": 0}, "devices"),
    ],
)
def test_a_promise_out_of_range_is_refused(given, message):
    with pytest.raises(pp.PlanError, match=message):
        Promise(**given)


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
    far = Law(3, np.ones(1), 1e-9, 1e-3) + Law(-5, np.ones(1), 2e-9, 2e-3)
    assert (far.first, far.last, far.weights.tolist()) == (-2, -2, [1.0])
    assert far.missing == pytest.approx(3e-9, rel=1e-9, abs=0)
    assert far.error == pytest.approx(3e-3, rel=1e-9, abs=0)


def test_ends_of_a_sum_that_hold_nearly_nothing_are_left_out():
    kept = np.array([2e-28, 0.5, 0.5, 2e-28])
    assert len((Law(0, kept) + Law(0, np.ones(1))).weights) == 4
    cut = np.array([1e-29, 1e-29, 0.5, 0.5, 1e-29])
    trimmed = Law(0, cut) + Law(0, np.ones(1))
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
    law = Law(2, np.array([0.25, 0.5, 0.25]), 1e-3, 1e-2)
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
    one, other = Law(0, np.ones(1), 1e-3, 0.0), Law(5, np.ones(1), 0.0, 0.0)
    assert hockey_stick(Fraction(1), (one, other)) == 1.0
    half = Law(0, np.array([0.5, 0.5]), 1e-4, 0.0), Law(1, np.array([0.5, 0.5]), 0.0, 0.0)
    assert hockey_stick(Fraction(1), half) == pytest.approx(0.5 + 1e-4, rel=1e-12)
    wrong = [Law(law.first, law.weights, 0.0, 1e-2) for law in half]
    assert hockey_stick(Fraction(1), tuple(wrong)) == pytest.approx(0.51, rel=1e-12)
    same = Law(0, np.array([0.5, 0.5])), Law(0, np.array([0.5, 0.5]))
    assert hockey_stick(Fraction(1), half, same) == pytest.approx(0.5 + 1e-4, rel=1e-12)
    assert hockey_stick(Fraction(1), same) == 0
    assert hockey_stick(Fraction(1, 10**9), (same[0], Law(0, np.array([0.6, 0.4])))) == (
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
    assert [mean._place(one) for one in (0, Fraction(1, 100), 1, 10, 10**8)] == [
        -1_000, -1_000, 0, 500, 4_000,
    ]  # fmt: skip
    assert [mean._step(one) for one in (-1_000, 0, 1, 500)] == [
        Fraction(1, 100), 1, Fraction("1.005"), 10,
    ]  # fmt: skip
    for place in range(-1_000, 4_001, 7):
        assert mean._place(mean._step(place)) == place


def test_of_ever_so_many_devices_so_many_are_added_up_that_it_is_enough(monkeypatch):
    """Smooth noise up to a variance of 1e10, other noise up to a million."""
    asked = []
    monkeypatch.setattr(mean, "gaussian_sum", lambda *given: asked.append(given) or bernoulli(TINY))
    for variance in (10**8, 4, Fraction("3.99"), 1):
        for devices in (7, 10**7):
            Mean(most=1, variance=Fraction(variance)).delta(Fraction(1), devices)
    assert [count for _, count in asked] == [7, 100, 7, 10**7, 7, 250_627, 7, 10**6]


def test_what_is_planned_once_is_planned_again():
    """Devices and servers that plan for themselves get the same task."""
    promise = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}
    found = [
        (
            CountNonZero.planned(Promise(**promise, devices=devices)).epsilon_0 * 1024,
            Histogram.planned(Promise(**promise, devices=devices), most=4).epsilon_0 * 1024,
            Mean.planned(Promise(**promise, devices=devices), most=4).variance,
        )
        for devices in (1, 1_000)
    ]
    assert found == [(1_024, 1_024, Fraction(1_429, 5)), (3_530, 4_896, Fraction(1_517, 5_000))]
