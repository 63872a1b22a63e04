"""What envelopes hold: parts of what was sent, in rounds that do not tell which shard counts what.

How many rows a shard gets depends on who they are of. So nothing is sent to a shard alone: in each
round every shard gets as many messages as the others, of one length, also where nothing is for it.

A message is `magic (8) | number of parts (8) | parts | zeros`, and a part `name (16) | length (8) |
Arrow stream`, all little-endian and aligned to 8 bytes; a name of zeros is none.
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
from panprivacy.errors import InputError, without_frames
from panprivacy.ids import gatherable, offset_type
from panprivacy.noise import wipe
from panprivacy.sources import Column, read_body

_MAGIC: Final = b"ppround1"
_FRONT: Final = struct.Struct("<8sQ")
_PART: Final = struct.Struct("<16sQ")
_NAMELESS: Final = bytes(16)
_WORD: Final = 8
_END_BYTES: Final = 8
"""With which an Arrow stream ends."""
_MOST_PART: Final = 1 << 18
"""Longer parts are cut, always at the same rows, so that a part that is sent again has its name."""
_SMALL_ROUND: Final = 1 << 16
"""Up to here every shard gets the length of the whole round."""
_LEADING_BITS: Final = 4
_LEAST_BYTES: Final = 256
_LEAST_MOST: Final = 1 << 12
_PART_BYTES: Final = 512
_COLUMN_BYTES: Final = 128
"""More than a part and each of its columns take besides their rows."""

_Parts = Sequence[pa.RecordBatch | None]
"""A part for each shard."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are counted whole or not at all.

    Args:
        name: of 16 bytes, the same when it is sent again; None if the sender gave none.
        batches: with the columns of the stream.
    """

    name: bytes | None
    batches: list[pa.RecordBatch]


class Round:
    """What is sent to all shards of a stream at once.

    Guarantee: every shard gets as many messages as the others, of the same lengths. Of a round of
    up to 64 KiB number and length are functions of the rows and bytes that were added, however
    these are divided among shards. Of a longer one they tell besides, within an eighth, how much
    the shard got that got most.

    Args:
        shards: how many there are.
        most: bytes of an envelope, at least 4 KiB; `Broker.most_message`.

    Raises:
        InputError: messages are shorter.
    """

    def __init__(self, shards: int, most: int) -> None:
        if most < _LEAST_MOST:
            message = f"a message has room for {most:,} bytes: raise max_payload of the broker"
            raise InputError(message)
        self._shards = shards
        self._most = _rounded_down(most - ENVELOPE_BYTES)
        self._room = _FRONT.size
        self._named: list[tuple[bytes, _Parts]] = []
        self._nameless: dict[pa.Schema, list[_Parts]] = {}

    def add(self, parts: _Parts, name: bytes | None = None) -> None:
        """Add what was sent at once, with a part for each shard, or None, as `Router.split` gives.

        Args:
            parts: must stay as they are until `pack` has been called.
            name: what its sender calls it, the same when it is sent again.

        Raises:
            InputError: a row is longer than a message; nothing was added.
        """
        plain = [None if part is None or not part.num_rows else _plain(part) for part in parts]
        schema = next((part.schema for part in plain if part is not None), None)
        if schema is None:
            return
        bytes_of_rows = 0
        for part in plain:
            if part is not None:
                bytes_of_rows += sum(map(_bytes_of_rows, part.columns))
                if part.nbytes > self._most // 2:
                    self._check_rows(part)
        if name is not None or schema not in self._nameless:
            self._room += self._shards * _most_beside(schema)
        self._room += bytes_of_rows
        if name is None:
            self._nameless.setdefault(schema, []).append(plain)
        else:
            self._named.append((name, plain))

    def _check_rows(self, part: pa.RecordBatch) -> None:
        longest = sum(map(_longest, part.columns)) + _FRONT.size + _most_beside(part.schema)
        if longest > self._most:
            message = f"a row has texts of more than {self._most - _PART_BYTES:,} bytes, which no "
            message += "message of the broker holds"
            raise InputError(message)

    def pack(self) -> list[list[bytearray]]:
        """The messages, at least one; of each, a plaintext for every shard, all equally long.

        What was added is let go of.
        """
        filled: list[list[list[bytearray]]] = [[] for _ in range(self._shards)]
        for name, parts in self._taken():
            for messages, part in zip(filled, parts, strict=True):
                if part is not None:
                    most = min(_MOST_PART, self._most - _FRONT.size)
                    for number, piece in enumerate(_pieces(part, most)):
                        _put(messages, _packed(piece, _name(name, number)), self._most)
        count = max(1, *map(len, filled))
        for messages in filled:
            messages.extend([] for _ in range(count - len(messages)))
        return [self._padded(each) for each in zip(*filled, strict=True)]

    def _taken(self) -> Iterator[tuple[bytes | None, _Parts]]:
        """All that was added, with what has no name as one."""
        named, self._named = self._named, []
        nameless, self._nameless = self._nameless, {}
        yield from named
        for each in nameless.values():
            yield None, [_joined(parts) for parts in zip(*each, strict=True)]

    def _padded(self, contents: Sequence[list[bytearray]]) -> list[bytearray]:
        """One message for each shard, and what it is made of overwritten."""
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


def read_message(plain: bytearray, columns: int) -> Iterator[Part | InputError]:
    """The parts of a message, one after another, or why a part cannot be read.

    Args:
        plain: must stay as it is for as long as the parts live, which point into it.
        columns: how many the stream reads; 0 where only rows are counted.

    Raises:
        InputError: this is no message; no part of it was handed out.
    """
    view = memoryview(plain)
    return map(_readable, _bodies(view), repeat([Column(str(at)) for at in range(columns)]))


def _bodies(view: memoryview) -> list[tuple[bytes, memoryview]]:
    """The name and the Arrow stream of each part."""
    magic, count = _FRONT.unpack_from(view) if len(view) >= _FRONT.size else (b"", 0)
    if magic != _MAGIC:
        message = "this is no message of a publisher, or of another version"
        raise InputError(message)
    found, at = [], _FRONT.size
    for _ in range(min(count, len(view))):
        name, length = _PART.unpack_from(view, at) if at + _PART.size <= len(view) else (b"", -1)
        start = at + _PART.size
        at = start + length
        if length < 0 or length % _WORD or at > len(view):
            message = "this message is damaged: a part is cut off"
            raise InputError(message)
        found.append((name, view[start:at]))
    return found


def _readable(body: tuple[bytes, memoryview], columns: Sequence[Column]) -> Part | InputError:
    name, content = body
    try:
        batches = read_body("arrow", content, columns)
    except InputError as error:
        return without_frames(error)
    return Part(None if name == _NAMELESS else name, batches)


# Packing


def _plain(part: pa.RecordBatch) -> pa.RecordBatch:
    """Columns that are called by their number, of types whose rows can be counted in bytes."""
    columns = [gatherable(column) for column in part.columns]
    return pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(columns))])


def _bytes_of_rows(column: pa.Array) -> int:
    """What the rows of a column take; the same sum however they are divided."""
    width = offset_type(column.type)
    if width is None:
        return len(column) * (1 + _width(column))
    lengths = pc.sum(pc.binary_length(column)).as_py() or 0
    return lengths + len(column) * (1 + np.dtype(width).itemsize)


def _longest(column: pa.Array) -> int:
    """What the longest row of a column takes."""
    if offset_type(column.type) is None:
        return 1 + _width(column)
    return pc.max(pc.binary_length(column)).as_py() or 0


def _width(column: pa.Array) -> int:
    kind = column.type.storage_type if isinstance(column.type, pa.ExtensionType) else column.type
    return 0 if pa.types.is_null(kind) else kind.bit_width // 8


def _most_beside(schema: pa.Schema) -> int:
    """More than a part takes besides its rows."""
    return _PART_BYTES + _COLUMN_BYTES * len(schema) + schema.serialize().size


def _joined(parts: Sequence[pa.RecordBatch | None]) -> pa.RecordBatch | None:
    """All rows of one shard."""
    there = [part for part in parts if part is not None]
    if len(there) < 2:
        return there[0] if there else None
    return pa.concat_batches(there)


def _pieces(part: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """A part, halved until each piece is short enough; a row by itself is."""
    if part.num_rows == 1 or _length(part) <= most:
        yield part
        return
    half = part.num_rows // 2
    yield from _pieces(part.slice(0, half), most)
    yield from _pieces(part.slice(half), most)


def _length(part: pa.RecordBatch) -> int:
    """Of a part in a message; Arrow's own lengths are multiples of 8."""
    batch = pa.ipc.get_record_batch_size(part)
    return _PART.size + part.schema.serialize().size + batch + _END_BYTES


