"""JSON value by value: for lines and small bodies that pyarrow refuses.

pyarrow validates fields that nobody wants, and a column has one type. Here only the wanted fields
count, and an error says what is wrong with them. Each value becomes a Python object, so that this
is for the few lines that need it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.sources.columns import Column, not_integers, show

_SPACE = b" \t\r\n"
_COMMA_AT_END = re.compile(r",\s*\Z")
_MOST_DIGITS = 20
_SIGNED, _UNSIGNED = range(-(1 << 63), 1 << 63), range(-(1 << 63), 1 << 64)


class Fields(list[tuple[str, Any]]):
    """The fields of one object as they stand, those that occur twice included."""


def _whole(digits: str) -> int | float:
    """A whole number; one that has too many digits for 64 bits is as good as infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


_DECODER = json.JSONDecoder(object_pairs_hook=Fields, parse_int=_whole, strict=False)


def parse_json(text: bytes) -> Any:
    """Read one JSON value; objects are `Fields`.

    Raises:
        InputError: it is none, with what is wrong, and nothing of what it holds.
    """
    reason = ": it is nested too deep"
    try:
        return _DECODER.decode(text.decode("utf-8", "surrogateescape"))
    except RecursionError:
        pass
    except json.JSONDecodeError as error:
        reason = _reason(error)
    raise InputError(reason)  # outside of the handler: the error holds the text


def _reason(error: json.JSONDecodeError) -> str:
    """What is wrong, in our words; empty if there is nothing to say but that it is no JSON."""
    if error.msg == "Extra data":
        return ": there is more text behind it"
    closes = error.doc[error.pos : error.pos + 1] in ("}", "]")
    if "trailing comma" in error.msg or (closes and _COMMA_AT_END.search(error.doc[: error.pos])):
        return ": there is a comma behind the last value"
    return ""


def read_values(block: bytes, columns: Sequence[Column]) -> pa.Table:
    """Read some whole lines of NDJSON.

    Columns are int64 where integers are wanted or found, binary where there is a string, and of the
    null type where there is no value.

    Raises:
        InputError: the first line that is no object with such fields.
    """
    rows = []
    for line in block.split(b"\n"):
        if line.strip(_SPACE):
            try:
                rows.append([field(_object(line), column) for column in columns])
            except InputError as error:
                raise InputError(error.reason, row=len(rows) + 1) from None
    arrays = [array_of([row[at] for row in rows], column) for at, column in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def _object(line: bytes) -> Fields:
    reason = ""
    try:
        found = parse_json(line)
    except InputError as error:
        found, reason = None, error.reason
    if isinstance(found, Fields):
        return found
    if line.lstrip(_SPACE).startswith(b"["):
        reason = ": NDJSON is no list; jq -c '.[]' makes lines of a list of objects"
    message = f"this is not one JSON object on one line{reason}"
    raise InputError(message)


def field(fields: Fields, column: Column) -> int | bytes | None:
    """The value of a field, or of the field of a field: `a.b` if there is no field of that name.

    Raises:
        InputError: it occurs twice, or is neither a string, nor a whole number, nor null.
    """
    return checked(named(fields, column.name), column)


def named(fields: Fields, name: str) -> Any:
    """What a field holds; None where it is missing.

    Raises:
        InputError: it occurs twice.
    """
    values = [value for key, value in fields if key == name]
    if len(values) > 1:
        message = f"the field {show(name)} occurs twice"
        raise InputError(message)
    parent, _, child = name.partition(".")
    if values or not child:
        return values[0] if values else None
    inner = named(fields, parent)
    return named(inner, child) if isinstance(inner, Fields) else None


def checked(value: Any, column: Column) -> int | bytes | None:
    """A value that the column may hold, a string as its UTF-8 bytes.

    Raises:
        InputError: it may not.
    """
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        if value in (_SIGNED if column.integers else _UNSIGNED):
            return value
    elif isinstance(value, str) and not column.integers:
        try:
            return value.encode()
        except UnicodeEncodeError:
            message = f"column {show(column.name)} holds a text that is not UTF-8"
        raise InputError(message)
    if column.integers:
        raise InputError(not_integers(column.name).reason)
    message = f"column {show(column.name)} holds {_word(value)} here; "
    raise InputError(message + "ids must be strings or whole numbers of at most 64 bits")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, Fields):
        return "an object"
    return "a list" if isinstance(value, list) else "a fraction, or a number beyond 64 bits"


def array_of(values: Iterable[int | bytes | None], column: Column) -> pa.Array:
    """A column of checked values; beside strings, a number is the string that stands for it."""
    known = list(values)
    kinds = {type(value) for value in known} - {type(None)}
    if bytes in kinds or column.address:
        texts = [b"%d" % value if isinstance(value, int) else value for value in known]
        return pa.array(texts, pa.binary())
    if not (kinds or column.integers):
        return pa.nulls(len(known))
    wrapped = [_signed(value) if isinstance(value, int) else None for value in known]
    return pa.array(wrapped, pa.int64())


def _signed(value: int) -> int:
    """The number with the same 64 bits that has a sign; the same user, as `ids` says."""
    return value - (1 << 64) if value > _SIGNED[-1] else value


def column_of(document: Any, column: Column) -> pa.Array:
    """One column of a list of objects, or of an object that holds a value or a list of values.

    Raises:
        InputError: it is neither, or has no such column.
    """
    if isinstance(document, Fields):
        objects, found = [document], named(document, column.name)
        values = found if _is_list(found) else [found]
    else:
        objects = _objects(document, column)
        values = [named(one, column.name) for one in objects]
    names = column.name, column.name.partition(".")[0]
    if objects and not any(key in names for one in objects for key, _ in one):
        message = f"there is no field {show(column.name)}"
        raise InputError(message)
    for row, value in enumerate(values):
        try:
            values[row] = checked(value, column)
        except InputError as error:
            raise InputError(error.reason, row=row + 1) from None
    return array_of(values, column)


def events_of(document: Any) -> int:
    """Number of events in a list of objects, or in an object that holds a list in each field.

    Raises:
        InputError: it is neither, or the lists differ in length.
    """
    if not isinstance(document, Fields):
        return len(_objects(document, None))
    lengths = {len(value) if _is_list(value) else 1 for _, value in document}
    if len(lengths) > 1:
        message = (
            "the fields do not tell how many events this is: send a list of objects, or NDJSON"
        )
        raise InputError(message)
    return lengths.pop() if lengths else 1


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and not isinstance(value, Fields)


def _objects(document: Any, column: Column | None) -> list[Fields]:
    """The objects of a list; one that is null has no fields."""
    if not _is_list(document):
        message = "this must be a JSON object, or a list of objects"
        raise InputError(message)
    for row, one in enumerate(document):
        if isinstance(one, Fields) or (one is None and column):
            continue
        message = "each event of a list must be an object; it may be empty"
        if column and not isinstance(one, list):
            example = json.dumps({column.name: ["..."]})
            message = f"these are values without a field: send {example}"
        raise InputError(message, row=row + 1)
    return [one or Fields() for one in document]
