"""Columns of user ids, as NumPy, Arrow, pandas or Polars hold them, without a Python object each.

A user is a whole number, a byte string or a text; a text is its UTF-8 bytes. Whole numbers of any
width that are equal are the same user (unsigned ones from 2**63 on stand for the negative ones
with the same bits), and so is a text that is the shortest decimal form of one: 7, "7" and b"7".
Everything else (floats, dates, nulls) is refused by row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.ground.kernels import kernel, read_only


class ArrowArray(Protocol):
    """One array of Arrow's layout, as pyarrow and nanoarrow have it."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """Hand it over."""


class ArrowStream(Protocol):
    """Arrays of Arrow's layout, as pyarrow's chunked arrays, pandas and Polars have them."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand them over."""


WholeNumbers = NDArray[np.integer[Any]] | ArrowArray | ArrowStream | Sequence[int] | Iterator[int]
"""A column of whole numbers."""

AmountColumn = NDArray[np.floating[Any]] | ArrowArray | ArrowStream | Sequence[float]
"""A column of numbers, whole or not."""

Labels = (
    NDArray[Any]
    | ArrowArray
    | ArrowStream
    | Sequence[int]
    | Sequence[str]
    | Sequence[bytes]
    | Iterator[int]
    | Iterator[str]
    | Iterator[bytes]
)
"""A column of whole numbers, texts or byte strings; ids of users are one.

An iterator has an order and is read once, so it is one as well; a set has no order, and is none.
"""

PIECE_ROWS = 1 << 15
"""Rows that are addressed at a time: their slots stay in the processor's cache."""

_FEW_TEXTS = 4_096
"""Texts of a sequence that are converted one by one."""

_WANTED = "user ids must be whole numbers, byte strings or texts"
_WANTED_DELTAS = "deltas must be whole numbers"
_ONE_COLUMN = ", all of one type, in a one-dimensional array or sequence"
_SINGLE = "; put a single one into a list: update([...])"
_NULL_USER = "the user id is null; drop such rows or give them an id"
_NULL_DELTA = "the delta is null"
_POLARS_OBJECT = "Object"
"""A dtype of Polars that it exports as addresses of Python objects, in byte strings of 8."""
_REFERENCES = pa.binary(8)
_MAYBE_REFERENCES = (
    ": byte strings of a fixed 8 bytes may be addresses of Python objects, which is how Polars "
    "exports its dtype Object; if they are values, cast them to binary"
)
_NO_DELTAS = np.empty(0, np.int64)
_MOST_DELTA = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class IntegerIds:
    """Whole numbers: `values` is int64[n], contiguous, possibly read-only."""

    values: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> IntegerIds:
        """Return the ids of some rows."""
        return IntegerIds(self.values[start:stop])

    def pieces(self) -> Iterator[IntegerIds]:
        """Yield the same ids, `PIECE_ROWS` at a time."""
        for start in range(0, len(self), PIECE_ROWS):
            yield self.part(start, start + PIECE_ROWS)


@dataclass(frozen=True, slots=True)
class ByteIds:
    """Byte strings in Arrow's layout: id `i` is `data[offsets[i]:offsets[i+1]]`."""

    offsets: NDArray[Any]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, start: int, stop: int) -> ByteIds:
        """Return the ids of some rows."""
        return ByteIds(self.offsets[start : stop + 1], self.data)

    def pieces(self) -> Iterator[ByteIds]:
        """Yield the same ids, `PIECE_ROWS` at a time."""
        for start in range(0, len(self), PIECE_ROWS):
            yield self.part(start, start + PIECE_ROWS)


@dataclass(frozen=True, slots=True)
class CodedIds:
    """Dictionary-encoded byte strings: id `i` is `values[codes[i]]`."""

    values: ByteIds
    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, start: int, stop: int) -> CodedIds:
        """Return the ids of some rows."""
        return CodedIds(self.values, self.codes[start:stop])


Ids = IntegerIds | ByteIds | CodedIds


class SharedColumn:
    """A column that several statistics count: the first one reads it, and the others take that.

    Args:
        column: whatever `read_ids`, `read_deltas` or `as_column` takes.
    """

    def __init__(self, column: Any) -> None:
        self.column = list(column) if isinstance(column, Iterator) else column

    @cached_property
    def ids(self) -> list[Ids]:
        """Its values as user ids; raises as `read_ids` does."""
        return read_ids(self.column)

    @cached_property
    def deltas(self) -> NDArray[np.int64]:
        """Its values as deltas; raises as `read_deltas` does."""
        return _read_delta_column(self.column)


