"""Arrow IPC bodies in memory, from untrusted senders: their unpacked size is bounded beforehand.

A few bytes can unpack to very many: compressed buffers, codes that all refer to one long text,
views of the same bytes, and rows that take no bytes at all. Each is counted before it is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from panprivacy.errors import InputError
from panprivacy.intake.sources.addresses import ADDRESS_BYTES
from panprivacy.intake.sources.arrow_messages import FILE_MAGIC, check_messages, too_large
from panprivacy.intake.sources.columnar import damage_refused, parts
from panprivacy.intake.sources.columns import Column, check_columns, show
from panprivacy.tables.ids import is_view, offset_type

LEAST_BOUND = 64 << 20
_BOUND_PER_BYTE = 8
_CHECKED_PER_UNPACKED = 16
_SHORTEST_VIEW = 16
_REPEATED = "a long text or a dictionary is repeated too often; send plain columns, or in parts"


def read_arrow_body(body: pa.Buffer, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse an Arrow stream, or an Arrow file, in memory.

    Columns keep the types of the input, with dictionaries decoded, and stay in place unless they
    are compressed or encoded. If no column is wanted, batches have rows and no columns.

    Raises:
        InputError: it is not sound Arrow IPC with such columns, or would unpack to more than
            64 MiB and eight times its length.
    """
    most = max(LEAST_BOUND, _BOUND_PER_BYTE * body.size)
    names = [column.name for column in columns]
    with damage_refused("Arrow IPC"):
        check_messages(body, most)
        unpacked = checked = 0
        for batch in _batches(body, columns):
            wanted = batch.select(names)
            if not columns:
                unpacked += batch.num_rows
                if unpacked > most:
                    raise too_large(most)
                yield wanted
                continue
            wanted.validate()
            checked += sum(map(_checked_bytes, wanted.columns))
            if checked > _CHECKED_PER_UNPACKED * most:
                raise InputError(_REPEATED)
            wanted.validate(full=True)
            unpacked += sum(map(_unpacked_bytes, wanted.columns, columns))
            if unpacked > most:
                raise too_large(most)
            yield from parts(wanted)


def _batches(body: pa.Buffer, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    source, options = pa.BufferReader(body), pa.ipc.IpcReadOptions(use_threads=False)
    if body[: len(FILE_MAGIC)].to_pybytes() != FILE_MAGIC:
        reader = pa.ipc.open_stream(source, options=options)
        _check_schema(reader.schema, columns)
        yield from reader
        return
    file = pa.ipc.open_file(source, options=options)
    _check_schema(file.schema, columns)
    yield from map(file.get_batch, range(file.num_record_batches))


def _check_schema(schema: pa.Schema, columns: Sequence[Column]) -> None:
    """Check that the wanted columns exist, with types that ids can have."""
    if not columns:
        return
    # The sender may have named columns after people.
    check_columns(columns, schema.names, known="the schema must name it")
    for column in columns:
        kind = schema.field(column.name).type
        bare = pa.types.is_null(kind) or isinstance(kind, pa.UuidType)
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        fixed = pa.types.is_integer(plain) or pa.types.is_fixed_size_binary(plain)
        number = column.numbers and pa.types.is_floating(plain)
        if not (bare or fixed or number or offset_type(plain) or is_view(plain)):
            wanted = "numbers" if column.numbers else "whole numbers, byte strings"
            message = f"column {show(column.name)} must hold {wanted} or texts"
            raise InputError(message)


def _checked_bytes(column: pa.Array) -> int:
    """Return an upper bound of the bytes that a full validation reads, without reading any."""
    width = offset_type(column.type)
    offsets = column.buffers()[1] if width else None
    if offsets and offsets.size % np.dtype(width).itemsize:
        message = "the offsets are cut off"  # they are read in place as an array of numbers
        raise ValueError(message)
    if pa.types.is_dictionary(column.type):
        return _checked_bytes(column.dictionary) + len(column)
    if is_view(column.type):
        return int(_view_lengths(column).sum())
    return sum(buffer.size for buffer in column.buffers() if buffer) + len(column)


def _unpacked_bytes(column: pa.Array, wanted: Column) -> int:
    """Return the size of a sound column once it is decoded; every row takes some bytes."""
    rows = len(column) * (ADDRESS_BYTES if wanted.address else 1)
    if not pa.types.is_dictionary(column.type):
        viewed = int(_view_lengths(column).sum()) if is_view(column.type) else column.nbytes
        return max(rows, viewed)
    lengths = _value_bytes(column.dictionary)
    copied = int(lengths.sum()) if is_view(column.dictionary.type) else 0
    return copied + max(rows, int(lengths[column.indices.drop_null().to_numpy()].sum()))


def _value_bytes(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the size of each value of a dictionary, in bytes."""
    if is_view(values.type):
        return _view_lengths(values)
    width = offset_type(values.type)
    if width is None:
        return np.full(len(values), values.type.bit_width // 8, np.int64)
    lengths = pc.binary_length(values).fill_null(0)
    return np.asarray(lengths, np.int64) + np.dtype(width).itemsize


def _view_lengths(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return an upper bound of the size of each row of a view column as large binary, in bytes."""
    views = column.buffers()[1]
    lengths = np.frombuffer(views, np.uint32)[::4] if views else np.empty(0, np.uint32)
    used = lengths[column.offset : column.offset + len(column)].astype(np.int64)
    known = column.is_valid().to_numpy(zero_copy_only=False)  # the length of a null is arbitrary
    return used * known + _SHORTEST_VIEW
