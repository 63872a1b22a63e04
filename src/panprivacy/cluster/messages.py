"""Content of envelopes: parts of requests, in rounds that do not show which shard counts what.

The number of rows of a shard depends on the users they are of. So no message goes to one shard
alone: in each round every shard gets the same number of messages, of one length, even if no row
is for it.

Each id is replaced by its hash, see `routing`. A message is
`magic (8) | number of parts (8) | parts | zeros`, and a part is
`name (16) | length (8) | numbers (8) | content`, all little-endian and aligned to 8 bytes; a name
of zeros is no name. The content is `numbers` int64 values if the stream reads only ids, which are
then read at once; or an Arrow stream, where `numbers` is 0.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from panprivacy.cluster.envelopes import ENVELOPE_BYTES
from panprivacy.cluster.routing import Router
from panprivacy.errors import InputError, without_frames
from panprivacy.intake.sources import BodyReader, Column
from panprivacy.privacy.noise import wipe
from panprivacy.tables.ids import decoded, offset_type

_MAGIC: Final = b"ppround2"
_FRONT: Final = struct.Struct("<8sQ")
_PART: Final = struct.Struct("<16sQQ")
_NAMELESS: Final = bytes(16)
_WORD: Final = 8
_END_BYTES: Final = 8
"""Size of the end of an Arrow stream."""
_MOST_PART: Final = 1 << 19
"""Maximum size of a part; longer ones are cut at fixed rows, so a repeated part keeps its name."""
_SMALL_ROUND: Final = 1 << 16
"""Maximum size of a round in which every shard gets the length of the complete round."""
_LEADING_BITS: Final = 4
_LEAST_BYTES: Final = 256
_LEAST_MOST: Final = 1 << 13
_PART_BYTES: Final = 512
_COLUMN_BYTES: Final = 128
"""Upper bounds of the overhead of a part, and of each of its columns, beyond the rows."""

_Parts = Sequence[pa.RecordBatch | None]
"""The rows of each shard; None for a shard without rows."""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """Rows that are counted all together or not at all.

    Args:
        name: 16 bytes, the same if the part is sent again, and known to all shards; None if the
            sender gave none.
        batches: the rows, with the columns of the stream; empty if all rows are for other shards.
    """

    name: bytes | None
    batches: list[pa.RecordBatch]


class Round:
    """One round of messages to all shards of a stream.

    Guarantee: every shard gets the same number of messages, of the same lengths, with the same
    names. In a round of up to 64 KiB, lengths and names are functions of the rows and bytes that
    were added, regardless of their users. In a longer one, lengths also show, within an eighth, the
    size of the largest share of a shard.

    Args:
        router: assigns rows to shards.
        column: index of the column of ids.
        most: maximum size of an envelope in bytes, at least 8 KiB; `Broker.most_message`.

    Raises:
        InputError: `most` is too small.
    """

    def __init__(self, router: Router, column: int, most: int) -> None:
        if most < _LEAST_MOST:
            message = f"a message has room for {most:,} bytes: raise max_payload of the broker"
            raise InputError(message)
        self._router = router
        self._column = column
        self._most = _rounded_down(most - ENVELOPE_BYTES)
        self._most_part = min(_MOST_PART, self._most - _FRONT.size)
        self._room = _FRONT.size
        self._named: list[tuple[bytes, _Parts]] = []
        self._nameless: dict[pa.Schema, list[_Parts]] = {}

    def add(self, batches: Sequence[pa.RecordBatch], name: bytes | None = None) -> None:
        """Add one request.

        Args:
            batches: its rows, checked; they must not change until `pack` has been called.
            name: its name given by the sender, the same if it is sent again.

        Raises:
            InputError: a row cannot be routed, or is longer than a message, or a column is of a
                type that shards do not read; nothing was added.
        """
        there = [batch for batch in batches if batch.num_rows]
        plain = [_plain(self._router.hashed(batch, self._column)) for batch in there]
        for batch in plain:
            self._check_rows(batch)
        if name is not None:
            self._add_named(plain, name)
            return
        for batch, parts in [(batch, self._split(batch)) for batch in plain]:
            if batch.schema not in self._nameless:
                self._room += self._router.shards * _most_beside(batch.schema)
            self._room += _bytes_of_rows(batch)
            self._nameless.setdefault(batch.schema, []).append(parts)

    def _add_named(self, batches: Sequence[pa.RecordBatch], name: bytes) -> None:
        """Cut before rows are divided: so all shards store equally many names, for any users."""
        pieces = [piece for batch in batches for piece in self._pieces(batch)]
        found = [self._split(piece) for piece in pieces] or [[None] * self._router.shards]
        for number, parts in enumerate(found):
            self._named.append((_name(name, number), parts))
        beside = [_most_beside(piece.schema) for piece in pieces] or [_PART.size]
        self._room += self._router.shards * sum(beside) + sum(map(_bytes_of_rows, pieces))

    def _split(self, batch: pa.RecordBatch) -> _Parts:
        parts = self._router.split(batch, self._column)
        return [None if part is None else _plain(part) for part in parts]

    def _check_rows(self, batch: pa.RecordBatch) -> None:
        if batch.nbytes < self._most_part // 2:
            return
        longest = sum(map(_longest, batch.columns)) + _most_beside(batch.schema)
        if longest > self._most_part:
            message = (
                f"a row has texts of more than {self._most_part - _PART_BYTES:,} bytes, which "
            )
            message += "no message to a shard holds"
            raise InputError(message)

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Return a batch, halved until each piece fits into a message."""
        if _bytes_of_rows(batch) + _most_beside(batch.schema) <= self._most_part:
            yield batch
            return
        half = batch.num_rows // 2
        yield from self._pieces(batch.slice(0, half))
        yield from self._pieces(batch.slice(half))

    def pack(self) -> list[list[bytearray]]:
        """Return the messages, at least one: each is one plaintext for every shard, equally long.

        The round is empty afterwards.
        """
        filled: list[list[list[bytearray]]] = [[] for _ in range(self._router.shards)]
        for name, parts in self._named:
            for messages, part in zip(filled, parts, strict=True):
                _put(messages, _packed(part, name), self._most)
        for each in self._nameless.values():
            for messages, there in zip(filled, zip(*each, strict=True), strict=True):
                joined = _concatenated(there)
                for piece in self._pieces(joined) if joined is not None else ():
                    _put(messages, _packed(piece, _NAMELESS), self._most)
        count = max(1, *map(len, filled))
        for messages in filled:
            messages.extend([] for _ in range(count - len(messages)))
        packed = [self._padded(each) for each in zip(*filled, strict=True)]
        self._named, self._nameless, self._room = [], {}, _FRONT.size
        return packed

    def _padded(self, contents: Sequence[list[bytearray]]) -> list[bytearray]:
        """Return one message for each shard, and overwrite its parts."""
        length = _FRONT.size + max(sum(map(len, parts)) for parts in contents)
        if self._room <= min(_SMALL_ROUND, self._most):
            length = max(length, self._room)
        length = _rounded(length)
        messages = []
        for parts in contents:
            front = _FRONT.pack(_MAGIC, len(parts))
            messages.append(bytearray().join((front, *parts)).ljust(length, b"\0"))
            for part in parts:
                wipe(np.frombuffer(part, np.uint8))
        return messages


