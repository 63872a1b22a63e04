"""Whom a local oracle asks, and who pays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy import local
from tests.unit.test_randomiser import EACH, NoCoins


@pytest.fixture
def oracle():
    return local.LROracle([0, 1, 0, 1], 1)


def test_nobody_is_asked_where_one_cannot_pay(oracle):
    oracle.ask(local.RandomisedResponse(2, "2/3"), users=[2])
    with pytest.raises(pp.BudgetError, match="nobody was asked"):
        oracle.ask(local.RandomisedResponse(2, "1/2"), of=NoCoins())
    assert oracle.spent(range(4)) == [0, 0, Fraction(2, 3), 0]
    oracle.ask(local.RandomisedResponse(2, "1/3"))
    assert oracle.spent(range(4)) == [Fraction(1, 3)] * 2 + [1, Fraction(1, 3)]


def test_all_of_epsilon_can_be_spent_exactly(oracle):
    third = local.RandomisedResponse(2, "1/3")
    for _ in range(3):
        oracle.ask(third)
    assert oracle.spent([0]) == [1]
    with pytest.raises(pp.BudgetError):
        oracle.ask(local.RandomisedResponse(2, "1e-6"), users=[3])


@pytest.mark.parametrize("users", [[4], [-1], [0.5], [[0]], [1, 1]])
def test_users_that_do_not_exist_or_are_named_twice_are_refused(oracle, users):
    with pytest.raises(pp.InputError, match="user"):
        oracle.ask(EACH[0], users=users)
    assert oracle.spent(range(4)) == [0] * 4


def test_what_fails_after_it_was_paid_is_lost(oracle):
    with pytest.raises(pp.InputError):
        oracle.ask(local.RandomisedResponse(2, 1), of=lambda held: held + 7)
    assert oracle.spent([0]) == [1]


def test_records_need_users():
    with pytest.raises(pp.InputError, match="axis"):
        local.LROracle(3, 1)


def test_many_users_of_many_histories_are_counted_in_few_numbers():
    oracle = local.LROracle(np.zeros(100_000, int), 1)
    for part in range(8):
        oracle.ask(local.RandomisedResponse(2, "1/8"), users=np.arange(part * 10_000))
    assert len(oracle._sums) == 8
    assert oracle.spent([0, 10_000, 99_999]) == [Fraction(7, 8), Fraction(6, 8), 0]
