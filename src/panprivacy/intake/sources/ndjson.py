"""NDJSON: one object a line; ids are strings or whole numbers.

A string is returned as its UTF-8 bytes and never by its appearance: without types, pyarrow reads
dates into strings, and in one block but not in the next. Plain lines are read in one pass, others
by pyarrow, and lines that it refuses value by value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from panprivacy.errors import InputError
from panprivacy.intake.sources.columns import Column, StartError, show
from panprivacy.intake.sources.json_values import read_values
from panprivacy.intake.sources.plain_lines import read_plain_lines
from panprivacy.intake.sources.reader import Feed
from panprivacy.intake.sources.text import Lines, check_utf8, complete_records, parsed

Types = dict[str, pa.DataType]

ID_TYPES = (pa.int64(), pa.binary())
_FIRST_BYTES = 256
_FEW_BYTES = 1 << 12
_FIRST_NULL, _LATER_NULL = re.compile(rb"[ \t\r]*null"), re.compile(rb"\n[ \t\r]*null")
_ROW = Column("\0", integers=True)
"""Column of a field that no row has, so it is null: objects have no first column to count by."""


def read_ndjson(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse NDJSON; the column `a.b` is the field `b` of `a` if no field has that name.

    Columns are int64 if integers are wanted, otherwise int64 in each batch that contains only
    numbers, and else binary. A missing field is null. If no column is wanted, the result is a
    column of nulls.

    Raises:
        InputError: it is not NDJSON with such columns.
    """
    lines = Lines()
    return parsed(file, complete_records(file, lines), _Parser(columns), lines)


class _Parser:
    """Parser of consecutive blocks; a column without a value in a block is of Arrow's null type."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns or [_ROW]
        self._absent: list[str] | None = None if columns else []
        """Fields missing in the first block with rows; None before that block."""

    def __call__(self, block: bytes) -> pa.Table:
        """Parse one block of complete lines into a table of the wanted columns."""
        types = column_types(self._columns)
        mixed = {name: pa.binary() if kind == pa.null() else kind for name, kind in types.items()}
        table = read_plain_lines(block, types)
        if table is None and mixed != types:
            table = read_plain_lines(block, mixed)
        if table is not None:
            self._absent = []
            return check_utf8(table)
        if self._absent is None:  # of the complete block, even if only halves of it can be read
            self._absent = [name for name in types if not _may_hold(block, name)]
        table = self._table(block)
        self._check_fields(table)
        return check_utf8(table)

    def _table(self, block: bytes) -> pa.Table:
        """Parse lines that are not plain; many lines that pyarrow refuses get no detailed error."""
        types = column_types(self._columns)
        for name, kind in types.items():
            if kind == pa.null():
                types[name] = _type_of_first_value(block, name)
        try:
            return _read(block, types)
        except pa.ArrowInvalid:
            pass
        if len(block) > _FEW_BYTES and block.index(b"\n") < len(block) - 1:
            message = "one of these lines is no such object"
            raise InputError(message)
        return read_values(block, self._columns)

    def _check_fields(self, table: pa.Table) -> None:
        """Check that each column has at least a null in the first block."""
        if not table.num_rows:
            self._absent = None if self._absent else self._absent
            return
        absent, self._absent = self._absent, []
        for name in absent or []:
            if table[name].null_count == table.num_rows:
                message = f"there is no field {show(name)} in the first rows"
                raise StartError(message)


def column_types(columns: Sequence[Column]) -> Types:
    """Return the types of columns before their first value; null if the values decide."""
    return {
        one.name: pa.binary() if one.address else known_type(one) or pa.null() for one in columns
    }


def known_type(column: Column) -> pa.DataType | None:
    """Return the type of a column of numbers; None if it holds ids, whose type their text says."""
    if column.numbers:
        return pa.float64()
    return pa.int64() if column.integers else None


def _read(block: bytes, types: Types) -> pa.Table:
    """Read the named fields, or nested fields, with pyarrow."""
    if _FIRST_NULL.match(block) or _LATER_NULL.search(block):
        message = "a row is null"  # pyarrow crashes on such a line, or counts it
        raise pa.ArrowInvalid(message)
    paths = {name: path_of(block, name) for name in types}
    table = pa.json.read_json(
        pa.BufferReader(block),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pa.json.ParseOptions(
            explicit_schema=schema_of({paths[name]: kind for name, kind in types.items()}),
            unexpected_field_behavior="ignore",
        ),
    )
    arrays = [_at(table, path) for path in paths.values()]
    return pa.Table.from_arrays(arrays, names=list(types))


def path_of(text: bytes, name: str) -> tuple[str, ...]:
    """Return the path of the column of this name: a field, or else a nested field."""
    return (name,) if "." not in name or has_field(text, name) else tuple(name.split("."))


def schema_of(types: Mapping[tuple[str, ...], pa.DataType]) -> pa.Schema:
    """Return the schema that pyarrow is to read.

    Raises:
        ArrowInvalid: both a field and nested fields of it are wanted.
    """
    tree: dict[str, Any] = {}
    for path, kind in types.items():
        inner = tree
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        if not isinstance(inner, dict) or path[-1] in inner:
            message = "a field cannot be a value and an object"
            raise pa.ArrowInvalid(message)
        inner[path[-1]] = kind
    return pa.schema([(name, _type_of(kind)) for name, kind in tree.items()])


def _type_of(kind: Any) -> pa.DataType:
    if not isinstance(kind, dict):
        return kind
    return pa.struct([(name, _type_of(inner)) for name, inner in kind.items()])


def _at(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.struct_field(table[path[0]], list(path[1:])) if path[1:] else table[path[0]]


def _type_of_first_value(block: bytes, name: str) -> pa.DataType:
    """Return the id type of a column's first value, or the null type if it has no value.

    Usually the first lines have one; they are parsed without the rest.
    """
    kind, end = pa.null(), 0
    while kind == pa.null() and end < len(block):
        end = block.find(b"\n", 2 * end + _FIRST_BYTES) + 1 or len(block)
        kind = _type_within(block[:end], name)
    return kind


def _type_within(lines: bytes, name: str) -> pa.DataType:
    """Return the type of the values in some lines; binary if they have several types."""
    for kind in ID_TYPES:
        try:
            column = _read(lines, {name: kind})[name]
        except pa.ArrowInvalid:
            continue
        return pa.null() if column.null_count == len(column) else kind
    return pa.binary()


def _may_hold(block: bytes, name: str) -> bool:
    """Return whether a column of this name may have a value: all fields of its path exist."""
    return all(has_field(block, part) for part in path_of(block, name))


def has_field(block: bytes, name: str) -> bool:
    """Return whether a field of that name occurs, at any depth; its value may be null."""
    spellings = (json.dumps(name, ensure_ascii=ascii_only) for ascii_only in (True, False))
    return any(re.search(re.escape(s.encode()) + rb"\s*:", block) for s in spellings)