def shared(column: Any) -> Any:
    """Return a column that several statistics count; what is no column, or one word, as it is."""
    is_column = column is not None and not isinstance(column, (str, SharedColumn))
    return SharedColumn(column) if is_column else column


def read_ids(users: Labels | SharedColumn) -> list[Ids]:
    """Read one batch of user ids.

    Args:
        users: a one-dimensional NumPy array, Arrow array or chunked array, pandas or Polars
            series, sequence or iterator of ids.

    Returns:
        The ids in order, one element for each Arrow chunk.

    Raises:
        InputError: a null, a wrong type or a wrong shape; the message shows no id.
    """
    if isinstance(users, SharedColumn):
        return users.ids
    if isinstance(users, pa.Array) and users.type.id in _PLAIN and len(users):
        _refuse_nulls(users, _NULL_USER)
        return [_from_plain(users)]
    _refuse_masked(users, _NULL_USER)
    if isinstance(users, np.ndarray) and users.dtype.kind in "iu":
        return [_from_numpy(users)]
    chunks: list[Ids] = []
    rows = 0
    for chunk in _arrow_chunks(users, _WANTED):
        try:
            chunks.append(_from_arrow(chunk))
        except InputError as error:
            raise error.after(rows) from None
        rows += len(chunk)
    return chunks


def read_deltas(deltas: WholeNumbers | SharedColumn, rows: int) -> NDArray[np.int64]:
    """Read one whole number for each of `rows` ids.

    Raises:
        InputError: another number of deltas, a null, or deltas that are not whole numbers.
    """
    values = deltas.deltas if isinstance(deltas, SharedColumn) else _read_delta_column(deltas)
    if values.shape != (rows,):
        message = f"there must be one delta for each id: {rows:,} ids, {len(values):,} deltas"
        raise InputError(message)
    return values


def _read_delta_column(deltas: WholeNumbers) -> NDArray[np.int64]:
    """Read a column of deltas."""
    _refuse_masked(deltas, _NULL_DELTA)
    if isinstance(deltas, np.ndarray):
        values: NDArray[Any] = deltas
    else:
        column = as_column(deltas, _WANTED_DELTAS)
        _refuse_nulls(column, _NULL_DELTA)
        if len(column) and not pa.types.is_integer(column.type):
            raise InputError(_WANTED_DELTAS + _ONE_COLUMN)
        # `to_numpy` would import pandas, in the middle of counting.
        chunks = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
        values = chunks[0] if len(chunks) == 1 else np.concatenate(chunks or [_NO_DELTAS])
    if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
        raise InputError(_WANTED_DELTAS + _ONE_COLUMN)
    if values.dtype.kind == "u" and len(values) and values.max() > _MOST_DELTA:
        message = "a delta must be below 2**63"
        raise InputError(message, row=int(np.argmax(values > _MOST_DELTA)) + 1)
    return _contiguous(values, np.int64)


def as_column(column: object, wanted: str) -> pa.ChunkedArray:
    """Return a column as Arrow has it.

    Args:
        column: whatever `read_ids` takes, of any type.
        wanted: what to say if it is no column.

    Raises:
        InputError: it is no column, or a masked array with values left out.
    """
    if isinstance(column, SharedColumn):
        column = column.column
    _refuse_masked(column, "the value is null")
    chunks = _arrow_chunks(column, wanted)
    return pa.chunked_array(chunks) if chunks else pa.chunked_array([[]], pa.int64())


