"""Shards that the audit walks: who is counted where, and what they show."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import EnumeratedCoins
from panprivacy.audit.shards import CoinsOf, PlainSums, TwoShards, TwoSlices
from panprivacy.tables.hashing import KEY_BYTES

COINS = EnumeratedCoins(tail=4)


def density(coins):
    return pp.Density(universe=2, epsilon=Fraction(1), coins=coins)


class Recorder:
    """Says what it was fed."""

    def __init__(self):
        self.fed = []

    def update(self, users, deltas):
        self.fed.append((users.tolist(), deltas.tolist()))

    def state(self):
        return repr(self.fed).encode()


def test_each_shard_has_its_own_users():
    shards = TwoShards(lambda _coins: Recorder(), COINS)
    shards.update([5, 6, 7], [0, 1, 0], [1, -1, 2])
    assert shards.state() == b"[([5, 7], [1, 2])][([6], [-1])]"


def test_keys_of_shards_differ_and_all_else_is_of_the_coins():
    one, other = (CoinsOf(COINS, shard) for shard in (0, 1))
    assert (one.key(3), other.key(3)) == (b"\0\0\0", b"\1\1\1")
    for _ in COINS:
        assert (one.bernoulli(Fraction(1, 2), 3) == COINS.bernoulli(Fraction(1, 2), 3)).all()
        break


def test_slices_deal_each_user_to_the_same_shard_whatever_the_order():
    slices = TwoSlices(lambda _coins, _slice: Recorder(), COINS)
    where = slices.shards_of(range(64))
    assert set(where.tolist()) == {0, 1}
    assert (slices.shards_of(range(63, -1, -1)) == where[::-1]).all()
    assert bytes(KEY_BYTES) == TwoSlices.KEY


@pytest.mark.parametrize("kind", [TwoShards, PlainSums])
def test_shards_contribute_once_and_then_their_merge_answers(kind):
    for _ in COINS:
        shards = kind(density, COINS)
        before = shards.state()
        shards.update([0, 1], [0, 1], [1, 1])
        assert len(shards.state()) == len(before)
        told = shards.release()
        assert bool(told.counts) == (kind is PlainSums)
        assert np.isfinite(shards.release().value)
        assert shards.state() == b""
        break
