"""NDJSON: one object a line; ids are strings or whole numbers.

A string is handed out as its UTF-8 bytes and never as what it looks like: left alone, pyarrow reads
dates into strings, and in one block but not in the next. Plain lines are read in one pass, others
by pyarrow, and what that refuses value by value.
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
from panprivacy.sources.columns import Column, StartError, show
from panprivacy.sources.json_values import read_values
from panprivacy.sources.plain_lines import read_plain_lines
from panprivacy.sources.reader import Feed
from panprivacy.sources.text import Lines, check_utf8, parsed, whole_records

Types = dict[str, pa.DataType]

ID_TYPES = (pa.int64(), pa.binary())
_FIRST_BYTES = 256
_FEW_BYTES = 1 << 12
_FIRST_NULL, _LATER_NULL = re.compile(rb"[ \t\r]*null"), re.compile(rb"\n[ \t\r]*null")
_ROW = Column("\0", integers=True)
"""No field has this name, so it is null in every row: objects have no first column to count by."""


def read_ndjson(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse NDJSON; the column `a.b` is the field `b` of `a` where no field has that name.

    Columns are int64 where integers are wanted, otherwise in each batch int64 if it holds numbers
    alone, and else binary. A missing field is null. Where no column is wanted, one has nulls.

    Raises:
        InputError: it is not NDJSON with such columns.
    """
    lines = Lines()
    return parsed(file, whole_records(file, lines), _Parser(columns), lines)


class _Parser:
    """Parses block after block; a column without a value in a block is of Arrow's null type."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns or [_ROW]
        self._absent: list[str] | None = None if columns else []
        """Fields that the first block with rows does not name; None before it."""

    def __call__(self, block: bytes) -> pa.Table:
        """One block of whole lines, as a table of the wanted columns."""
        types = column_types(self._columns)
        mixed = {name: pa.binary() if kind == pa.null() else kind for name, kind in types.items()}
        table = read_plain_lines(block, types)
        if table is None and mixed != types:
            table = read_plain_lines(block, mixed)
        if table is not None:
            self._absent = []
            return check_utf8(table)
        if self._absent is None:  # of the whole block, also if only halves of it can be read
            self._absent = [name for name in types if not _may_hold(block, name)]
        table = self._table(block)
        self._check_fields(table)
        return check_utf8(table)

    def _table(self, block: bytes) -> pa.Table:
        """What is not plain; of many lines that pyarrow refuses, nothing but that it does."""
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
        """Refuse a column of which the first block has not even a null."""
        if not table.num_rows:
            self._absent = None if self._absent else self._absent
            return
        absent, self._absent = self._absent, []
        for name in absent or []:
            if table[name].null_count == table.num_rows:
                message = f"there is no field {show(name)} in the first rows"
                raise StartError(message)


def column_types(columns: Sequence[Column]) -> Types:
    """The types of columns before there was a value; null where the values say it."""
    return {
        one.name: pa.int64() if one.integers else pa.binary() if one.address else pa.null()
        for one in columns
    }


def _read(block: bytes, types: Types) -> pa.Table:
    """Have pyarrow read the named fields, or the fields of fields."""
    if _FIRST_NULL.match(block) or _LATER_NULL.search(block):
        message = "a row is null"  # pyarrow crashes at a line that begins so, or counts it
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
    """Where the column of this name is: a field, or a field of fields where there is none."""
    return (name,) if "." not in name or has_field(text, name) else tuple(name.split("."))


def schema_of(types: Mapping[tuple[str, ...], pa.DataType]) -> pa.Schema:
    """What to have pyarrow look for.

    Raises:
        ArrowInvalid: a field is wanted, and fields of it.
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
    """The id type of a column's first value, or the null type if it has no value.

    Most often the first lines have one; they are parsed without the rest.
    """
    kind, end = pa.null(), 0
    while kind == pa.null() and end < len(block):
        end = block.find(b"\n", 2 * end + _FIRST_BYTES) + 1 or len(block)
        kind = _type_within(block[:end], name)
    return kind


def _type_within(lines: bytes, name: str) -> pa.DataType:
    """The type of the values in some lines; text where they have several."""
    for kind in ID_TYPES:
        try:
            column = _read(lines, {name: kind})[name]
        except pa.ArrowInvalid:
            continue
        return pa.null() if column.null_count == len(column) else kind
    return pa.binary()


def _may_hold(block: bytes, name: str) -> bool:
    """Whether a column of this name may have a value: all fields of its path are there."""
    return all(has_field(block, part) for part in path_of(block, name))


def has_field(block: bytes, name: str) -> bool:
    """Whether a field of that name stands anywhere, at any depth; its value may be null."""
    spellings = (json.dumps(name, ensure_ascii=ascii_only) for ascii_only in (True, False))
    return any(re.search(re.escape(s.encode()) + rb"\s*:", block) for s in spellings)
