"""The papers' algorithms lose no more than they claim once repaired; printed budgets fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.papers.published import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
    PrimeIncidence,
)

KEY = bytes([0, 1])
"""Users 0 and 1 have the weights 1 and 2 on a grid of one step."""

HISTORIES = {
    "appears once": ([[0]], [[]]),
    "goes round the modulus": ([[(0, 3)], [(0, 3)]], [[(0, 3)], []]),
    "appears and is released": ([[0], RELEASE], [[], RELEASE]),
    "appears before and after a release": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "comes and goes around a release": ([[(0, 2)], RELEASE, [(0, -2)]], [[], RELEASE, []]),
    "moves by all that a counter holds": ([[], RELEASE, [(0, 3)]], [[], RELEASE, []]),
}


def moment(kind, budget, **sizes):
    """Counters modulo 4 or 6, on a grid of one step."""
    arguments = {"universe": 1, "grid": 1, "epsilon": budget.total(releases=1, intrusions=0)}
    return lambda coins: kind(coins=coins, budget=budget, **{**arguments, **sizes})


MOMENTS = [(CroppedFirstMoment, 2, pp.Budget(1, 3)), (CroppedDistinctCount, 3, pp.Budget(1, 5))]
"""Output noise of scale 1."""


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize(("kind", "tau", "budget"), MOMENTS)
def test_a_cropped_moment_keeps_its_claim(kind, tau, budget, history):
    coins = EnumeratedCoins(KEY, tail=10)
    loss = exact_loss(moment(kind, budget, tau=tau), *HISTORIES[history], coins=coins)
    assert loss.within(budget.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.long
def test_a_weight_of_two_keeps_the_claim_too():
    make = moment(CroppedFirstMoment, pp.Budget(1, 3), tau=2, universe=2)
    stream, neighbour = [[(1, 1), (0, 1)], RELEASE, [1]], [[(0, 1)], RELEASE, []]
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(KEY, tail=10))
    assert loss.within(4)


def test_the_state_spends_all_that_its_law_loses():
    make = moment(CroppedFirstMoment, pp.Budget(1, 3), tau=2)
    loss = exact_loss(make, [[0]], [[]], coins=EnumeratedCoins(KEY))
    assert loss.within(1)
    assert float(loss) == pytest.approx(1, abs=1e-5)


def test_a_user_moves_the_sum_by_one_less_than_the_modulus():
    """State and release spend all that they are given: 0 becomes 3, modulo 4."""
    make = moment(CroppedFirstMoment, pp.Budget(8, 3), tau=2)
    stream, neighbour = [[(0, 1)], [(0, 3)], RELEASE], [[], [], RELEASE]
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(KEY, tail=10))
    assert loss.within(11)
    assert float(loss) == pytest.approx(11, abs=1e-4)


@pytest.mark.long
def test_to_replace_a_user_costs_twice_as_much_and_no_more():
    """Theorem 7 claims the loss of one counter for the two that Definition 4 changes (M3)."""
    make = moment(CroppedFirstMoment, pp.Budget(1, 3), tau=2, universe=2)
    stream, neighbour = [[(0, 1)], [(0, 3)], RELEASE], [[(1, 1)], [(1, 3)], RELEASE]
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(KEY, tail=10))
    assert loss.within(8)
    assert not loss.within(4)


HITTERS = pp.Budget(2, 12)
"""Output noise of scale 1/2 on the run at tau 2, of 1/6 on that at tau 1."""

REACH = EnumeratedCoins(KEY, tail=5)


def hitters(budget, coins, **covers):
    """Two runs of one counter each."""
    total = budget.total(releases=1, intrusions=0)
    sizes = {"k": 1, "total": 2, "cells": 1, "grid": 1}
    return CroppedHeavyHitters(epsilon=total, budget=budget, coins=coins, **sizes, **covers)


@pytest.mark.long
@pytest.mark.parametrize(
    "history",
    [
        ([[0]], [[]]),
        ([[(0, 3), (1, 1)], RELEASE], [[(1, 1)], RELEASE]),
        ([[(0, 1)], [(0, 3)], RELEASE], [[], [], RELEASE]),
    ],
)
def test_two_runs_keep_their_claim(history):
    loss = exact_loss(lambda coins: hitters(HITTERS, coins), *history, coins=REACH)
    assert loss.within(14)
    assert loss.set_aside < Fraction(1, 50)


PRIMES = pp.Budget(2, 8)


def primes(coins, universe=1):
    """Counters modulo 2 and 3."""
    sizes = {"universe": universe, "bound": 5, "primes": (2, 3)}
    return PrimeIncidence(epsilon=10, budget=PRIMES, coins=coins, **sizes)


@pytest.mark.parametrize("batches", [[[0]], [[(0, 5)], [(0, -1)]], [[(0, 2)], [(0, 1)]]])
def test_counters_modulo_several_primes_keep_their_claim(batches):
    assert exact_loss(primes, batches, [[] for _ in batches]).within(PRIMES.state)


def test_the_counters_of_all_primes_spend_what_the_state_is_given():
    loss = exact_loss(primes, [[(0, 5)]], [[]])
    assert loss.within(2)
    assert float(loss) == pytest.approx(2, abs=1e-4)


@pytest.mark.slow
def test_the_histograms_of_all_primes_spend_all_that_is_left():
    stream, neighbour = [[(0, 4)], RELEASE, [0]], [[], RELEASE, []]
    loss = exact_loss(primes, stream, neighbour, coins=EnumeratedCoins(tail=1))
    assert loss.within(10)
    assert float(loss) == pytest.approx(10, abs=1e-4)
