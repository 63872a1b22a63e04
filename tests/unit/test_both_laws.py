"""The law of pairs of bits, and how epsilon is split."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.both import GRID, LOOKS, shares, two_bits

import panprivacy as pp
from panprivacy.privacy.guarantee import Budget, exp_bounds
from panprivacy.statistics.both.laws import PairSplit, pair_law, pair_splits
from panprivacy.tables.cells.pairs import PairLaw
from panprivacy.tables.planning.request import Request

TRIED = 2_000
CLOSE = 1e-3
"""A law is searched for on a grid, and errs so much more than the best one at most."""


def squared_error(law):
    """Of users of both, by the bits of a large table."""
    split = PairSplit(Budget(state=Fraction(1), release=Fraction(1)), law)
    return float(split.errors(np.array([1e9]))[0])


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3", "12", "60"])
def test_a_law_costs_what_it_may(epsilon):
    law = pair_law(Fraction(epsilon))
    above = min(float(epsilon), 30)
    assert law.ratio <= exp_bounds(Fraction(epsilon))[1]
    if above <= 3:  # a larger one is cut by the grid
        assert math.log(law.ratio) == pytest.approx(above, rel=1e-3)


@pytest.mark.parametrize("epsilon", LOOKS)
def test_a_law_errs_no_more_than_two_bits_of_half_of_epsilon(epsilon):
    assert shares()[epsilon] < 1 + GRID


def test_bits_that_agree_gain_most_at_a_small_epsilon():
    gains = list(shares().values())
    assert gains == sorted(gains)
    assert gains[0] < 0.1


def test_two_bits_of_half_of_epsilon_are_one_of_the_laws():
    law = two_bits(Fraction(1))
    assert math.log(law.ratio) == pytest.approx(1, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.5"])
def test_no_law_within_the_bound_errs_less(epsilon):
    """Laws at random, with any `present`; a fixed seed, as this is a search and no sample."""
    random, most = np.random.default_rng(1), math.exp(float(epsilon))
    best = squared_error(pair_law(Fraction(epsilon)))
    near = pair_law(Fraction(epsilon))
    tried = 0
    for _ in range(TRIED):
        spread = random.choice([0.01, 0.1, 1.0])
        numbers = [
            float(one) * math.exp(spread * random.normal())
            for one in (near.absent, near.present, near.both)
        ]
        low, high, both = (Fraction(round(one * 2**24), 2**24) for one in numbers)
        try:
            law = PairLaw(low, high, both)
        except ValueError:
            continue
        if law.ratio <= most:
            tried += 1
            assert squared_error(law) >= best * (1 - CLOSE)
    assert tried > 100


@pytest.mark.parametrize(("epsilon", "releases"), [("0.5", 1), ("1", 24), ("8", 3)])
def test_a_split_spends_epsilon(epsilon, releases):
    request = Request(Fraction(epsilon), releases, 0)
    for split in pair_splits(request, [100, 10_000, 10**7]):
        assert split.budget.total(releases=releases, intrusions=0) == request.epsilon
        assert split.law == pair_law(split.budget.state)


def test_larger_tables_spend_less_on_releases():
    splits = pair_splits(Request(Fraction(1), 1, 0), [100, 10_000, 10**7])
    releases = [one.budget.release for one in splits]
    assert releases == sorted(releases, reverse=True)
    assert releases[0] > releases[-1]


def test_a_split_of_the_caller_is_taken():
    budget = pp.Budget(state=Fraction(1, 2), release=Fraction(1, 2))
    (split,) = pair_splits(Request(Fraction(1), 1, 0, budget), [1_000])
    assert split.budget == budget


def test_an_epsilon_that_tells_nothing_is_refused():
    assert pair_law(Fraction(1, 10**9)) is None
    with pytest.raises(pp.PlanError, match="epsilon"):
        pair_splits(Request(Fraction(1, 10**9), 1, 0), [1_000])
