"""Two shards and who merges them, so small that the exact audit walks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.coins import Coins
from panprivacy.hashing import KEY_BYTES
from panprivacy.merging import merge
from panprivacy.slices import ShardNumbers, Slice, deal
from panprivacy.statistics.contribution import Form, read_parts
from panprivacy.statistics.private import Private


@dataclass(frozen=True, slots=True)
class CoinsOf:
    """The coins of one shard: keys are public constants in an audit, and shards need two.

    Args:
        coins: of all shards.
        shard: its number.
    """

    coins: EnumeratedCoins
    shard: int

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:
        """As those of all."""
        return self.coins.bernoulli(probability, size)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
        """As those of all."""
        return self.coins.categorical(weights, size)

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """As those of all."""
        return self.coins.discrete_laplace(scale, size)

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """As those of all."""
        return self.coins.discrete_gaussian(variance, size)

    def key(self, nbytes: int) -> bytes:
        """One that no other shard has."""
        return bytes([self.shard]) * nbytes


@dataclass(frozen=True, slots=True)
class Contributed:
    """What the public sees when shards contribute.

    Args:
        counts: numbers that leave then: none, if nothing is wrong.
    """

    counts: tuple[int, ...]


class TwoShards:
    """Two shards; a row has a user, his shard and a delta. They contribute at the first release.

    At the second one the answer leaves. In between their contributions are all there is to find.

    Args:
        make: makes the statistic of a shard with the coins it is given.
        coins: of everything.
        form: of contributions.
    """

    def __init__(
        self, make: Callable[[CoinsOf], Private], coins: EnumeratedCoins, form: Form = "sums"
    ) -> None:
        self._coins, self._form = coins, form
        self._shards = [make(CoinsOf(coins, shard)) for shard in (0, 1)]
        self._held: list[bytes] = []

    def update(
        self, users: Sequence[int], shards: Sequence[int] = (), deltas: Sequence[int] = ()
    ) -> None:
        """Count each user in his shard."""
        rows = np.array([users, shards, deltas], np.int64)
        for number, shard in enumerate(self._shards):
            ids, _, changes = rows[:, rows[1] == number]
            shard.update(ids.copy(), changes.copy())

    def release(self) -> Any:
        """The contributions leave, or else their answer."""
        if self._shards:
            parts = [shard.parts(self._form) for shard in self._shards]
            self._held = [b"".join(part.packed() for part in each) for each in parts]
            self._shards = []
            return self.contributed(self._held)
        held, self._held = self._held, []
        return merge(held, coins=self._coins)

    def contributed(self, held: Sequence[bytes]) -> Contributed:  # noqa: ARG002
        """What is public of contributions: nothing, as they are sealed."""
        return Contributed(())

    def state(self) -> bytes:
        """What an intruder finds, at the shards and where they are merged."""
        return b"".join([*(shard.state() for shard in self._shards), *self._held])


class TwoSlices(TwoShards):
    """Two shards of a cluster with a slice each; a row has a user, a number, and a delta.

    Args:
        make: makes the slice of a shard with the coins it is given.
        coins: of everything.
    """

    KEY = bytes(KEY_BYTES)

    def __init__(self, make: Callable[[Coins, Slice], Private], coins: EnumeratedCoins) -> None:
        super().__init__(lambda own: make(own, Slice(own.shard, 2, self.KEY)), coins)

    def update(self, users: Sequence[int], deltas: Sequence[int] = ()) -> None:  # type: ignore[override]
        """Count each user in the shard to which he belongs."""
        super().update(users, self.shards_of(users).tolist(), deltas)

    def shards_of(self, users: Sequence[int]) -> ShardNumbers:
        """To which shards rows belong."""
        return deal(np.array(users, np.int64), 2, self.KEY)


class PlainSums(TwoShards):
    """The same, but that sums leave the shards as they are, for everybody to see."""

    def contributed(self, held: Sequence[bytes]) -> Contributed:
        """The sums."""
        sums = [np.frombuffer(part.body, np.int64) for one in held for part in read_parts(one)]
        return Contributed(tuple(np.concatenate(sums).tolist()))
