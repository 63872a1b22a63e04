"""Two shards and their merger, small enough for the exact audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.privacy.coins import Coins
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.contribution import read_parts
from panprivacy.statistics.merging import merge
from panprivacy.statistics.private import Private
from panprivacy.tables.hashing import KEY_BYTES
from panprivacy.tables.slices import ShardNumbers, Slice, deal


@dataclass(frozen=True, slots=True)
class CoinsOf:
    """The coins of one shard: keys are public constants in an audit, and shards need two.

    Args:
        coins: coins of all shards.
        shard: its number.
    """

    coins: EnumeratedCoins
    shard: int

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:
        """Return draws of the common source."""
        return self.coins.bernoulli(probability, size)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
        """Return draws of the common source."""
        return self.coins.categorical(weights, size)

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return noise of the common source."""
        return self.coins.discrete_laplace(scale, size)

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """Return noise of the common source."""
        return self.coins.discrete_gaussian(variance, size)

    def key(self, nbytes: int) -> bytes:
        """Return a key that no other shard has."""
        return bytes([self.shard]) * nbytes


@dataclass(frozen=True, slots=True)
class Contributed:
    """The public view when shards contribute.

    Args:
        counts: numbers that leave then: none, if nothing is wrong.
    """

    counts: tuple[int, ...]


class TwoShards:
    """Two shards; a row has a user, a shard and a delta. They contribute at the first release.

    At the second one the answer is released. Between them only the contributions exist.

    Args:
        make: makes the statistic of a shard with the coins it is given.
        coins: source of all randomness.
        form: form of contributions.
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
        """Count each user in the user's shard."""
        rows = np.array([users, shards, deltas], np.int64)
        for number, shard in enumerate(self._shards):
            ids, _, changes = rows[:, rows[1] == number]
            shard.update(ids.copy(), changes.copy())

    def release(self) -> Any:
        """Release the contributions, or else their answer."""
        if self._shards:
            parts = [shard.internals.contributions.parts(self._form) for shard in self._shards]
            self._held = [b"".join(part.packed() for part in each) for each in parts]
            self._shards = []
            return self.contributed(self._held)
        held, self._held = self._held, []
        return merge(held, coins=self._coins)

    def contributed(self, held: Sequence[bytes]) -> Contributed:  # noqa: ARG002
        """Return the public part of contributions: nothing, as they are sealed."""
        return Contributed(())

    def state(self) -> bytes:
        """Return the state that an intruder finds, at the shards and where they are merged."""
        return b"".join([*(shard.state() for shard in self._shards), *self._held])


class TwoSlices(TwoShards):
    """Two shards of a cluster with a slice each; a row has a user, a number, and a delta.

    Args:
        make: makes the slice of a shard with the coins it is given.
        coins: source of all randomness.
    """

    KEY = bytes(KEY_BYTES)

    def __init__(self, make: Callable[[Coins, Slice], Private], coins: EnumeratedCoins) -> None:
        super().__init__(lambda own: make(own, Slice(own.shard, 2, self.KEY)), coins)

    def update(self, users: Sequence[int], deltas: Sequence[int] = ()) -> None:  # type: ignore[override]
        """Count each user in the shard of that user."""
        super().update(users, self.shards_of(users).tolist(), deltas)

    def shards_of(self, users: Sequence[int]) -> ShardNumbers:
        """Return the shard of each row."""
        return deal(np.array(users, np.int64), 2, self.KEY)


class PlainSums(TwoShards):
    """The same, but that sums leave the shards as they are, for everybody to see."""

    def contributed(self, held: Sequence[bytes]) -> Contributed:
        """Return the sums."""
        sums = [np.frombuffer(part.body, np.int64) for one in held for part in read_parts(one)]
        return Contributed(tuple(np.concatenate(sums).tolist()))


class ContributedWindows:
    """Windows of one shard, each of which contributes at its release.

    Whoever opens the contributions has all of them: they stay to be found.

    Args:
        make: makes the statistic of a window with the coins it is given.
        coins: of everything.
    """

    def __init__(self, make: Callable[[Coins], Private], coins: Coins) -> None:
        self._make, self._coins = make, coins
        self._current: Private | None = make(coins)
        self._held: list[bytes] = []

    def update(self, users: Any, deltas: Any = None, /) -> None:
        """Count in the open window; the first batch after a release begins one."""
        if self._current is None:
            self._current = self._make(self._coins)
        self._current.update(users, deltas)

    def release(self) -> Any:
        """Contribute the window; its answer follows from what is opened, and from fresh noise."""
        if self._current is None:
            self._current = self._make(self._coins)
        parts = self._current.internals.contributions.parts("sums")
        self._held.append(b"".join(part.packed() for part in parts))
        self._current = None
        return Contributed(())

    def state(self) -> bytes:
        """All contributions so far, and the state of the open window."""
        states = [] if self._current is None else [self._current.state()]
        return b"".join([*self._held, *states])
