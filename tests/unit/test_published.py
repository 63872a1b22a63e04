"""The papers' algorithms: sizes, constants, refused input, one ledger, one state."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.papers.published import (
    CroppedDistinctCount,
    CroppedFirstMoment,
    CroppedHeavyHitters,
    PrimeIncidence,
)
from panprivacy.testing import SeededCoins

ALL = {
    "first moment": (CroppedFirstMoment, {"tau": 3, "universe": 50, "epsilon": 1}),
    "distinct": (CroppedDistinctCount, {"universe": 50, "epsilon": 1}),
    "heavy": (CroppedHeavyHitters, {"k": 5, "total": 100, "epsilon": 1}),
    "primes": (PrimeIncidence, {"universe": 50, "bound": 9, "primes": (3, 5, 7), "epsilon": 1}),
}


@pytest.fixture(params=ALL)
def make(request):
    """Makes one of them."""
    kind, arguments = ALL[request.param]
    return lambda **others: kind(**{**arguments, **others})


# All


def test_each_spends_its_epsilon_exactly_and_refuses_a_release_too_many(make):
    statistic = make(epsilon=Fraction(7, 3), releases=2)
    statistic.release()
    assert statistic.ledger.remaining > 0
    statistic.release()
    assert statistic.ledger.spent == statistic.ledger.total == Fraction(7, 3)
    assert statistic.guarantee.epsilon == Fraction(7, 3)
    with pytest.raises(pp.BudgetError):
        statistic.release()


def test_each_shares_a_ledger(make):
    ledger = pp.Ledger(1)
    make(ledger=ledger, epsilon=Fraction(3, 4))
    with pytest.raises(pp.BudgetError):
        make(ledger=ledger, epsilon=Fraction(1, 2))
    assert ledger.available == Fraction(1, 4)


def test_the_state_is_what_the_coins_make_it(make):
    states = []
    for _ in range(2):
        statistic = make(coins=SeededCoins(5))
        statistic.update([1, 2, 1], [1, 4, -1])
        states.append(statistic.state())
    assert states[0] == states[1]
    assert make(coins=SeededCoins(5)).state() != states[0]


@pytest.mark.parametrize(
    ("users", "deltas"),
    [([1, None], None), ([1.5], None), ([1, 2], [1]), ([1, 2], [1, None]), ([1], [0.5])],
)
def test_a_batch_that_cannot_be_counted_changes_nothing(make, users, deltas):
    statistic = make(coins=SeededCoins(5))
    before = statistic.state()
    with pytest.raises(pp.InputError):
        statistic.update(users, deltas)
    assert statistic.state() == before


def test_an_id_outside_of_the_universe_is_refused():
    for name in ("first moment", "distinct", "primes"):
        kind, arguments = ALL[name]
        with pytest.raises(pp.InputError, match=r"row 2.*universe"):
            kind(**arguments).update([1, 50])


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, "much", None])
def test_epsilon_must_be_positive(make, epsilon):
    with pytest.raises(pp.PlanError, match="epsilon"):
        make(epsilon=epsilon)


def test_none_can_be_pickled(make):
    with pytest.raises(TypeError, match="intrusion"):
        pickle.dumps(make())


def test_what_is_forgotten_is_gone(make):
    statistic = make()
    statistic.forget()
    statistic.forget()
    with pytest.raises(pp.PanPrivacyError):
        statistic.release()


# Algorithm 2


# Algorithm 3


# Primes
