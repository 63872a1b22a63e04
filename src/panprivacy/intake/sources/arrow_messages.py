"""Bounds of the memory and work that the messages of an Arrow body take, before decompression.

A compressed buffer begins with its claimed length after decompression, and pyarrow allocates that
much: 20 bytes can request gigabytes. pyarrow verifies the metadata of a message (a FlatBuffers
table), but exposes neither whether it is compressed nor what it claims, so both are read here from
the relevant fields of `Message.fbs` and `File.fbs`.

A buffer of zstd may also be hollow: blocks that hold next to nothing, each with tables that take
microseconds to build. So its blocks are counted before (RFC 8878, 3.1.1); those of LZ4 have none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from panprivacy.errors import InputError

FILE_MAGIC = b"ARROW1"
MOST_MESSAGES = 1_024

_MESSAGE_HEADER, _DICTIONARY_BATCH = 2, 1
_BUFFERS, _COMPRESSION = 2, 3
_FILE_DICTIONARIES, _FILE_BATCHES = 2, 3
_BLOCK = np.dtype([("at", "<i8"), ("metadata", "<i4"), ("padding", "<i4"), ("body", "<i8")])
_BUFFER = np.dtype([("at", "<i8"), ("length", "<i8")])
_MARK = b"\xff\xff\xff\xff"
_CODEC, _ZSTD = 0, 1
_FRAME_MAGIC, _SKIPPABLE = 0xFD2FB528, 0x184D2A5
_LEAST_BLOCKS, _BYTES_PER_BLOCK = 64, 1_024
"""Blocks that a buffer of zstd may have, and claimed bytes for each further one."""
_RUN = 1
"""Type of a block of one repeated byte."""
_OLD_COMPRESSION = b"ARROW:experimental_compression"


class _FlatTable:
    """A table of FlatBuffers, and its start in its buffer."""

    def __init__(self, data: pa.Buffer, at: int) -> None:
        self._data = data
        self._at = at

    def field_position(self, field: int) -> int:
        """Return the position of a field; 0 if it is missing."""
        fields = self._at - _number("<i", self._data, self._at)
        inside = 4 + 2 * field < _number("<H", self._data, fields)
        offset = _number("<H", self._data, fields + 4 + 2 * field) if inside else 0
        return self._at + offset if offset else 0

    def table(self, field: int) -> _FlatTable:
        """Return the table that a field points to."""
        return _FlatTable(self._data, self._target(field))

    def vector(self, field: int, kind: np.dtype[np.void]) -> np.ndarray[tuple[int], np.dtype]:
        """Return the vector of structs that a field points to; empty if it is missing."""
        if not self.field_position(field):
            return np.empty(0, kind)
        at = self._target(field)
        return np.frombuffer(self._data, kind, _number("<I", self._data, at), at + 4)

    def _target(self, field: int) -> int:
        at = self.field_position(field)
        return at + _number("<I", self._data, at)


def check_messages(body: pa.Buffer, most: int) -> None:
    """Check that a body does not take too much to decompress or to traverse.

    Raises:
        InputError: it has too many messages, or compressed buffers that claim over `most` bytes.
        ValueError: it is damaged; pyarrow's exceptions may be raised as well.
    """
    claimed = 0
    for count, each in enumerate(_messages(body)):
        if count == MOST_MESSAGES:
            message = f"this has more than {MOST_MESSAGES:,} Arrow messages; send larger batches"
            raise InputError(message)
        claimed += _claimed(each)
        if claimed > most:
            raise too_large(most)


def too_large(most: int) -> InputError:
    """Return the error for a body that would unpack to more than `most` bytes."""
    return InputError(f"this would unpack to more than {most >> 20:,} MiB; send it in parts")


def _messages(body: pa.Buffer) -> Iterator[pa.ipc.Message]:
    """Yield all messages in place; those of a file are found by its verified footer."""
    if body[: len(FILE_MAGIC)].to_pybytes() != FILE_MAGIC:
        yield from pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
        return
    pa.ipc.open_file(pa.BufferReader(body))
    end = body.size - len(FILE_MAGIC) - 4
    start = end - _number("<i", body, end)
    footer = _FlatTable(body, start + _number("<I", body, start))
    for field in (_FILE_DICTIONARIES, _FILE_BATCHES):
        for block in footer.vector(field, _BLOCK):
            yield _message_at(body, block)


def _message_at(body: pa.Buffer, block: np.void) -> pa.ipc.Message:
    """Return one message of a file, whose position must agree with the footer."""
    at, metadata = int(block["at"]), int(block["metadata"])
    marked = body[at : at + 4].to_pybytes() == _MARK if 0 <= at < body.size else False
    if not marked or _number("<i", body, at + 4) != metadata - 8:
        message = "the footer contradicts the message"
        raise ValueError(message)
    return pa.ipc.read_message(pa.BufferReader(body[at:]))


def _claimed(message: pa.ipc.Message) -> int:
    """Return the claimed size of the compressed buffers of a message, in bytes."""
    data = message.metadata
    if _OLD_COMPRESSION in memoryview(data).tobytes():
        reason = "this is compressed as before Arrow 1.0; send it uncompressed"
        raise InputError(reason)
    batch = _FlatTable(data, _number("<I", data, 0)).table(_MESSAGE_HEADER)
    if message.type == "dictionary":
        batch = batch.table(_DICTIONARY_BATCH)
    elif message.type != "record batch":
        return 0
    if not batch.field_position(_COMPRESSION):
        return 0
    codec = batch.table(_COMPRESSION).field_position(_CODEC)
    is_zstd, claimed = codec and _number("<b", data, codec) == _ZSTD, 0
    for buffer in batch.vector(_BUFFERS, _BUFFER):
        at, length = int(buffer["at"]), int(buffer["length"])
        if not length:
            continue
        claim = _number("<q", message.body, at)
        claimed += max(claim, length)
        if is_zstd and claim >= 0:  # -1 marks an uncompressed buffer
            _check_blocks(message.body[at + 8 : at + length], claim)
    return claimed


def _check_blocks(packed: pa.Buffer, claim: int) -> None:
    """Check that the frames of a buffer of zstd have few blocks for what they claim to hold.

    Raises:
        InputError: they have too many.
    """
    most = _LEAST_BLOCKS + claim // _BYTES_PER_BLOCK
    for count, _ in enumerate(_blocks(memoryview(packed).cast("B"))):
        if count == most:
            message = "this has compressed buffers that hold next to nothing; send it uncompressed"
            raise InputError(message)


def _blocks(packed: memoryview) -> Iterator[int]:
    """Yield the places of all frames of zstd, and of their blocks."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(packed[at : at + size], "little")

    at = 0
    while at < len(packed):
        yield at
        magic, flags = number(at, 4), number(at + 4, 1)
        if magic >> 4 == _SKIPPABLE:
            at += 8 + number(at + 4, 4)
            continue
        if magic != _FRAME_MAGIC:
            return  # pyarrow says what is wrong
        is_single, is_last = flags >> 5 & 1, 0
        at += 6 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
        while not is_last and at < len(packed):
            yield at
            head = number(at, 3)
            is_last, size = head & 1, head >> 3
            at += 3 + (1 if head >> 1 & 3 == _RUN else size)
        at += 4 * (flags >> 2 & 1)


def _number(kind: str, data: pa.Buffer, at: int) -> int:
    """Return a number in a buffer."""
    if not 0 <= at <= data.size - struct.calcsize(kind):
        message = "a place beyond the end"
        raise ValueError(message)
    return int(struct.unpack_from(kind, data, at)[0])
