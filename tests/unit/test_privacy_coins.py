"""Coins have the stated types, refuse laws that are none, and keep nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.testing import SeededCoins


@pytest.mark.parametrize("coins", [SystemCoins(), SeededCoins(1)])
def test_coins_follow_the_protocol(coins):
    assert isinstance(coins, Coins)
    assert coins.bernoulli(Fraction(1, 3), 5).dtype == np.uint8
    assert coins.categorical([1, 2], 5).dtype == np.uint32
    assert coins.discrete_laplace(Fraction(3), 5).dtype == np.int64
    assert coins.discrete_gaussian(Fraction(3), 5).dtype == np.int64
    assert len(coins.key(16)) == 16
    for sample in (
        coins.bernoulli(Fraction(1, 3), 0),
        coins.categorical([1], 0),
        coins.discrete_laplace(Fraction(3), 0),
        coins.discrete_gaussian(Fraction(3), 0),
    ):
        assert sample.size == 0


def test_certain_coins_are_certain():
    coins = SystemCoins()
    assert coins.bernoulli(Fraction(0), 100).sum() == 0
    assert coins.bernoulli(Fraction(1), 100).sum() == 100
    assert set(coins.categorical([0, 5, 0], 100).tolist()) == {1}


@pytest.mark.parametrize(
    "call",
    [
        lambda coins: coins.bernoulli(Fraction(3, 2), 1),
        lambda coins: coins.discrete_laplace(Fraction(0), 1),
        lambda coins: coins.discrete_gaussian(Fraction(-1), 1),
        lambda coins: coins.categorical([0, 0], 1),
        lambda coins: coins.categorical([], 1),
        lambda coins: coins.categorical([2, -1], 1),
    ],
)
def test_a_law_that_is_none_is_refused(call):
    with pytest.raises(ValueError):
        call(SystemCoins())


def test_system_coins_keep_nothing():
    coins = SystemCoins()
    assert not hasattr(coins, "__dict__")
    assert coins.key(32) != coins.key(32)
