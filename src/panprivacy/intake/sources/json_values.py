"""JSON value by value: for lines and small bodies that pyarrow refuses.

pyarrow validates unwanted fields, and a column has one type. Here only the wanted fields matter,
and an error describes the problem. Each value becomes a Python object, so this is for the few lines
that need it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.intake.sources.columns import Column, not_integers, not_numbers, show

_SPACE = b" \t\r\n"
_COMMA_AT_END = re.compile(r",\s*\Z")
_MOST_DIGITS = 20
_SIGNED, _UNSIGNED = range(-(1 << 63), 1 << 63), range(-(1 << 63), 1 << 64)


JsonValue = int | float | bytes | None
"""A checked value of a column: a float where numbers are wanted, else none."""


class ObjectFields(list[tuple[str, Any]]):
    """The fields of one object in order, including duplicates."""


def _integer(digits: str) -> int | float:
    """Return a whole number; infinity if it has too many digits for 64 bits."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


_DECODER = json.JSONDecoder(object_pairs_hook=ObjectFields, parse_int=_integer, strict=False)


def parse_json(text: bytes) -> Any:
    """Read one JSON value; objects are `ObjectFields`.

    Raises:
        InputError: it is invalid; the message gives the reason, but no content.
    """
    reason = ": it is nested too deep"
    try:
        return _DECODER.decode(text.decode("utf-8", "surrogateescape"))
    except RecursionError:
        pass
    except json.JSONDecodeError as error:
        reason = _reason(error)
    raise InputError(reason)  # outside the handler: the error holds the text


def _reason(error: json.JSONDecodeError) -> str:
    """Return the reason as a message; empty if no details are known."""
    if error.msg == "Extra data":
        return ": there is more text behind it"
    closes = error.doc[error.pos : error.pos + 1] in ("}", "]")
    if "trailing comma" in error.msg or (closes and _COMMA_AT_END.search(error.doc[: error.pos])):
        return ": there is a comma behind the last value"
    return ""


def read_values(block: bytes, columns: Sequence[Column]) -> pa.Table:
    """Read some complete lines of NDJSON.

    Columns are int64 if integers are wanted or found, binary if there is a string, and of the null
    type if there is no value.

    Raises:
        InputError: a line is no object with such fields; the first such line is named.
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


def _object(line: bytes) -> ObjectFields:
    reason = ""
    try:
        found = parse_json(line)
    except InputError as error:
        found, reason = None, error.reason
    if isinstance(found, ObjectFields):
        return found
    if line.lstrip(_SPACE).startswith(b"["):
        reason = ": NDJSON is no list; jq -c '.[]' makes lines of a list of objects"
    message = f"this is not one JSON object on one line{reason}"
    raise InputError(message)


def field(fields: ObjectFields, column: Column) -> JsonValue:
    """Return the value of a field, or of a nested field: `a.b` if there is no field of that name.

    Raises:
        InputError: it occurs twice, or is neither a string, nor a whole number, nor null.
    """
    return checked(named(fields, column.name), column)


def named(fields: ObjectFields, name: str) -> Any:
    """Return the value of a field; None if it is missing.

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
    return named(inner, child) if isinstance(inner, ObjectFields) else None


def checked(value: Any, column: Column) -> JsonValue:
    """Return a valid value for the column, a string as its UTF-8 bytes.

    Raises:
        InputError: the value is invalid.
    """
    if value is None:
        return None
    if column.numbers:
        return _number(value, column)
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


def _number(value: Any, column: Column) -> float:
    """Return a number, or a text of one."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError):
            return float(value)
    raise InputError(not_numbers(column.name).reason)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, ObjectFields):
        return "an object"
    return "a list" if isinstance(value, list) else "a fraction, or a number beyond 64 bits"


def array_of(values: Iterable[JsonValue], column: Column) -> pa.Array:
    """Return a column of checked values; if there are strings, numbers become strings."""
    known = list(values)
    if column.numbers:
        return pa.array(known, pa.float64())
    kinds = {type(value) for value in known} - {type(None)}
    if bytes in kinds or column.address:
        texts = [b"%d" % value if isinstance(value, int) else value for value in known]
        return pa.array(texts, pa.binary())
    if not (kinds or column.integers):
        return pa.nulls(len(known))
    wrapped = [_signed(value) if isinstance(value, int) else None for value in known]
    return pa.array(wrapped, pa.int64())


def _signed(value: int) -> int:
    """Return the signed number with the same 64 bits, which is the same user, see `ids`."""
    return value - (1 << 64) if value > _SIGNED[-1] else value


def column_of(document: Any, column: Column) -> pa.Array:
    """Return one column of a list of objects, or of an object of values or lists of values.

    Raises:
        InputError: the document is neither, or has no such column.
    """
    if isinstance(document, ObjectFields):
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
    """Return the number of events in a list of objects, or in an object with a list in each field.

    Raises:
        InputError: it is neither, or the lists differ in length.
    """
    if not isinstance(document, ObjectFields):
        return len(_objects(document, None))
    lengths = {len(value) if _is_list(value) else 1 for _, value in document}
    if len(lengths) > 1:
        message = (
            "the fields do not tell how many events this is: send a list of objects, or NDJSON"
        )
        raise InputError(message)
    return lengths.pop() if lengths else 1


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and not isinstance(value, ObjectFields)


def _objects(document: Any, column: Column | None) -> list[ObjectFields]:
    """Return the objects of a list; a null object has no fields."""
    if not _is_list(document):
        message = "this must be a JSON object, or a list of objects"
        raise InputError(message)
    for row, one in enumerate(document):
        if isinstance(one, ObjectFields) or (one is None and column):
            continue
        message = "each event of a list must be an object; it may be empty"
        if column and not isinstance(one, list):
            example = json.dumps({column.name: ["..."]})
            message = f"these are values without a field: send {example}"
        raise InputError(message, row=row + 1)
    return [one or ObjectFields() for one in document]
