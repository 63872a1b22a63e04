"""Routing: the hash that replaces a user's id in a cluster, and the shard the user belongs to.

>>> router = Router(2, b"sixteen letters!", numbered=False)
>>> router.shards_of(["ada", "grace", "alan", "7"]).tolist()
[0, 1, 1, 1]
>>> router.shards_of([7]).tolist()
[1]

No id leaves the sender: a shard gets and counts 64 bits of its hash, the first of which show
that it is the right shard. So a text takes the same time to send and to count as a number. Two
users have the same hash with a probability of `2**-64`, and then count as one user. Users of a
declared universe are sent as their numbers; `slices` explains how they are dealt, and why.

The key is public within the cluster: anybody who knows it and sees a hash can test whose it is.
Privacy holds for each key; an attacker who knows it can choose ids that go to one shard, or that
collide, which costs accuracy and speed. It differs from the keys of all tables: users divided by
one hash would not be spread over cells by the same hash.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from numpy import uint64
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.ground.kernels import kernel, read_only
from panprivacy.privacy.noise import wipe
from panprivacy.tables.hashing import hash_byte_strings, hash_integers, key_words, multiply_high
from panprivacy.tables.ids import (
    CodedIds,
    Ids,
    IntegerIds,
    Labels,
    gatherable,
    read_ids,
    rows_by_code,
)
from panprivacy.tables.slices import ShardNumbers, Slice, deal


class Router:
    """Router that assigns users to shards, the same in the gateway and in each shard.

    Args:
        shards: number of shards.
        key: 16 random bytes, drawn once for a cluster; not the key of any table.
        numbered: whether ids number the users of a universe, see `programs.counting.numbered`.

    Raises:
        PlanError: there are too few or too many shards, or the key has another length.
    """

    def __init__(self, shards: int, key: bytes, *, numbered: bool) -> None:
        self._slices = Slice(0, shards, key)
        self._numbered = numbered

    @property
    def shards(self) -> int:
        """Number of shards."""
        return self._slices.shards

    @property
    def key(self) -> bytes:
        """Key of the routing, which is public."""
        return self._slices.key

    @property
    def numbered(self) -> bool:
        """Whether ids number the users of a universe."""
        return self._numbered

    def slice(self, shard: int) -> Slice:
        """Return the slice for which the statistics of one shard are made."""
        return Slice(shard, self.shards, self.key)

    def shards_of(self, ids: Labels) -> ShardNumbers:
        """Return the shard of each row, from 0.

        Args:
            ids: ids of users, as a statistic takes them.

        Raises:
            InputError: a null or a wrong type. The message names the row, never the id.
        """
        found = [self._shards_of(self._encode(chunk)) for chunk in read_ids(ids)]
        return np.concatenate(found) if found else np.empty(0, np.uint16)

    def hashed(self, batch: pa.RecordBatch, column: int) -> pa.RecordBatch:
        """Return rows as they are sent: each id is replaced by its hash, int64, or a user's number.

        Args:
            batch: the rows.
            column: index of the column of ids.

        Raises:
            InputError: see `shards_of`.
        """
        (ids,) = read_ids(batch.column(column))
        sent = pa.array(self._encode(ids), pa.int64())
        return batch.set_column(column, batch.schema.names[column], sent)

    def split(self, batch: pa.RecordBatch, column: int) -> list[pa.RecordBatch | None]:
        """Return the rows of each shard, in their order; None for a shard without rows.

        Args:
            batch: rows as returned by `hashed`.
            column: index of the column of ids.

        Raises:
            InputError: the ids are no hashes.
        """
        parts: list[pa.RecordBatch | None] = [None] * self.shards
        if not batch.num_rows:
            return parts
        shards = self._shards_of(self._encode_column(batch, column))
        rows, ends = rows_by_code(shards, self.shards)
        columns = [gatherable(one) for one in batch.columns]
        for shard, (start, end) in enumerate(itertools.pairwise([0, *ends.tolist()])):
            if end - start == batch.num_rows:
                parts[shard] = batch
            elif end > start:
                chosen = pa.array(rows[start:end])
                taken = [one.take(chosen) for one in columns]
                parts[shard] = pa.RecordBatch.from_arrays(taken, names=batch.schema.names)
        wipe(shards, rows)
        return parts

    def check(self, batch: pa.RecordBatch, column: int, shard: int) -> None:
        """Check that no row belongs to another shard, where its user would be counted separately.

        Raises:
            InputError: a row does, and the message names the row; or see `split`.
        """
        sent = self._encode_column(batch, column)
        if self._numbered:
            others = np.flatnonzero(deal(sent, self.shards, self.key) != shard)
            row = int(others[0]) if others.size else -1
        else:
            row = _first_elsewhere(sent, uint64(self.shards), uint64(shard))
        if row >= 0:
            message = "the row belongs to another shard: route by the key of this cluster"
            raise InputError(message, row=row + 1)

    def _encode_column(self, batch: pa.RecordBatch, column: int) -> NDArray[np.int64]:
        """Return the hashes or numbers that replace the ids in a batch."""
        if batch.schema.types[column] != pa.int64():
            message = "the ids are not as they are sent to a shard: send by a Publisher"
            raise InputError(message)
        (ids,) = read_ids(batch.column(column))
        return _integers(ids)

    def _encode(self, ids: Ids) -> NDArray[np.int64]:
        """Return the hashes or numbers that are sent in place of ids."""
        if self._numbered:
            return _integers(ids)
        if isinstance(ids, CodedIds):
            words = self._encode(ids.values)
            found = words[ids.codes]
            wipe(words)
            return found
        hashes = np.empty(len(ids) + 1, np.uint64)[:-1]  # does not fill its block; see `allocator`
        if isinstance(ids, IntegerIds):
            hash_integers(ids.values, *key_words(self.key), hashes)
        else:
            hash_byte_strings(ids.offsets, ids.data, *key_words(self.key), hashes)
        return hashes.view(np.int64)

    def _shards_of(self, sent: NDArray[np.int64]) -> ShardNumbers:
        """Return the shard of each hash or number."""
        if self._numbered:
            return deal(sent, self.shards, self.key)
        shards = np.empty(len(sent), np.uint16)
        _reduce(sent, uint64(self.shards), shards)
        return shards


def _integers(ids: Ids) -> NDArray[np.int64]:
    if not isinstance(ids, IntegerIds):
        message = "a declared universe takes whole-number ids, from 0"
        raise InputError(message)
    return ids.values


@kernel(f"void({read_only('int64')}, uint64, uint16[::1])")
def _reduce(hashes: NDArray[np.int64], shards: np.uint64, found: ShardNumbers) -> None:
    """Write the shard of each hash: nearly the same number of hashes map to each shard."""
    for row in range(hashes.size):
        found[row] = multiply_high(uint64(hashes[row]), shards)


@kernel(f"int64({read_only('int64')}, uint64, uint64)")
def _first_elsewhere(hashes: NDArray[np.int64], shards: np.uint64, shard: np.uint64) -> int:
    """Return the first row of another shard, from 0; -1 if there is none."""
    strange = 0
    for row in range(hashes.size):
        strange |= multiply_high(uint64(hashes[row]), shards) != shard
    if not strange:
        return -1
    for row in range(hashes.size):
        if multiply_high(uint64(hashes[row]), shards) != shard:
            return row
    return -1
