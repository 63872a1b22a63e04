"""JSON in memory: one object of columns, or a list of objects.

`{"user": ["ada", "grace"], "delta": [1, -1]}`, `{"user": "ada", "delta": 1}` and
`[{"user": "ada", "delta": 1}, {"user": "grace", "delta": -1}]` are equivalent for pyarrow, which
gets the expected types, as in `ndjson`: each column is tried with all its possible types, and a
value that does not fit stops the parser. A small body that fits none is read value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json

from panprivacy.errors import InputError
from panprivacy.ground.kernels import kernel, read_only
from panprivacy.intake.sources.columns import Column, show
from panprivacy.intake.sources.json_values import column_of, events_of, parse_json
from panprivacy.intake.sources.ndjson import ID_TYPES, has_field, known_type
from panprivacy.intake.sources.reader import BATCH_ROWS
from panprivacy.intake.sources.text import BYTE_ORDER_MARK, RECORD_BYTES, check_utf8

_MOST_VALUES = 4 << 20
"""Maximum bytes that are read value by value: Python objects take some twenty times as much."""
_MOST_DEPTH = 100
"""pyarrow infers types by recursion: at thousands of lists within lists the process would crash."""
_OPENING, _CLOSING = tuple(b"[{"), tuple(b"]}")
_QUOTE, _ESCAPE = b'"\\'
_SPACE = b" \t\r\n"
_ROWS = "rows"
_NO_COLUMNS = pa.schema([])

_Values = Callable[[pa.ChunkedArray], pa.Array]
_Shape = tuple[pa.Schema, _Values]
"""Schema for pyarrow, and the function that finds the column in its result."""


def read_json_body(body: memoryview, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse one JSON object whose fields are values or lists of values, or a list of objects.

    Columns are int64 if integers are wanted or found, binary if there is a string, or of Arrow's
    null type if all are null. In a list of objects a missing field is null. If no column is wanted,
    the result is one column of nulls.

    Raises:
        InputError: it is not such JSON, or the columns are of unequal lengths.
    """
    text = bytes(body).removeprefix(BYTE_ORDER_MARK).strip(_SPACE)
    if len(text) > RECORD_BYTES:
        message = f"this JSON is longer than {RECORD_BYTES >> 20} MiB; send it in parts, or NDJSON"
        raise InputError(message)
    if not columns:
        rows = _rows_of_objects(text) if text.startswith(b"[") else _rows_of_lists(text)
        yield pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
        return
    arrays = _arrays(text, columns)
    if arrays is None:
        document = _document(text)
        arrays = [column_of(document, column) for column in columns]
    for array, column in zip(arrays, columns, strict=True):
        if len(array) != len(arrays[0]):
            message = (
                f"there must be one value in each column for each user: {show(columns[0].name)} "
                f"has {len(arrays[0]):,}, and {show(column.name)} {len(array):,}"
            )
            raise InputError(message)
    names = [column.name for column in columns]
    batch = check_utf8(pa.RecordBatch.from_arrays(arrays, names=names))
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _arrays(text: bytes, columns: Sequence[Column]) -> list[pa.Array] | None:
    """Return the columns as pyarrow reads them; None if it refuses one of them."""
    shapes: Callable[[Column], list[_Shape]] = _column_shapes
    if text.startswith(b"["):
        # Inside a list as well, or [1], "x": [2] would pass for one value.
        if not _is_object(b'{"rows":[' + text + b"]}"):
            return None
        text, shapes = b'{"rows":' + text + b"}", _row_shapes
    arrays = []
    for column in columns:
        array = _read_column(text, column, shapes(column))
        if array is None:
            return None
        arrays.append(array)
    return arrays


def _document(text: bytes) -> Any:
    """Return the JSON value as Python objects."""
    if len(text) > _MOST_VALUES:
        message = "a column has several types, or this is no JSON: send NDJSON, of which errors "
        raise InputError(message + "name the row")
    try:
        return parse_json(text)
    except InputError as error:
        reason = error.reason
    if "more text" in reason:
        message = "this must be one JSON value; NDJSON has the media type application/x-ndjson"
        raise InputError(message)
    message = (
        f'this is not JSON such as {{"user": ["ada", "grace"]}} or [{{"user": "ada"}}]{reason}'
    )
    raise InputError(message)


