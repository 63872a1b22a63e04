"""The shard of a user, and the slice of a table that a shard holds.

Each user belongs to one shard, by a public key, so the slices of all shards are one table. Users of
a declared universe are numbers, and each shard has cells for its own numbers alone: numbers are
dealt in rounds of one to each shard, and the key says with which shard a round begins. So shards
hold equal shares, and ids that come in steps of 2 or 10 do not all come to one shard.

>>> import numpy as np
>>> slices = [Slice(shard, 2, bytes(16)) for shard in range(2)]
>>> [one.share(7) for one in slices]
[3, 4]
>>> deal(np.arange(7), 2, bytes(16)).tolist()
[1, 0, 0, 1, 0, 1, 1]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.kernels import kernel, read_only
from panprivacy.ground.validation import whole_number
from panprivacy.tables.hashing import KEY_BYTES, hash_word, key_words, multiply_high, scalar

MOST_SHARDS = 65_535

ShardNumbers = NDArray[np.uint16]
"""The shard of each row, from 0."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The slice of one shard: the cells of the users that belong to it.

    Args:
        shard: its number, from 0.
        shards: number of shards.
        key: 16 bytes, public, the same for all shards: who belongs to which.

    Raises:
        PlanError: there is no such shard, or the key has another length.
    """

    shard: int
    shards: int
    key: bytes

    def __post_init__(self) -> None:
        whole_number(1, MOST_SHARDS, shards=self.shards)
        whole_number(0, self.shards - 1, shard=self.shard)
        if not isinstance(self.key, bytes) or len(self.key) != KEY_BYTES:
            message = f"the key of routing must be {KEY_BYTES} bytes, the same for all shards"
            raise PlanError(message)

    def __str__(self) -> str:
        return f"{self.shard + 1} of {self.shards}"

    def share(self, number: int) -> int:
        """Return how many of the numbers 0 .. number-1 are dealt to this shard."""
        rounds = number // self.shards
        last = deal(np.arange(rounds * self.shards, number), self.shards, self.key)
        return rounds + int(np.count_nonzero(last == self.shard))


def deal(numbers: NDArray[np.int64], shards: int, key: bytes) -> ShardNumbers:
    """Return the shard of each number.

    The place of a number within its shard is its round, `number // shards`.
    """
    dealt = np.empty(len(numbers), np.uint16)
    _deal(numbers, uint64(shards), *key_words(key), dealt)
    return dealt


@kernel(f"void({read_only('int64')}, uint64, uint64, uint64, uint16[::1])")
def _deal(
    numbers: NDArray[np.int64],
    shards: np.uint64,
    key_0: np.uint64,
    key_1: np.uint64,
    dealt: ShardNumbers,
) -> None:
    """Write the shard of each number: its place in its round, turned by the hash of the round."""
    for row in range(numbers.size):
        number = uint64(numbers[row])
        rounds = number // shards
        shard = number - rounds * shards
        shard += multiply_high(scalar(hash_word(rounds, key_0, key_1)), shards)
        dealt[row] = shard - shards if shard >= shards else shard
