"""Coins that repeat, for tests."""

from __future__ import annotations

from fractions import Fraction

from panprivacy.testing import SeededCoins


def test_seeded_coins_repeat():
    first, second = SeededCoins(3), SeededCoins(3)
    for _ in range(3):
        assert first.key(8) == second.key(8)
    assert SeededCoins(4).key(8) != SeededCoins(3).key(8)


def test_calls_do_not_repeat_each_other_and_any_kind_moves_on():
    coins = SeededCoins(3)
    first = coins.key(8)
    assert coins.key(8) != first
    tossed, other = SeededCoins(3), SeededCoins(3)
    tossed.bernoulli(Fraction(1, 2), 1)
    other.key(1)
    assert tossed.key(8) == other.key(8) != first


def test_no_seed_is_the_beginning_of_another():
    assert SeededCoins(1).key(8) != SeededCoins(11).key(8)
    one, eleven = SeededCoins(1), SeededCoins(1)
    for _ in range(11):
        last = one.key(8)
    assert last != eleven.key(8)
