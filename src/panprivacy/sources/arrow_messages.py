"""What the messages of an Arrow body would take in memory, before anything is decompressed.

A compressed buffer begins with the length that it claims to have once it is decompressed, and
pyarrow allocates that much: 20 bytes can ask for gigabytes. pyarrow verifies the metadata of a
message (a FlatBuffers table), but shows neither whether it is compressed nor what it claims, so
that both are read here: the few fields of `Message.fbs` and `File.fbs` that tell.
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
_OLD_COMPRESSION = b"ARROW:experimental_compression"


class _Table:
    """A table of FlatBuffers, and where it starts in the buffer that it lies in."""

    def __init__(self, data: pa.Buffer, at: int) -> None:
        self._data = data
        self._at = at

    def place(self, field: int) -> int:
        """Where a field stands; 0 if it is left out."""
        fields = self._at - _number("<i", self._data, self._at)
        inside = 4 + 2 * field < _number("<H", self._data, fields)
        offset = _number("<H", self._data, fields + 4 + 2 * field) if inside else 0
        return self._at + offset if offset else 0

    def table(self, field: int) -> _Table:
        """The table that a field points to."""
        return _Table(self._data, self._target(field))

    def vector(self, field: int, kind: np.dtype[np.void]) -> np.ndarray[tuple[int], np.dtype]:
        """The vector of structs that a field points to; empty if it is left out."""
        if not self.place(field):
            return np.empty(0, kind)
        at = self._target(field)
        return np.frombuffer(self._data, kind, _number("<I", self._data, at), at + 4)

    def _target(self, field: int) -> int:
        at = self.place(field)
        return at + _number("<I", self._data, at)


def check_messages(body: pa.Buffer, most: int) -> None:
    """Refuse a body that would take too much to decompress, or to go through.

    Raises:
        InputError: it has too many messages, or compressed buffers that claim over `most` bytes.
        ValueError: it is damaged; so do pyarrow's exceptions say.
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
    """A body that would unpack to more than `most` bytes."""
    return InputError(f"this would unpack to more than {most >> 20:,} MiB; send it in parts")


def _messages(body: pa.Buffer) -> Iterator[pa.ipc.Message]:
    """All messages, in place; those of a file stand where its footer tells, which is verified."""
    if body[: len(FILE_MAGIC)].to_pybytes() != FILE_MAGIC:
        yield from pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
        return
    pa.ipc.open_file(pa.BufferReader(body))
    end = body.size - len(FILE_MAGIC) - 4
    start = end - _number("<i", body, end)
    footer = _Table(body, start + _number("<I", body, start))
    for field in (_FILE_DICTIONARIES, _FILE_BATCHES):
        for block in footer.vector(field, _BLOCK):
            yield _message_at(body, block)


def _message_at(body: pa.Buffer, block: np.void) -> pa.ipc.Message:
    """One message of a file, which must lie where both it and the footer say."""
    at, metadata = int(block["at"]), int(block["metadata"])
    marked = body[at : at + 4].to_pybytes() == _MARK if 0 <= at < body.size else False
    if not marked or _number("<i", body, at + 4) != metadata - 8:
        message = "the footer contradicts the message"
        raise ValueError(message)
    return pa.ipc.read_message(pa.BufferReader(body[at:]))


def _claimed(message: pa.ipc.Message) -> int:
    """How many bytes the compressed buffers of a message claim to have."""
    data = message.metadata
    if _OLD_COMPRESSION in memoryview(data).tobytes():
        reason = "this is compressed as before Arrow 1.0; send it uncompressed"
        raise InputError(reason)
    batch = _Table(data, _number("<I", data, 0)).table(_MESSAGE_HEADER)
    if message.type == "dictionary":
        batch = batch.table(_DICTIONARY_BATCH)
    elif message.type != "record batch":
        return 0
    if not batch.place(_COMPRESSION):
        return 0
    return sum(  # -1 stands for a buffer left uncompressed, which has its own length
        max(_number("<q", message.body, int(buffer["at"])), int(buffer["length"]))
        for buffer in batch.vector(_BUFFERS, _BUFFER)
        if buffer["length"]
    )


def _number(kind: str, data: pa.Buffer, at: int) -> int:
    """A number in a buffer."""
    if not 0 <= at <= data.size - struct.calcsize(kind):
        message = "a place beyond the end"
        raise ValueError(message)
    return int(struct.unpack_from(kind, data, at)[0])