def read_message(plain: bytearray | memoryview, columns: int) -> Iterator[MessagePart | InputError]:
    """Return the parts of a message, one after another, or why a part cannot be read.

    Args:
        plain: the message; it must not change while the parts exist, which point into it.
        columns: number of columns that the stream reads; 0 if it counts only rows.

    Raises:
        InputError: this is no message; no part of it was returned.
    """
    view = memoryview(plain)
    return map(_readable, _bodies(view), repeat([Column(str(at)) for at in range(columns)]))


def _bodies(view: memoryview) -> list[tuple[bytes, memoryview, int]]:
    """Return the name of each part, its content, and its number of int64 values."""
    magic, count = _FRONT.unpack_from(view) if len(view) >= _FRONT.size else (b"", 0)
    if magic != _MAGIC:
        message = "this is no message of a publisher, or of another version"
        raise InputError(message)
    found, at = [], _FRONT.size
    for _ in range(min(count, len(view))):
        there = at + _PART.size <= len(view)
        name, length, numbers = _PART.unpack_from(view, at) if there else (b"", -1, 0)
        start = at + _PART.size
        at = start + length
        cut = length < 0 or length % _WORD or at > len(view)
        if cut or numbers not in {0, length // _WORD}:
            message = "this message is damaged: a part is cut off"
            raise InputError(message)
        found.append((name, view[start:at], numbers))
    return found


def _readable(
    body: tuple[bytes, memoryview, int], columns: Sequence[Column]
) -> MessagePart | InputError:
    name, content, numbers = body
    try:
        if numbers:
            batches = [_of_numbers(content, numbers, len(columns))]
        else:
            batches = BodyReader(columns).read("arrow", content) if content else []
    except InputError as error:
        return without_frames(error)
    return MessagePart(None if name == _NAMELESS else name, batches)


def _of_numbers(content: memoryview, numbers: int, columns: int) -> pa.RecordBatch:
    if columns != 1:
        message = f"a row must have {columns} columns, and has one"
        raise InputError(message)
    column = pa.Array.from_buffers(pa.int64(), numbers, [None, pa.py_buffer(content)], 0)
    return pa.RecordBatch.from_arrays([column], names=["0"])


# Packing


def _plain(part: pa.RecordBatch) -> pa.RecordBatch:
    """Return columns named by their index, of types whose rows can be counted in bytes."""
    columns = [_plain_column(column) for column in part.columns]
    return pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(columns))])


