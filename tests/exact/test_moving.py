"""What a running answer tells that stands until it has moved: the proof of moves.md, walked."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gammaln

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, sampled_loss
from panprivacy.audit.controls import CONTROLS
from panprivacy.audit.exact.approximate import OneLook
from panprivacy.audit.suite.products import Moving
from panprivacy.planning.comparisons import comparison_cost, comparison_epsilon, largest_hazard
from panprivacy.statistics.moving import _Compared

EPSILON, DELTA = Fraction(12), Fraction(1, 10)
LIVES = [
    ([[0], RELEASE, [], RELEASE], [[], RELEASE, [], RELEASE]),
    ([[], RELEASE, [0], RELEASE], [[], RELEASE, [], RELEASE]),
    ([[0], RELEASE, [0], RELEASE], [[0], RELEASE, [], RELEASE]),
]


def moving(statistic, *, threshold=1, epsilon=EPSILON, updates=1, **more):
    def make(coins):
        made = partial(statistic, coins=coins)
        sizes = {"threshold": threshold, "updates": updates, "delta": DELTA}
        return Moving(pp.Continual(made, epsilon=epsilon, **sizes, **more))

    return make


density = partial(pp.Density, universe=1)


def lost(make, pairs, *, claimed=EPSILON, delta=DELTA, tail=4):
    return OneLook(make, EnumeratedCoins(tail=tail)).worst(pairs, claimed=claimed, delta=delta)


def test_one_look_and_all_answers_keep_the_claim():
    loss = lost(moving(density), LIVES)
    assert loss.within(EPSILON)
    assert loss.set_aside < Fraction(1, 100)


def test_comparisons_with_too_little_noise_are_caught(monkeypatch):
    """A thirtieth of the scale that the proof asks for."""

    def scales(one):
        return [one.factor / 30 * scale for scale in one.reading.scales]

    monkeypatch.setattr(_Compared, "scales", property(scales))
    assert lost(moving(density), LIVES[1:2]).epsilon > 2 * EPSILON


@pytest.mark.slow
def test_a_count_with_deletions_keeps_the_claim():
    strict = partial(pp.CroppedSum, universe=1, tau=1, bound=1)
    lives = [
        ([[(0, 1)], RELEASE, [(0, -1)], RELEASE], [[], RELEASE, [], RELEASE]),
        ([[(0, 1)], RELEASE, [(0, -1)], RELEASE], [[(0, 1)], RELEASE, [], RELEASE]),
    ]
    assert lost(moving(strict), lives).within(EPSILON)


@pytest.mark.slow
def test_several_answers_keep_the_claim():
    loss = lost(moving(density, updates=2, epsilon=Fraction(24)), LIVES, claimed=Fraction(24))
    assert loss.within(Fraction(24))


def beyond(claimed, each, chance, updates, steps):
    """How often answers that left say more than is claimed, where all comparisons are alike.

    The neighbour's comparisons have the odds that differ most from these at the same epsilon.
    """
    other = min(math.exp(each) * chance, 1 - math.exp(-each) * (1 - chance))
    silent = np.arange(steps)
    ways = gammaln(silent + updates) - gammaln(updates) - gammaln(silent + 1)
    laws = [updates * math.log(p) + silent * math.log1p(-p) for p in (chance, other)]
    tells = [ways + law for law in laws]
    return max(
        np.maximum(np.exp(one) - np.exp(claimed + two), 0).sum()
        for one, two in (tells, tells[::-1])
    )


@pytest.mark.parametrize("updates", [1, 2, 10, 50])
def test_thousands_of_comparisons_cost_what_is_set_aside_for_them(updates):
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    each = float(comparison_epsilon(epsilon, updates, delta))
    chances = [updates / steps for steps in (100, 1_000, 10_000)]
    found = [beyond(1, each, chance, updates, 100_000) for chance in chances]
    assert max(found) <= delta
    bold = [beyond(1, 1 / updates, chance, updates, 100_000) for chance in chances]
    assert max(bold) > delta  # enough for the answers alone is not enough for what stands


@pytest.mark.parametrize("updates", [1, 7, 1_000])
def test_the_epsilon_of_a_comparison_is_all_that_is_left(updates):
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**9)
    each, hazard = comparison_epsilon(epsilon, updates, delta), largest_hazard(updates, delta)
    assert comparison_cost(each, updates, hazard) <= epsilon
    assert comparison_cost(each * Fraction(1_000_003, 1_000_000), updates, hazard) > epsilon


@pytest.mark.parametrize("updates", [1, 2, 25])
def test_no_smaller_hazard_would_do(updates):
    delta = Fraction(1, 10**6)
    hazard = float(largest_hazard(updates, delta))

    def tail(mean):
        terms = np.arange(updates) * math.log(mean) - mean - gammaln(np.arange(updates) + 1)
        return np.exp(terms).sum()

    assert tail(hazard) <= delta < tail(hazard - 1 / 64)


def test_a_shift_raises_a_hazard_by_no_more_than_kappa():
    """Over all odds that two comparisons of an epsilon may have."""
    for each in (0.01, 0.3, 2.0):
        kappa = each / math.log1p(math.exp(-each))
        chance = np.linspace(1e-6, 1 - 1e-6, 100_001)
        other = np.minimum(math.exp(each) * chance, 1 - math.exp(-each) * (1 - chance))
        growth = np.log1p(-other) / np.log1p(-chance) - 1
        assert growth.max() <= kappa * (1 + 1e-9)
        assert growth.max() > 0.999 * kappa


def test_a_kept_threshold_is_caught():
    (control,) = [one for one in CONTROLS if one.name == "n3-transformation"]
    assert control.shown().epsilon == math.inf


class OfOneLength(Moving):
    """Tells as many counts where the last answer stands: 0 and 0, or 1 and what is published."""

    def release(self):
        counts = super().release().counts
        return SimpleNamespace(counts=(1, *counts) if counts else (0, 0))


@pytest.mark.slow
def test_of_many_users_a_sample_shows_no_more_than_is_claimed():
    """The bound is above the loss once in a million tests; with eight times the epsilon it is 2."""
    others = list(range(1, 100))
    pair = [others, [0], RELEASE], [others, [], RELEASE]

    def shown(epsilon):
        make = moving(partial(pp.Density, universe=200), threshold="0.1", epsilon=epsilon)
        return sampled_loss(lambda coins: OfOneLength(make(coins).running), *pair, runs=3_000)

    assert 0 < shown(2).epsilon <= 2
    assert shown(16).epsilon > 2