def _rows_of_lists(text: bytes) -> int:
    """Return the number of values in each field of an object."""
    if _depth(np.frombuffer(text, np.uint8)) > _MOST_DEPTH:
        message = f"this JSON is nested more than {_MOST_DEPTH} deep"
        raise InputError(message)
    try:
        table = _read(text, None)
    except pa.ArrowInvalid:
        table = None
    if table is not None and table.num_rows == 1:
        lengths = {_length(found.combine_chunks()) for found in table.columns} or {1}
        if len(lengths) == 1:
            return lengths.pop()
    return events_of(_document(text))


def _depth_of(text: npt.NDArray[np.uint8]) -> int:
    """Return the maximum nesting depth; arbitrary for invalid JSON."""
    depth = deepest = at = 0
    inside = False
    while at < text.size:
        byte = text[at]
        if byte == _QUOTE:
            inside = not inside
        elif inside:
            at += byte == _ESCAPE
        elif byte in _OPENING:
            depth += 1
            deepest = max(depth, deepest)
        elif byte in _CLOSING:
            depth -= 1
        at += 1
    return deepest


_depth = kernel(f"int64({read_only('uint8')})")(_depth_of)


def _length(found: pa.Array) -> int:
    """Return the length of the one list; 1 for a value."""
    return len(found.flatten()) if pa.types.is_list(found.type) and not found.null_count else 1


def _rows_of_objects(text: bytes) -> int:
    """Return the number of objects in a list."""
    try:
        table = _read(b'{"rows":' + text + b"}", pa.schema({_ROWS: pa.list_(pa.struct([]))}))
    except pa.ArrowInvalid:
        table = None
    if table is not None and table.num_rows == 1:
        rows = _only_chunk(table[0]).flatten()
        if not rows.null_count:
            return len(rows)
    return events_of(_document(text))


def _column_shapes(column: Column) -> list[_Shape]:
    """Return the shapes of a column: a list of values, or one value."""
    kinds = _kinds(column)
    lists = [(pa.schema({column.name: pa.list_(kind)}), _only_list) for kind in kinds]
    return lists + [(pa.schema({column.name: kind}), _only_chunk) for kind in kinds]


def _row_shapes(column: Column) -> list[_Shape]:
    """Return the shapes of a column in a list of objects."""
    return [
        (pa.schema({_ROWS: pa.list_(pa.struct({column.name: kind}))}), _only_field)
        for kind in _kinds(column)
    ]


def _kinds(column: Column) -> Sequence[pa.DataType]:
    known = known_type(column)
    return ID_TYPES if known is None else [known]


def _only_chunk(found: pa.ChunkedArray) -> pa.Array:
    return found.combine_chunks()


def _only_list(found: pa.ChunkedArray) -> pa.Array:
    """Return the values of the one list; a null in its place is one value."""
    lists = _only_chunk(found)
    return pa.nulls(1, lists.type.value_type) if lists.null_count else lists.flatten()


def _only_field(found: pa.ChunkedArray) -> pa.Array:
    """Return the one field of the objects in the one list; null for a missing object."""
    return _only_chunk(found).flatten().flatten()[0]


def _read_column(text: bytes, column: Column, shapes: Sequence[_Shape]) -> pa.Array | None:
    """Return one column, in the first shape that fits, of the null type if all ids are null."""
    for schema, values in shapes:
        try:
            table = _read(text, schema)
        except pa.ArrowInvalid:
            continue
        if table.num_rows != 1:
            return None
        found = values(table[0])
        if found.null_count < len(found) or not len(found):
            return found
        if not has_field(text, column.name):
            return None
        return pa.nulls(len(found)) if known_type(column) is None else found
    return None


def _is_object(text: bytes) -> bool:
    """Return whether this is one JSON object, with any content."""
    try:
        return _read(text, _NO_COLUMNS).num_rows == 1
    except pa.ArrowInvalid:
        return False


def _read(text: bytes, schema: pa.Schema | None) -> pa.Table:
    """Read the fields of a schema; all fields if the schema is None."""
    if text.lstrip(b" \t\r\n").startswith(b"null"):  # pyarrow crashes on this
        message = "a row is null"
        raise pa.ArrowInvalid(message)
    return pa.json.read_json(
        pa.BufferReader(text),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pa.json.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="infer" if schema is None else "ignore",
            newlines_in_values=True,
        ),
    )
