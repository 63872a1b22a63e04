"""Coins that repeat, for tests."""

from __future__ import annotations

from panprivacy.testing import SeededCoins


def test_seeded_coins_repeat():
    first, second = SeededCoins(3), SeededCoins(3)
    for _ in range(3):
        assert first.key(8) == second.key(8)
    assert SeededCoins(4).key(8) != SeededCoins(3).key(8)