def _plain_column(column: pa.Array) -> pa.Array:
    column = decoded(column)
    kind = _stored(column)
    fixed = pa.types.is_integer(kind) or pa.types.is_fixed_size_binary(kind)
    if not (fixed or pa.types.is_null(kind) or offset_type(kind)):
        message = "each column must hold whole numbers, byte strings or texts"
        raise InputError(message)
    return column


def _stored(column: pa.Array) -> pa.DataType:
    """Return the storage type of a column: an id of 16 bytes can have a type of its own."""
    return column.type.storage_type if isinstance(column.type, pa.UuidType) else column.type


def _bytes_of_rows(batch: pa.RecordBatch) -> int:
    """Return the size of the rows in bytes; the sum is the same for any division of the rows."""
    return sum(_bytes_of_column(column) for column in batch.columns)


def _bytes_of_column(column: pa.Array) -> int:
    width = offset_type(column.type)
    if width is None:
        return len(column) * (1 + _width(column))
    lengths = pc.sum(pc.binary_length(column)).as_py() or 0
    return lengths + len(column) * (1 + np.dtype(width).itemsize)


def _longest(column: pa.Array) -> int:
    """Return the size of the longest row of a column, in bytes."""
    width = offset_type(column.type)
    if width is None:
        return 1 + _width(column)
    return (pc.max(pc.binary_length(column)).as_py() or 0) + 1 + np.dtype(width).itemsize


def _width(column: pa.Array) -> int:
    kind = _stored(column)
    return 0 if pa.types.is_null(kind) else kind.bit_width // 8


def _most_beside(schema: pa.Schema) -> int:
    """Return an upper bound of the size of a part beyond its rows, in bytes."""
    return _PART_BYTES + _COLUMN_BYTES * len(schema) + schema.serialize().size


def _concatenated(parts: Sequence[pa.RecordBatch | None]) -> pa.RecordBatch | None:
    """Return all rows of one shard, or None."""
    there = [part for part in parts if part is not None]
    return pa.concat_batches(there) if len(there) > 1 else next(iter(there), None)


def _packed(part: pa.RecordBatch | None, name: bytes) -> bytearray:
    """Return the encoding of a part in a message; without rows, its name alone."""
    if part is None:
        return bytearray(_PART.pack(name, 0, 0))
    if part.schema.types == [pa.int64()]:  # ids, of which none is null
        content = bytearray(_PART.size + _WORD * part.num_rows)
        _PART.pack_into(content, 0, name, _WORD * part.num_rows, part.num_rows)
        np.frombuffer(content, "<i8", offset=_PART.size)[:] = part.column(0)
        return content
    # Arrow's own lengths are multiples of 8.
    rows = pa.ipc.get_record_batch_size(part)
    length = part.schema.serialize().size + rows + _END_BYTES
    content = bytearray(_PART.size + length)
    _PART.pack_into(content, 0, name, length, 0)
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(memoryview(content)[_PART.size :]))
    with sink, pa.ipc.new_stream(sink, part.schema) as stream:
        stream.write_batch(part)
    return content


def _name(name: bytes, number: int) -> bytes:
    """Return the name of one piece of a named request."""
    return hashlib.sha256(struct.pack("<Q", number) + name).digest()[: len(_NAMELESS)]


def _put(messages: list[list[bytearray]], part: bytearray, most: int) -> None:
    """Append a part to the last message if it has room, else to a new one."""
    if not messages or _FRONT.size + sum(map(len, messages[-1])) + len(part) > most:
        messages.append([])
    messages[-1].append(part)


def _rounded(length: int) -> int:
    """Return the length rounded up to four leading bits: at most an eighth more."""
    step = 1 << max(3, length.bit_length() - _LEADING_BITS)
    return max(_LEAST_BYTES, -(-length // step) * step)


def _rounded_down(length: int) -> int:
    """Return the largest result of `_rounded` that is at most `length`."""
    step = 1 << length.bit_length() - _LEADING_BITS
    return length // step * step
