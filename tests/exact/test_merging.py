"""What users of one shard, and of two, lose by looks and by a merged answer; exact."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.audit.shards import TwoShards

RELEASED = [RELEASE, RELEASE]
"""The contributions leave, and then the answer."""

KEY = bytes(16)
BUDGET = pp.Budget(state=Fraction(3, 4), release=Fraction(1, 4))


def net(coins):
    """A count in two counters modulo 3, whose tables are read side by side."""
    sizes = {"expected": (1, 4), "memory": 2, "deletions": True, "bound": 2}
    return pp.DistinctCount(**sizes, epsilon=1, budget=BUDGET, coins=coins, key=KEY)


def lost(form, *batches):
    """The worst loss of user 5."""
    stream = [*batches, *RELEASED]
    neighbour = [*([row for row in batch if row[0] != 5] for batch in batches), *RELEASED]
    coins = EnumeratedCoins(tail=4)
    return exact_loss(lambda coins: TwoShards(net, coins, form), stream, neighbour, coins=coins)


@pytest.mark.long
@pytest.mark.parametrize("form", ["sums", "cells"])
def test_a_user_of_one_shard_loses_epsilon(form):
    loss = lost(form, [(5, 0, 1), (6, 1, 1)], [(5, 0, 1)])
    assert loss.within(1)
    assert loss.epsilon > 0.8


@pytest.mark.slow
def test_a_user_of_both_shards_loses_epsilon_in_each_where_sums_are_merged():
    loss = lost("sums", [(5, 0, 1), (5, 1, 2)], [(5, 0, -1), (5, 1, -1)])
    assert loss.within(2)
    assert not loss.within(Fraction(3, 2))


@pytest.mark.long
def test_a_user_of_both_shards_loses_the_looks_and_one_release_where_cells_are_added_up():
    loss = lost("cells", [(5, 0, 1), (5, 1, 2)], [(5, 0, -1), (5, 1, -1)])
    assert loss.within(1 + BUDGET.state)
    assert not loss.within(Fraction(3, 2))


@pytest.mark.slow
def test_where_cells_have_no_end_a_user_of_both_shards_loses_a_release_in_each():
    """He is in one shard at its look, then in the other; the release is off by both, and more."""
    budget = pp.Budget(state=1, release=1)

    def total(coins):
        sizes = {"order": 1, "bound": 1, "expected": (1, 2)}
        return pp.FrequencyMoment(**sizes, epsilon=2, budget=budget, coins=coins, key=KEY)

    class LookedAt(TwoShards):
        """The state of one shard is seen after the first batch, of the other after the second."""

        def __init__(self, *given):
            super().__init__(*given)
            self.seen = []

        def update(self, users, shards=(), deltas=()):
            super().update(users, shards, deltas)
            if len(self.seen) < 2:
                self.seen.append(self._shards[len(self.seen)].state())

        def state(self):
            return b"".join(self.seen)

    stream = [[(5, 0, 1)], [(5, 0, -1), (5, 1, 1)], [(5, 1, -1), (5, 0, 1), (5, 0, -1)]]
    neighbour = [[], [], [(5, 0, 1)]]
    coins = EnumeratedCoins(tail=14, state_tail=1)
    loss = exact_loss(
        lambda own: LookedAt(total, own, "cells"),
        [*stream, *RELEASED],
        [*neighbour, *RELEASED],
        coins=coins,
    )
    assert loss.within(4)
    assert not loss.within(Fraction(34, 10))  # 3 would be the looks and one release


def test_who_sees_a_shard_and_its_contribution_has_looked_twice():
    """The condition of the claim: a contribution is the look at its shard."""

    class Watched(TwoShards):
        """What the state was before the shards contributed stays where the intruder finds it."""

        def __init__(self, *given):
            super().__init__(*given)
            self.seen = b""

        def update(self, users, shards=(), deltas=()):
            super().update(users, shards, deltas)
            self.seen = self.seen or super().state()

        def state(self):
            return self.seen + super().state()

    def loss(stream):
        neighbour = [[], [], RELEASE]
        coins = EnumeratedCoins(tail=4)
        return exact_loss(lambda own: Watched(net, own), [*stream, RELEASE], neighbour, coins=coins)

    assert loss([[(5, 0, 1)], [(5, 0, 1)]]).epsilon == float("inf")
