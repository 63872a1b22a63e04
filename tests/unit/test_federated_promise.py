"""What a promise says of sums over devices, against exact laws of small numbers of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit.exact.numbers import exp
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.distributions import (
    bernoulli,
    binomial,
    discrete_gaussian,
    gaussian_sum,
)
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise, largest_epsilon_0


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
    kind = DeviceHistogram(most=3, epsilon_0=Fraction(2))
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
    histogram = DeviceHistogram.planned(promise, most=3)
    assert counted.keeps(promise)
    assert histogram.keeps(promise)
    more = Fraction(1, 1024)
    assert not CountNonZero(epsilon_0=counted.epsilon_0 + more).keeps(promise)
    assert not DeviceHistogram(most=3, epsilon_0=histogram.epsilon_0 + more).keeps(promise)


@pytest.mark.long
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


@pytest.mark.long
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


def test_the_largest_epsilon_0_is_the_last_on_its_grid_that_keeps_the_promise():
    """Whoever plans it finds the same."""
    kept = Fraction(377_777, 100_000)
    found = largest_epsilon_0(Promise(epsilon=Fraction(1)), lambda at: float(at > kept))
    assert found == Fraction(math.floor(kept * 1024), 1024)
