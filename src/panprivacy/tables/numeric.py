"""Columns of values: numbers as NumPy, Arrow, pandas or Polars hold them, or texts of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.tables.ids import Labels, SharedColumn, as_column, decoded, first_null

_WANTED = "values must be numbers, or texts of numbers, in a one-dimensional array or sequence"
_NULL = "the value is null; drop such rows or give them a value"
_NO_NUMBER = "the value is not a number"


def read_values(values: Labels | SharedColumn) -> NDArray[np.float64]:
    """Read one column of numbers.

    Args:
        values: whole numbers, floats or decimals; or texts, each of one number, as a log has them.
            Whole numbers beyond 2**53 are rounded to a float.

    Returns:
        float64[n], contiguous; NaN where the column has it.

    Raises:
        InputError: a null, a text that is no number, a wrong type or a wrong shape. The message
            names the row, never the value.
    """
    given = values.column if isinstance(values, SharedColumn) else values
    if isinstance(given, np.ndarray) and not isinstance(given, np.ma.MaskedArray):
        if given.ndim == 1 and given.dtype.kind in "iuf":
            return np.ascontiguousarray(given, np.float64)
        if given.ndim != 1:
            raise InputError(_WANTED)
    column = as_column(values, _WANTED)
    if column.null_count:
        raise InputError(_NULL, row=first_null(column) + 1)
    if not len(column):
        return np.empty(0)
    numbers = _numbers(decoded(column))
    return np.concatenate([np.from_dlpack(chunk) for chunk in numbers.chunks if len(chunk)])


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column as float64.

    Raises:
        InputError: it is of another kind; or a row is no number, which is named.
    """
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64(), safe=False)
    texts = _texts(column)
    if texts is None:
        raise InputError(_WANTED)
    numbers = _parsed(texts)
    if numbers is None:  # outside of the handler: Arrow's error quotes a value
        raise InputError(_NO_NUMBER, row=_first_unparsed(texts) + 1)
    return numbers


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return texts or byte strings as texts without space around them; None for other columns."""
    kind: Any = column.type
    known = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    if not any(test(kind) for test in (*known, pa.types.is_large_binary)):
        return None
    try:
        return pc.ascii_trim_whitespace(column.cast(pa.large_string()))
    except pa.ArrowException:  # bytes that are no text
        return None


def _parsed(texts: Any) -> Any:
    """Return texts as float64; None if one is no number."""
    try:
        return texts.cast(pa.float64())
    except pa.ArrowException:
        return None


def _first_unparsed(texts: pa.ChunkedArray) -> int:
    """Return the place of the first text that is no number, by bisection."""
    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if _parsed(texts.slice(low, middle - low)) is None
            else (
                middle,
                high,
            )
        )
    return low