def _packed(part: pa.RecordBatch, name: bytes) -> bytearray:
    content = bytearray(_length(part))
    _PART.pack_into(content, 0, name, len(content) - _PART.size)
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(memoryview(content)[_PART.size :]))
    with sink, pa.ipc.new_stream(sink, part.schema) as stream:
        stream.write_batch(part)
    return content


def _name(name: bytes | None, number: int) -> bytes:
    """Of a piece: no sender's id is longer than a hash, and none is all zeros but by a hash."""
    if name is None:
        return _NAMELESS
    return hashlib.sha256(struct.pack("<Q", number) + name).digest()[: len(_NAMELESS)]


def _put(messages: list[list[bytearray]], part: bytearray, most: int) -> None:
    """Append a part to the last message if it has room, else to a new one."""
    if not messages or _FRONT.size + sum(map(len, messages[-1])) + len(part) > most:
        messages.append([])
    messages[-1].append(part)


def _rounded(length: int) -> int:
    """Up to the next number with four leading bits: at most an eighth more."""
    step = 1 << max(3, length.bit_length() - _LEADING_BITS)
    return max(_LEAST_BYTES, -(-length // step) * step)


def _rounded_down(length: int) -> int:
    """The longest that `_rounded` makes of something that is as long at most."""
    step = 1 << length.bit_length() - _LEADING_BITS
    return length // step * step
