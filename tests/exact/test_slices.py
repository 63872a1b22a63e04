"""What a user of a cluster of two shards loses by looks and answers of the whole table; exact."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.audit.shards import CoinsOf, PlainSums, TwoSlices
from panprivacy.cluster.routing import Router
from panprivacy.intake.programs.counting import intrusions_of_slices
from panprivacy.tables.slices import Slice

ANSWERED = [RELEASE, RELEASE]
"""The contributions leave, and then the answer."""

ONE, OTHER = 0, 1
"""Users of two shards."""


class Routed(TwoSlices):
    """Users of whom nobody knows who might come: a router hashes their ids."""

    def shards_of(self, users):
        return Router(2, self.KEY, numbered=False).shards_of(list(users))


class InBoth(TwoSlices):
    """A router that sends each row to both shards."""

    def update(self, users, deltas=()):
        for shard in self._shards:
            shard.update(list(users), list(deltas))


class NoNoise(TwoSlices, PlainSums):
    """A coordinator that forgets the output noise."""


def density(coins, slice_, **given):
    return pp.Density(universe=3, epsilon=1, coins=coins, slice_=slice_, **given)


def hashed(coins, slice_):
    """A count in four counters modulo 3, one of each level in each slice."""
    sizes = {"expected": (1, 4), "memory": 4, "deletions": True, "bound": 2}
    return pp.DistinctCount(**sizes, epsilon=1, coins=coins, slice_=slice_)


def lost(cluster, make, *batches, coins=None, answered=ANSWERED):
    """The worst loss of one user."""
    stream = [*batches, *answered]
    neighbour = [
        batch if isinstance(batch, str) else [row for row in batch if row[0] != ONE]
        for batch in stream
    ]
    own = coins or EnumeratedCoins(tail=4)
    return exact_loss(lambda coins: cluster(make, coins), stream, neighbour, coins=own)


COME, GO = [(ONE, 1), (OTHER, 1)], [(ONE, -1)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("cluster", "make"),
    [(TwoSlices, density), pytest.param(Routed, hashed, marks=pytest.mark.slow)],
    ids=["universe", "hashed"],
)
def test_a_user_of_a_cluster_loses_epsilon(cluster, make):
    loss = lost(cluster, make, COME, GO)
    assert loss.within(1)
    assert loss.epsilon > 0.8


@pytest.mark.long
def test_a_user_who_is_routed_to_both_shards_loses_twice_as_much():
    loss = lost(InBoth, density, [(ONE, 1)], GO)
    assert loss.within(2)
    assert not loss.within(Fraction(3, 2))


@pytest.mark.long
def test_sums_without_output_noise_are_a_second_look():
    assert lost(NoNoise, density, COME, GO).epsilon == math.inf


class Twins(TwoSlices):
    """A process of one shard was replaced, and still counts; an intruder finds both."""

    def __init__(self, make, coins):
        super().__init__(make, coins)
        (shard,) = self.shards_of([ONE]).tolist()
        self._twin = make(CoinsOf(coins, shard), Slice(shard, 2, self.KEY))
        self._twin.resume(self._shards[shard].state())

    def update(self, users, deltas=()):
        super().update(users, deltas)
        self._twin.update(list(users), list(deltas))

    def state(self):
        return super().state() + self._twin.state()


def test_two_processes_of_one_shard_show_who_came_since_they_parted():
    assert lost(Twins, density, [(ONE, 1)], answered=[]).epsilon == math.inf


class GoesOn(TwoSlices):
    """Slices that go on after a release, and a look that finds its contributions beside them."""

    def release(self):
        self._held = [shard.contribute() for shard in self._shards]
        return pp.merge(self._held, coins=self._coins)


@pytest.mark.long
def test_each_release_is_an_announced_look_at_the_slices():
    """Contributions of one release and the slices after it are seen at once, as two looks."""
    make = partial(density, releases=2, intrusions=intrusions_of_slices(2, 0))
    loss = lost(GoesOn, make, [(ONE, 1)], RELEASE, GO, answered=[])
    assert loss.within(1)
    assert loss.epsilon > 0.6


@pytest.mark.slow
def test_a_look_before_a_contribution_of_the_same_epoch_that_is_seen_is_one_too_many():
    """The condition of the claim: one look at each slice in each of its epochs."""

    class Watched(GoesOn):
        seen = b""

        def update(self, users, deltas=()):
            super().update(users, deltas)
            self.seen = self.seen or super().state()

        def state(self):
            return self.seen + super().state()

    make = partial(density, releases=2, intrusions=intrusions_of_slices(2, 0))
    stream = [(ONE, 1)], [(ONE, 1)], RELEASE
    assert lost(Watched, make, *stream, answered=[]).epsilon > 2
