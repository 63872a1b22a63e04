"""What stands for a user in a cluster, and to which shard he belongs.

>>> router = Router(2, b"sixteen letters!", numbered=False)
>>> router.shards_of(["ada", "grace", "alan", "7"]).tolist()
[0, 1, 1, 1]
>>> router.shards_of([7]).tolist()
[1]

No id leaves who sends: a shard gets and counts 64 bits of its hash, the first of which say that it
is the right shard. So a text takes as long to send and to count as a number. Two users have one
hash with a probability of `2**-64`, and are one user then. Those of a declared universe are sent as
the numbers that they are; `slices` says how they are dealt, and why.

The key is public within the cluster: who knows it and sees a hash can test whose it is. Privacy
holds for each key; who knows it can choose ids that come to one shard, or that are one user, which
costs accuracy and speed. It is none of those of the tables: what one hash has divided would not be
spread over cells by the same hash.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from numpy import uint64
from numpy.typing import NDArray

from panprivacy._kernels import kernel, read_only
from panprivacy.errors import InputError
from panprivacy.hashing import hash_byte_strings, hash_integers, key_words, multiply_high
from panprivacy.ids import CodedIds, Ids, IntegerIds, Labels, gatherable, read_ids, rows_by_code
from panprivacy.noise import wipe
from panprivacy.slices import ShardNumbers, Slice, deal


class Router:
    """Says to which shard a user belongs, the same in the gateway and in each shard.

    Args:
        shards: how many there are.
        key: 16 random bytes, drawn once for a cluster; not those of any table.
        numbered: whether ids number the users of a universe, as `programs.counting.numbered` says.

    Raises:
        PlanError: there are too few or too many shards, or the key has another length.
    """

    def __init__(self, shards: int, key: bytes, *, numbered: bool) -> None:
        self._slices = Slice(0, shards, key)
        self._numbered = numbered

    @property
    def shards(self) -> int:
        """How many there are."""
        return self._slices.shards

    @property
    def key(self) -> bytes:
        """That of the routing, which is public."""
        return self._slices.key

    @property
    def numbered(self) -> bool:
        """Whether ids number the users of a universe."""
        return self._numbered

    def slice(self, shard: int) -> Slice:
        """What the statistics of one shard are made for."""
        return Slice(shard, self.shards, self.key)

    def shards_of(self, ids: Labels) -> ShardNumbers:
        """The shard of each row, from 0.

        Args:
            ids: of users, as a statistic takes them.

        Raises:
            InputError: a null or a wrong type. The message names the row, never the id.
        """
        found = [self._shards_of(self._sent(chunk)) for chunk in read_ids(ids)]
        return np.concatenate(found) if found else np.empty(0, np.uint16)

    def hashed(self, batch: pa.RecordBatch, column: int) -> pa.RecordBatch:
        """Rows as they are sent: the hash of each id in its place, int64, or a user's number.

        Args:
            batch: rows.
            column: place of the ids.

        Raises:
            InputError: as for `shards_of`.
        """
        (ids,) = read_ids(batch.column(column))
        sent = pa.array(self._sent(ids), pa.int64())
        return batch.set_column(column, batch.schema.names[column], sent)

    def split(self, batch: pa.RecordBatch, column: int) -> list[pa.RecordBatch | None]:
        """The rows of each shard, in their order; None for a shard that has none.

        Args:
            batch: rows as `hashed` gives them.
            column: place of the ids.

        Raises:
            InputError: ids that are no hashes.
        """
        parts: list[pa.RecordBatch | None] = [None] * self.shards
        if not batch.num_rows:
            return parts
        shards = self._shards_of(self._sent_in(batch, column))
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
        """Refuse a batch with a row of another shard: its user would count, and lose, in two.

        Raises:
            InputError: there is one, and the message names the row; or as for `split`.
        """
        sent = self._sent_in(batch, column)
        if self._numbered:
            others = np.flatnonzero(deal(sent, self.shards, self.key) != shard)
            row = int(others[0]) if others.size else -1
        else:
            row = _first_elsewhere(sent, uint64(self.shards), uint64(shard))
        if row >= 0:
            message = "the row belongs to another shard: route by the key of this cluster"
            raise InputError(message, row=row + 1)

    def _sent_in(self, batch: pa.RecordBatch, column: int) -> NDArray[np.int64]:
        """What stands in a batch in place of ids."""
        if batch.schema.types[column] != pa.int64():
            message = "the ids are not as they are sent to a shard: send by a Publisher"
            raise InputError(message)
        (ids,) = read_ids(batch.column(column))
        return _whole(ids)

    def _sent(self, ids: Ids) -> NDArray[np.int64]:
        """What is sent in place of ids."""
        if self._numbered:
            return _whole(ids)
        if isinstance(ids, CodedIds):
            words = self._sent(ids.values)
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
        """The shard of each, by what is sent."""
        if self._numbered:
            return deal(sent, self.shards, self.key)
        shards = np.empty(len(sent), np.uint16)
        _reduce(sent, uint64(self.shards), shards)
        return shards


def _whole(ids: Ids) -> NDArray[np.int64]:
    if not isinstance(ids, IntegerIds):
        message = "a declared universe takes whole-number ids, from 0"
        raise InputError(message)
    return ids.values


@kernel(f"void({read_only('int64')}, uint64, uint16[::1])")
def _reduce(hashes: NDArray[np.int64], shards: np.uint64, found: ShardNumbers) -> None:
    """Write the shard of each hash: as many hashes lead to one as to another, nearly."""
    for row in range(hashes.size):
        found[row] = multiply_high(uint64(hashes[row]), shards)


@kernel(f"int64({read_only('int64')}, uint64, uint64)")
def _first_elsewhere(hashes: NDArray[np.int64], shards: np.uint64, shard: np.uint64) -> int:
    """The first row of another shard, from 0; -1 if there is none."""
    strange = 0
    for row in range(hashes.size):
        strange |= multiply_high(uint64(hashes[row]), shards) != shard
    if not strange:
        return -1
    for row in range(hashes.size):
        if multiply_high(uint64(hashes[row]), shards) != shard:
            return row
    return -1
