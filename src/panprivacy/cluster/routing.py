"""To which shard of a cluster each row belongs, by whose it is.

>>> router = Router(2, b"sixteen letters!", numbered=False)
>>> router.shards_of(["ada", "grace", "alan", "7"]).tolist()
[0, 1, 1, 1]
>>> router.shards_of([7]).tolist()
[1]

The key is public within the cluster. Privacy holds for each key; who knows it can aim ids at one
shard, which costs accuracy and speed. It is none of those of the tables: ids that one hash has
divided would not be spread over cells by the same hash.

`slices` says how the users of a declared universe are dealt, and why.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from numpy import uint64
from numpy.typing import NDArray

from panprivacy._kernels import kernel, read_only
from panprivacy.errors import InputError
from panprivacy.hashing import hash_byte_strings, hash_word, key_words, multiply_high, scalar
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
        found = [self._shards_of(chunk) for chunk in read_ids(ids)]
        return np.concatenate(found) if found else np.empty(0, np.uint16)

    def split(self, batch: pa.RecordBatch, column: int | None) -> list[pa.RecordBatch | None]:
        """The rows of each shard, in their order; None for a shard that has none.

        Args:
            batch: rows.
            column: place of the ids; None if rows have none.

        Raises:
            InputError: as for `shards_of`; or rows have no ids, so that those of one user could
                come to several of the shards.
        """
        parts: list[pa.RecordBatch | None] = [None] * self.shards
        if not batch.num_rows:
            return parts
        shards = self._shards_of_rows(batch, column)
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

    def check(self, batch: pa.RecordBatch, column: int | None, shard: int) -> None:
        """Refuse a batch with a row of another shard: its user would count, and lose, in two.

        Raises:
            InputError: there is one; the message names the row.
        """
        if self.shards == 1:
            return
        strange = self._shards_of_rows(batch, column) != shard
        if strange.any():
            message = "the row belongs to another shard: route by the key of this cluster"
            raise InputError(message, row=int(np.argmax(strange)) + 1)

    def _shards_of_rows(self, batch: pa.RecordBatch, column: int | None) -> ShardNumbers:
        """The shard of each row of a batch; without ids there is one shard for all, or none."""
        if column is None and self.shards == 1:
            return np.zeros(batch.num_rows, np.uint16)
        if column is None:
            message = "rows without a user id belong to no shard: name the column of the ids"
            raise InputError(message)
        return self.shards_of(batch.column(column))

    def _shards_of(self, ids: Ids) -> ShardNumbers:
        if self._numbered:
            if not isinstance(ids, IntegerIds):
                message = "a declared universe takes whole-number ids, from 0"
                raise InputError(message)
            return deal(ids.values, self.shards, self.key)
        if isinstance(ids, CodedIds):
            return self._shards_of(ids.values)[ids.codes]
        shards, count, words = (
            np.empty(len(ids), np.uint16),
            uint64(self.shards),
            key_words(self.key),
        )
        row = 0
        for piece in ids.pieces():
            found = shards[row : row + len(piece)]
            row += len(piece)
            if isinstance(piece, IntegerIds):
                _route(piece.values, count, *words, found)
                continue
            hashes = np.empty(len(piece) + 1, np.uint64)[:-1]
            hash_byte_strings(piece.offsets, piece.data, *words, hashes)
            _reduce(hashes, count, found)
            wipe(hashes)
        return shards


@kernel(f"void({read_only('int64')}, uint64, uint64, uint64, uint16[::1])")
def _route(
    ids: NDArray[np.int64],
    shards: np.uint64,
    key_0: np.uint64,
    key_1: np.uint64,
    found: ShardNumbers,
) -> None:
    """Write the shard of each number; the same as of its hash, which is not kept."""
    for row in range(ids.size):
        found[row] = multiply_high(scalar(hash_word(uint64(ids[row]), key_0, key_1)), shards)


@kernel("void(uint64[::1], uint64, uint16[::1])")
def _reduce(hashes: NDArray[np.uint64], shards: np.uint64, found: ShardNumbers) -> None:
    """Write the shard of each hash: as many hashes lead to one as to another, nearly."""
    for row in range(hashes.size):
        found[row] = multiply_high(scalar(hashes[row]), shards)
