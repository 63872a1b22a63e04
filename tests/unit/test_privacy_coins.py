"""Coins have the stated types, refuse laws that are none, and keep nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy import coins as coins_module
from panprivacy.privacy.coins import FEW_BYTES, Coins, SystemCoins
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


@pytest.fixture
def keys(monkeypatch):
    """All keys that are drawn."""
    found, fresh = [], coins_module._fresh_key

    def noted():
        found.append(fresh())
        assert any(found[-1])
        return found[-1]

    monkeypatch.setattr(coins_module, "_fresh_key", noted)
    return found


@pytest.mark.parametrize(("size", "drawn"), [(FEW_BYTES, 0), (FEW_BYTES + 1, 1)])
def test_few_bytes_come_from_the_system_and_many_from_a_key_that_is_wiped(size, drawn, keys):
    first, second = SystemCoins().key(size), SystemCoins().key(size)
    assert len(first) == len(second) == size
    assert first != second
    assert len(keys) == 2 * drawn
    assert not any(any(key) for key in keys)


def test_a_key_is_wiped_where_a_call_fails(keys):
    with pytest.raises((MemoryError, ValueError)):
        SystemCoins().key(1 << 62)
    assert len(keys) == 1
    assert not any(keys[0])


def cut_short(_first, size, _flags):
    return size - 1


@pytest.mark.parametrize("call", [None, cut_short, lambda *_: -1])
def test_the_device_is_read_where_the_call_of_the_system_fails(call, monkeypatch):
    monkeypatch.setattr(coins_module, "_getrandom", call)
    buffers = [bytearray(100) for _ in range(2)]
    for one in buffers:
        coins_module._read_system(one)
        assert any(one[:50])
        assert any(one[50:])
    assert buffers[0] != buffers[1]


def test_too_few_random_bytes_are_an_error(monkeypatch):
    monkeypatch.setattr(coins_module, "_getrandom", None)
    monkeypatch.setattr(coins_module.os, "readv", lambda _device, buffers: len(buffers[0]) - 1)
    with pytest.raises(OSError, match="too few random bytes"):
        SystemCoins().bernoulli(Fraction(1, 3), 10)


def test_the_system_fills_all_of_a_buffer():
    """A byte is 0 in all of 12 draws with probability 2**-96."""
    filled = np.zeros(FEW_BYTES, np.uint8)
    for _ in range(12):
        drawn = np.zeros(FEW_BYTES, np.uint8)
        coins_module._read_system(drawn)
        filled |= drawn
    assert filled.all()