def is_view(kind: pa.DataType) -> bool:
    """Return whether columns of a type are views of texts or byte strings."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def offset_type(kind: pa.DataType) -> type[np.signedinteger[Any]] | None:
    """Return the type of the offsets of texts and byte strings; None for other columns."""
    return _WIDTHS.get(kind.id)


def gatherable(column: Any) -> Any:
    """Return an Arrow array, chunked or not, in a layout of which Arrow can take rows."""
    if not is_view(column.type):
        return column
    texts = pa.types.is_string_view(column.type)
    return column.cast(pa.large_string() if texts else pa.large_binary())


def decoded(column: Any) -> Any:
    """Return an Arrow array, chunked or not, with values in place of a dictionary, as `gatherable`.

    Runs are decoded too. pyarrow cannot decode views, which Polars writes, nor runs of them.
    """
    if not (pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type)):
        return gatherable(column)
    if isinstance(column, pa.ChunkedArray):
        kind = decoded(pa.array([], column.type.value_type)).type
        return pa.chunked_array([decoded(chunk) for chunk in column.chunks], kind)
    if pa.types.is_run_end_encoded(column.type):
        return decoded(without_runs(column))
    return gatherable(column.dictionary).take(column.indices)


def without_runs(chunk: pa.Array) -> pa.Array:
    """Return a value for each row, and so a null for each, in place of runs; dictionaries stay.

    Rows are taken from the values: `run_end_decode` does not know UUIDs, dictionaries and views.
    """
    if not pa.types.is_run_end_encoded(chunk.type):
        return chunk
    numbered = pa.RunEndEncodedArray.from_arrays(chunk.run_ends, np.arange(len(chunk.values)))
    rows = pc.run_end_decode(numbered.slice(chunk.offset, len(chunk)))
    return gatherable(chunk.values).take(rows)


def _from_numpy(users: NDArray[Any]) -> IntegerIds:
    if users.ndim != 1:
        raise InputError(_WANTED + _ONE_COLUMN)
    return IntegerIds(
        _contiguous(users, np.uint64 if users.dtype == np.uint64 else np.int64).view(np.int64)
    )


def _contiguous(values: NDArray[Any], kind: type[Any]) -> NDArray[Any]:
    """Return the array, or a copy that leaves the last word of its block free; see `allocator`."""
    if values.flags.c_contiguous and values.dtype == kind:
        return values
    copied = np.empty(len(values) + 1, kind)[:-1]
    copied[:] = values
    return copied


def _arrow_chunks(column: object, wanted: str) -> list[pa.Array]:
    """Return the Arrow arrays that hold a column."""
    return [_decoded(chunk, wanted) for chunk in _exported(column, wanted)]


def _exported(column: Any, wanted: str) -> list[pa.Array]:
    """Return the Arrow arrays that hold a column, as its library exports them."""
    if str(getattr(column, "dtype", "")) == _POLARS_OBJECT:
        column = column.to_list()
    if isinstance(column, pa.Array):
        return [column]
    if isinstance(column, (str, bytes, bytearray, Number, np.generic, pa.Scalar)):
        raise InputError(wanted + _SINGLE)
    if isinstance(column, (dict, set, frozenset)):
        raise InputError(wanted + _ONE_COLUMN)
    try:
        if isinstance(column, pa.ChunkedArray) or hasattr(column, "__arrow_c_stream__"):
            return list(pa.chunked_array(column).chunks)
        converted = _converted(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        converted = None
    if converted is None:  # outside of the handler: Arrow's error quotes an id
        raise InputError(wanted + _ONE_COLUMN)
    return list(converted.chunks) if isinstance(converted, pa.ChunkedArray) else [converted]


def _decoded(chunk: pa.Array, wanted: str) -> pa.Array:
    """Decode run-end encoding, which hides nulls.

    Raises:
        InputError: the bytes of the column may be references to Python objects.
    """
    chunk = without_runs(chunk)
    if _stored(chunk).type == _REFERENCES:
        raise InputError(wanted + _MAYBE_REFERENCES)
    return chunk


def _stored(chunk: pa.Array) -> pa.Array:
    """Return the values of a dictionary, or the column itself; those of UUIDs as byte strings."""
    values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
    return values.storage if isinstance(values.type, pa.UuidType) else values


def _converted(column: Any) -> pa.Array | pa.ChunkedArray:
    """Return a sequence of Python objects, as Arrow has it; numbers from 2**63 on are unsigned."""
    if isinstance(column, (list, tuple)) and (built := _built(column)) is not None:
        return built
    try:
        return pa.array(column, from_pandas=False)
    except OverflowError:
        return pa.array(column, pa.uint64(), from_pandas=False)


def _built(column: Sequence[Any]) -> pa.Array | None:
    """Return whole numbers or few texts as Arrow has them; None where `pa.array` has to do it.

    The first call of `pa.array` imports pandas where it is installed, which takes a quarter of a
    second. It converts many texts sooner, and so it does once pandas is there.
    """
    kinds = set(map(type, column))
    if kinds == {int}:
        try:
            values = np.array(column, np.int64)
        except OverflowError:
            return None
        return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
    if kinds == {str} and len(column) <= _FEW_TEXTS and "pandas" not in sys.modules:
        builder = pa.lib.StringBuilder()
        builder.append_values(column)
        return builder.finish()
    return None


def _from_arrow(chunk: pa.Array) -> Ids:
    _refuse_nulls(chunk, _NULL_USER)
    if not len(chunk):
        return IntegerIds(np.empty(0, np.int64))
    if pa.types.is_dictionary(chunk.type):
        return _from_dictionary(chunk)
    values = _stored(chunk)
    return _from_numpy(np.from_dlpack(values)) if _holds_integers(values) else _byte_ids(values)


_WIDTHS: dict[int, type[np.signedinteger[Any]]] = {
    pa.string().id: np.int32,
    pa.binary().id: np.int32,
    pa.large_string().id: np.int64,
    pa.large_binary().id: np.int64,
}
"""Type of the offsets of texts and byte strings."""

_PLAIN = {
    *_WIDTHS,
    *(getattr(pa, f"{sign}int{bits}")().id for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
"""Arrow types of which most columns are, and which need no more tests to be read."""


def _from_plain(chunk: pa.Array) -> Ids:
    """Read a column of whole numbers, texts or byte strings."""
    width = _WIDTHS.get(chunk.type.id)
    return _from_numpy(np.from_dlpack(chunk)) if width is None else _strings(chunk, width)


def _refuse_masked(column: object, reason: str) -> None:
    if isinstance(column, np.ma.MaskedArray) and np.ma.is_masked(column):
        row = int(np.argmax(np.ma.getmaskarray(column))) + 1
        raise InputError(reason, row=row)


def first_null(column: pa.Array | pa.ChunkedArray) -> int:
    """Return the place of the first null of a column that has one, counting from 0."""
    return int(column.is_null().index(pa.scalar(value=True)).as_py())


def _refuse_nulls(chunk: pa.Array | pa.ChunkedArray, reason: str) -> None:
    if chunk.null_count:
        raise InputError(reason, row=first_null(chunk) + 1)


def _from_dictionary(chunk: pa.DictionaryArray) -> Ids:
    """Read a dictionary: each value is hashed once, or each row where there are fewer of these.

    Slices of a column share its whole dictionary.
    """
    values = _stored(chunk)
    if _holds_integers(values) or values.null_count or len(values) > len(chunk):
        return _from_arrow(gatherable(values).take(chunk.indices))
    codes = np.from_dlpack(chunk.indices).astype(np.int64)
    return CodedIds(_byte_ids(values), codes)


def _holds_integers(values: pa.Array) -> bool:
    return bool(pa.types.is_integer(values.type))


def _byte_ids(chunk: pa.Array) -> ByteIds:
    kind = chunk.type
    if pa.types.is_fixed_size_binary(kind):
        offsets = (chunk.offset + np.arange(len(chunk) + 1, dtype=np.int64)) * kind.byte_width
        return ByteIds(offsets, _bytes(chunk.buffers()[1]))
    chunk = gatherable(chunk)
    width = offset_type(chunk.type)
    if width is None:
        # The fields of a nested type may be named after users.
        message = f"{_WANTED}, not {'records' if pa.types.is_nested(kind) else kind}"
        if pa.types.is_floating(kind):  # pandas makes floats of whole numbers with gaps
            message += '; whole ones become ids by astype("int64")'
        elif pa.types.is_decimal(kind):
            message += "; whole ones become ids by cast(pyarrow.int64())"
        raise InputError(message)
    return _strings(chunk, width)


def _strings(chunk: pa.Array, width: type[np.signedinteger[Any]]) -> ByteIds:
    """Return texts or byte strings with offsets of this type, in place."""
    _, offset_buffer, data = chunk.buffers()
    offsets = _bytes(offset_buffer).view(width) if offset_buffer else np.zeros(1, width)
    return ByteIds(offsets[chunk.offset : chunk.offset + len(chunk) + 1], _bytes(data))


def _bytes(buffer: pa.Buffer | None) -> NDArray[np.uint8]:
    """Return the bytes of an Arrow buffer, in place."""
    return np.frombuffer(buffer, np.uint8) if buffer else np.empty(0, np.uint8)


def rows_by_code(
    codes: NDArray[np.integer[Any]], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows in the order of their codes, and where the rows of each code end.

    Args:
        codes: code of each row, int32 or uint16, 0 .. count-1.
        count: maximum number of codes.
    """
    rows, ends = np.empty(len(codes) + 1, np.int64)[:-1], np.zeros(count, np.int64)
    _sort_rows(codes, rows, ends)
    return rows, ends


@kernel(*(f"void({read_only(one)}, int64[::1], int64[::1])" for one in ("int32", "uint16")))
def _sort_rows(
    codes: NDArray[np.integer[Any]], rows: NDArray[np.int64], ends: NDArray[np.int64]
) -> None:
    """Order rows by their code, and find where the rows of each code end; `ends` comes as zeros."""
    for row in range(codes.size):
        ends[codes[row]] += 1
    total = 0
    for code in range(ends.size):
        count = ends[code]
        ends[code] = total
        total += count
    for row in range(codes.size):
        code = codes[row]
        rows[ends[code]] = row
        ends[code] += 1
