"""NDJSON: one object a line; ids are strings or whole numbers, the same throughout.

A string is handed out as its UTF-8 bytes and never as what it looks like: left alone, pyarrow reads
dates into strings, and in one block but not in the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.json

from panprivacy.errors import InputError
from panprivacy.sources.columns import Column, StartError, not_integers, show
from panprivacy.sources.plain_lines import read_plain_lines
from panprivacy.sources.reader import Feed
from panprivacy.sources.text import Lines, check_utf8, parsed, whole_records

Types = dict[str, pa.DataType]

ID_TYPES = (pa.int64(), pa.binary())
_FIRST_BYTES = 256
_FIRST_NULL, _LATER_NULL = re.compile(rb"[ \t\r]*null"), re.compile(rb"\n[ \t\r]*null")
_ROW = Column("\0", integers=True)
"""No field has this name, so it is null in every row: objects have no first column to count by."""
_NOT_INT64 = "Failed to convert JSON to int64"
_WRONG_TYPE = re.compile(
    r"JSON parse error: Column\(/.*\) changed from \w+ to (\w+) in row", re.DOTALL
)
_WORDS = {
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def read_ndjson(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse NDJSON.

    Columns are int64 where integers are wanted, otherwise int64 or binary, whichever the first
    value is. A missing field is null. Where no column is wanted there is one of nulls.

    Raises:
        InputError: it is not NDJSON with such columns.
    """
    lines = Lines()
    return parsed(file, whole_records(file, lines), _Parser(columns), lines)


class _Parser:
    """Parses block after block, and holds each column to the type of its first value.

    A column that has had no value yet is of Arrow's null type.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._integers = {column.name for column in columns if column.integers}
        self._types = column_types(columns or [_ROW])
        self._absent: list[str] | None = None if columns else []
        """Fields that the first block with rows does not name; None before it."""

    def __call__(self, block: bytes) -> pa.Table:
        """One block of whole lines, as a table of the wanted columns."""
        table = read_plain_lines(block, self._types)
        if table is not None:
            self._absent = []
            self._types = {field.name: field.type for field in table.schema}
            return check_utf8(table)
        if self._absent is None:  # of the whole block, also if only halves of it can be read
            self._absent = [name for name in self._types if not has_field(block, name)]
        for name, kind in self._types.items():
            if kind == pa.null():
                self._types[name] = _type_of_first_value(block, name)
        try:
            table = _read(block, self._types)
        except pa.ArrowInvalid:
            raise self._explain(block) from None
        self._check_fields(table)
        return check_utf8(table)

    def _check_fields(self, table: pa.Table) -> None:
        """Refuse a column of which the first block has not even a null."""
        absent, self._absent = self._absent, [] if table.num_rows else None
        for name in absent or []:
            if table.num_rows and table[name].null_count == table.num_rows:
                message = f"there is no field {show(name)} in the first rows"
                raise StartError(message)

    def _explain(self, block: bytes) -> InputError:
        """What is wrong with the first line that cannot be parsed, without what it holds."""
        rows, line = _first_bad_line(block, self._types)
        for name, kind in self._types.items():
            complaint = _complaint(line, {name: kind})
            if "was specified twice" in complaint:
                return InputError(f"the field {show(name)} occurs twice", row=rows + 1)
            if (found := _WRONG_TYPE.match(complaint)) or complaint.startswith(_NOT_INT64):
                if name in self._integers:
                    return not_integers(name).after(rows)
                word = _WORDS[found[1]] if found else "a fraction, or a number beyond 64 bits"
                reason = (
                    f"column {show(name)} holds {word} here; "
                    "ids must all be strings, or all be whole numbers of at most 64 bits"
                )
                return InputError(reason, row=rows + 1)
        reason = "this is not one JSON object on one line"
        if line.lstrip().startswith(b"["):
            reason += ": NDJSON is no list; jq -c '.[]' makes lines of a list of objects"
        return InputError(reason, row=rows + 1)


def column_types(columns: Sequence[Column]) -> Types:
    """The types of columns before there was a value; null where the first one says it."""
    return {one.name: pa.int64() if one.integers else pa.null() for one in columns}


def _read(block: bytes, types: Types) -> pa.Table:
    if _FIRST_NULL.match(block) or _LATER_NULL.search(block):
        message = "a row is null"  # pyarrow crashes at a line that begins so, or counts it
        raise pa.ArrowInvalid(message)
    return pa.json.read_json(
        pa.BufferReader(block),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pa.json.ParseOptions(
            explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"
        ),
    )


def _complaint(block: bytes, types: Types) -> str:
    """What pyarrow says against a block; it may quote values; empty if all is well."""
    try:
        _read(block, types)
    except pa.ArrowInvalid as error:
        return str(error)
    return ""


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
    """The type of the first value in some lines.

    When neither type fits all of them, the one that fits longer is that of the first value.
    """
    for kind in ID_TYPES:
        try:
            column = _read(lines, {name: kind})[name]
        except pa.ArrowInvalid:
            continue
        return pa.null() if column.null_count == len(column) else kind
    return max(ID_TYPES, key=lambda kind: _first_bad_line(lines, {name: kind})[0])


def _first_bad_line(block: bytes, types: Types) -> tuple[int, bytes]:
    """Halve a block that does not parse until one line is left; the rows before it, and it."""
    rows = 0
    while half := _middle(block):
        try:
            rows += _read(block[:half], types).num_rows
        except pa.ArrowInvalid:
            block = block[:half]
        else:
            block = block[half:]
    return rows, block


def _middle(block: bytes) -> int:
    """The end of a line near the middle; 0 if there is only one line."""
    middle = len(block) // 2
    end = block.rfind(b"\n", 0, middle) + 1 or block.find(b"\n", middle) + 1
    return end if end < len(block) else 0


def has_field(block: bytes, name: str) -> bool:
    """Whether a field of that name stands anywhere, at any depth; its value may be null."""
    spellings = (json.dumps(name, ensure_ascii=ascii_only) for ascii_only in (True, False))
    return any(re.search(re.escape(s.encode()) + rb"\s*:", block) for s in spellings)
