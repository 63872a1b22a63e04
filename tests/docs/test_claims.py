"""What the pages of docs/guarantees say and no other test checks."""

from __future__ import annotations

import hashlib
import itertools
import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss, worst_loss
from panprivacy.privacy.guarantee import exp_bounds, format_rounded_up
from panprivacy.tables.ids import read_ids

KEYS = [hashlib.sha256(bytes([name])).digest()[:16] for name in range(4)]


def _named(one):
    return one.hex()[:4] if isinstance(one, bytes) else one.__name__


def sampled(coins):
    return pp.Density(universe=5, cells=2, epsilon=1, coins=coins)


def distinct(coins):
    return pp.DistinctCount(expected=(1, 4), memory=1, epsilon=1, coins=coins)


def net(coins):
    arguments = {"expected": (1, 4), "memory": 2, "deletions": True, "bound": 2}
    return pp.DistinctCount(**arguments, epsilon=1, coins=coins)


KEYED = [
    *itertools.product((sampled, net), KEYS),
    pytest.param(distinct, KEYS[2], marks=pytest.mark.long),
]
"""Under the third key one of two users shares a bit of the distinct count, and the other does not:
there is nothing else that a key decides."""


@pytest.mark.parametrize(("make", "key"), KEYED, ids=_named)
def test_the_claim_holds_for_every_key(make, key):
    streams = [([[(user, 1), (2, 1)]], [[(2, 1)]]) for user in range(2)]
    assert worst_loss(make, streams, coins=EnumeratedCoins(key)).within(1)


def test_the_key_of_the_distinct_count_has_users_share_a_bit_and_not():
    coins = EnumeratedCoins(KEYS[2])
    next(iter(coins))
    slots = next(distinct(coins).internals.memory.addressing.slots(read_ids(np.arange(3)))).tolist()
    assert slots[1] == slots[2] != slots[0]


def in_sample(coins):
    """Which users of the sampled density have a cell."""
    addressing = sampled(coins).internals.memory.addressing
    users = read_ids(np.arange(5))
    return (np.concatenate(list(addressing.slots(users))) >= 0).tolist()


@pytest.mark.long
@pytest.mark.parametrize("key", KEYS, ids=_named)
def test_a_user_outside_of_the_sample_loses_nothing(key):
    chosen = in_sample(EnumeratedCoins(key))
    assert sum(chosen) == 2
    for user in range(5):
        stream, neighbour = [[user], RELEASE, [user]], [[], RELEASE, []]
        loss = exact_loss(sampled, stream, neighbour, coins=EnumeratedCoins(key, tail=2))
        assert (loss.epsilon > 0) == chosen[user]


HISTORIES = list(itertools.product([None, 1, -1], repeat=2))
"""What a user does last before and after a look, ahead of a release; the audit takes every look."""
PAIRS = list(itertools.combinations(HISTORIES, 2))


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_no_two_histories_lose_more_than_the_formula(pair):
    budget = pp.Budget(state=Fraction(3, 5), release=Fraction(2, 5))
    stream, neighbour = ([*map(events, history), RELEASE] for history in pair)
    loss = exact_loss(
        lambda coins: pp.Density(universe=1, epsilon=1, budget=budget, coins=coins),
        stream,
        neighbour,
        coins=EnumeratedCoins(tail=2),
    )
    t = math.tanh(0.3)
    assert loss.epsilon <= 0.6 + math.log((1 - t) / 2 + (1 + t) / 2 * math.exp(0.4)) + 1e-12


def events(delta):
    return [] if delta is None else [(0, delta)]


@pytest.mark.parametrize("names", [1, 2, 3, 5, 20])
def test_what_kind_of_counts_is_released_does_not_depend_on_the_stream(names):
    def published(users, deltas):
        visits = pp.Incidence(universe=1_000, bound=20, epsilon=1)
        visits.update(users, deltas)
        return len(visits.release(exactly=range(names)).counts)

    sizes = {
        published([], []),
        published(np.arange(1_000), np.full(1_000, 20)),
        published(np.arange(500), np.arange(500) % 20),
    }
    assert len(sizes) == 1
    assert (sizes == {names}) == (names <= 3)


def test_a_bound_of_the_exponential_is_as_near_as_its_page_says():
    below, above = exp_bounds(Fraction(10_000))
    assert above / below < 1 + Fraction(3, 10**50)


@pytest.mark.parametrize("epsilon", ["1", "1/3", "2/3", "0.1234565", "123456.7", "1/1000000007"])
def test_a_printed_epsilon_is_no_smaller(epsilon):
    printed, exact = (
        Fraction(format_rounded_up(Fraction(epsilon)).replace(",", "")),
        Fraction(epsilon),
    )
    assert exact <= printed <= exact * (1 + Fraction(1, 10**5))


class Forgiving:
    """A program that goes on after a batch was refused."""

    def __init__(self, coins):
        self._inner = pp.Density(universe=4, epsilon=1, coins=coins)
        self.state = self._inner.state

    def update(self, users, deltas):
        with suppress(pp.InputError):
            self._inner.update(users, deltas)


def test_a_row_that_cannot_be_counted_is_beyond_the_guarantee():
    """It takes its batch with it, and so tells about itself in the cells of all others."""
    others = [(0, 1), (1, 1), (2, 1)]
    loss = exact_loss(Forgiving, [[*others, (3, 7)]], [others])
    assert not loss.within(1)
