"""What epsilon and delta say about beliefs: every outcome of tiny laws, in exact numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.promise import Promise
from panprivacy.privacy.guarantee import PrivacyLoss, exp_bounds

EPSILONS = st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2)])
PRIORS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]


def law(weights):
    return [Fraction(one, sum(weights)) for one in weights]


def laws(count, most):
    """Laws of few outcomes, some of them nearly alike, so that deltas of all sizes come."""
    weights = st.lists(st.integers(0, most), min_size=3, max_size=5).filter(any)
    return st.lists(weights, min_size=count, max_size=count).filter(
        lambda each: len({len(one) for one in each}) == 1
    )


def nearly(base, changes):
    """Two laws that differ in a few parts of a thousand."""
    return law([1_000 * one + 1 for one in base]), law(
        [1_000 * one + 1 + more for one, more in zip(base, changes, strict=True)]
    )


def delta_of(one, other, epsilon):
    """The larger hockey-stick divergence of both directions, rounded up."""
    factor = exp_bounds(epsilon)[0]
    return max(
        sum((max(p - factor * q, 0) for p, q in zip(*pair, strict=True)), Fraction(0))
        for pair in ((one, other), (other, one))
    )


def beyond(one, other, factor):
    """How likely outcomes are, under either law, that change odds by more than a factor."""
    far = [max(p, q) > factor * min(p, q) for p, q in zip(one, other, strict=True)]
    return max(sum(itertools.compress(each, far), Fraction(0)) for each in (one, other))


PAIRS = st.one_of(
    laws(2, 20).map(lambda pair: tuple(map(law, pair))),
    laws(2, 300).map(lambda pair: nearly(*pair)),
)


@settings(max_examples=40)
@given(PAIRS, EPSILONS)
def test_odds_hold_but_for_the_exceptions(pair, epsilon):
    loss = PrivacyLoss(epsilon, min(delta_of(*pair, epsilon), Fraction(1)))
    if loss.odds is not None:
        assert beyond(*pair, loss.odds) <= loss.exceptions
        for prior in PRIORS:
            low, high = loss.posterior(prior)
            outside = [
                not low <= prior * p / (prior * p + (1 - prior) * q) <= high if p + q else False
                for p, q in zip(*pair, strict=True)
            ]
            believed = [prior * p + (1 - prior) * q for p, q in zip(*pair, strict=True)]
            assert sum(itertools.compress(believed, outside), Fraction(0)) <= loss.exceptions


@pytest.mark.parametrize("delta", ["1/10", "1/2000", "1/1000000000"])
def test_the_exceptions_are_attained(delta):
    """So no smaller probability can be said of these odds."""
    exact = Fraction(delta)
    loss = PrivacyLoss(Fraction(1), exact)
    factor, pure = loss.odds * (1 + Fraction(1, 10**30)), exp_bounds(loss.epsilon)[1]
    often = exact * factor / (factor - pure)
    rest = 1 - often - often / factor
    one, other = [often, often / factor, rest], [often / factor, often, rest]
    assert delta_of(one, other, loss.epsilon) == pytest.approx(float(exact))
    assert beyond(one, other, loss.odds) > loss.exceptions * (1 - Fraction(1, 10**20))


@settings(max_examples=40)
@given(PAIRS, EPSILONS)
def test_beliefs_hold_on_average(pair, epsilon):
    loss = PrivacyLoss(epsilon, min(delta_of(*pair, epsilon), Fraction(1)))
    for prior in PRIORS:
        low, high = loss.average(prior)
        told = [
            (p, q, prior * p / (prior * p + (1 - prior) * q))
            for p, q in zip(*pair, strict=True)
            if p + q
        ]
        assert sum(p * belief for p, _, belief in told) <= high
        assert sum(q * belief for _, q, belief in told) >= low


@settings(max_examples=40)
@given(laws(3, 20), EPSILONS)
def test_people_and_outcomes_add_up(weights, epsilon):
    first, second, third = map(law, weights)
    each = max(delta_of(first, second, epsilon), delta_of(second, third, epsilon))
    people = PrivacyLoss(epsilon, min(each, Fraction(1))).of_people(2)
    assert delta_of(first, third, people.epsilon) <= people.delta
    both = [
        [p * q for p, q in itertools.product(one, other)]
        for one, other in ((first, second), (second, third))
    ]
    assert delta_of(*both, 2 * epsilon) <= min(
        delta_of(first, second, epsilon) + delta_of(second, third, epsilon), 1
    )


def test_without_a_delta_there_is_no_exception():
    loss = PrivacyLoss(Fraction(1))
    assert loss.exceptions == 0
    assert loss.odds == exp_bounds(Fraction(1))[1]
    assert loss.average(Fraction(1, 10)) == loss.posterior(Fraction(1, 10))


def test_a_loss_beyond_measure_bounds_nothing():
    for loss in PrivacyLoss(Fraction(10_001)), PrivacyLoss(Fraction(1), Fraction(1, 2)):
        assert loss.odds is None
        assert loss.posterior(Fraction(1, 10)) == (0, 1)


def test_the_page_has_these_odds():
    for delta, odds, exceptions in [
        ("0", 2.719, 0),
        ("1e-9", 2.756, 1.01e-7),
        ("0.0005", 3.091, 0.0055),
        ("0.1", 6.437, 0.2),
    ]:
        loss = PrivacyLoss(Fraction(1), Fraction(delta))
        assert float(loss.odds) <= odds < float(loss.odds) + 0.001
        assert float(loss.exceptions) == pytest.approx(exceptions)


def poisson_binomial(chances):
    """The law of the number of ones."""
    found = [1.0]
    for p in chances:
        found = [a * (1 - p) + b * p for a, b in zip([*found, 0], [0, *found], strict=True)]
    return found


def test_ratios_of_a_sum_over_devices_are_beyond_epsilon_more_often_than_delta():
    """Why delta has this definition: of a thousand devices up to 17.3 times as often."""
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    kind = CountNonZero.planned(Promise(epsilon=epsilon, delta=delta, devices=1_000))
    present = float(exp_bounds(kind.epsilon_0)[1])
    present /= 1 + present
    factor, loss, far = float(exp_bounds(epsilon)[1]), PrivacyLoss(epsilon, delta), {}
    for active in (0, 6, 7, 8):  # of the others; with 7 it is most often, with none half as often
        others = poisson_binomial([present] * active + [1 - present] * (999 - active))
        one, other = (
            [a * (1 - p) + b * p for a, b in zip([*others, 0], [0, *others], strict=True)]
            for p in (present, 1 - present)
        )
        assert sum(max(q - factor * p, 0) for p, q in zip(one, other, strict=True)) <= delta
        far[active] = sum(q for p, q in zip(one, other, strict=True) if q > factor * p)
        assert beyond(one, other, float(loss.odds)) <= loss.exceptions
    assert far[0] == pytest.approx(9.9e-6, rel=0.01)
    assert max(far.values()) == far[7] == pytest.approx(17.3e-6, rel=0.01)
