"""NDJSON as most programs write it, read in one pass; of all other NDJSON nothing is said here.

A plain line is one flat object, with each wanted field once, and no null, escape or exponent in it.
Its ids are strings, or whole numbers of at most 18 digits, the same throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panprivacy._kernels import helper, kernel, read_only

_UNKNOWN, _INTEGER, _TEXT = range(3)
_MOST_DIGITS = 18
"""So many fit into int64, whichever they are."""
_MOST_BYTES = (1 << 31) - 1
"""What the offsets of Arrow's texts can say."""

_SPACE, _TAB, _CR, _LF, _QUOTE, _COMMA, _MINUS, _DOT, _ZERO, _COLON, _ESCAPE = b' \t\r\n",-.0:\\'
_OPEN, _CLOSE = b"{}"
_FIRST_PRINTABLE = 32
_KINDS = {pa.null(): _UNKNOWN, pa.int64(): _INTEGER, pa.binary(): _TEXT}

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]


def read_plain_lines(block: bytes | bytearray, types: dict[str, pa.DataType]) -> pa.Table | None:
    """The wanted columns of some whole lines; None unless there are lines, and all are plain.

    Args:
        block: ends in a newline.
        types: int64 or binary by name, or null for whichever the first value is.
    """
    rows, width = block.count(b"\n"), len(types)
    if len(block) > _MOST_BYTES:
        return None
    names = [name.encode() for name in types]
    kinds = np.array([_KINDS[kind] for kind in types.values()], np.int64)
    ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
    # A word more than is used, at least: glibc does not overwrite the last one when it is freed.
    numbers = np.empty((width, rows + 2), np.int64)
    offsets = np.empty((width, rows + 3), np.int32)
    texts = np.empty((width, len(block) + 8), np.uint8)
    text = np.frombuffer(block, np.uint8)
    text.flags.writeable = False  # the kernel is compiled for one kind of array
    found = _read(
        text,
        np.frombuffer(b"".join(names), np.uint8),
        ends,
        kinds,
        numbers,
        offsets,
        texts,
    )
    if found <= 0:
        return None
    arrays = [_array(kinds[at], found, numbers[at], offsets[at], texts[at]) for at in range(width)]
    return pa.Table.from_arrays(arrays, names=list(types))


def _array(kind: int, rows: int, numbers: Numbers, offsets: NDArray[Any], text: Bytes) -> pa.Array:
    if kind == _INTEGER:
        return pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(numbers)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text[: offsets[rows]])]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


@helper
def _after_space(block: Bytes, at: int) -> int:
    """Where something stands that is no space within a line."""
    while at < block.size and (block[at] == _SPACE or block[at] == _TAB or block[at] == _CR):
        at += 1
    return at


@helper
def _string_end(block: Bytes, at: int) -> int:
    """Where the string whose first quote is here has its other one; -1 if it is not plain."""
    at += 1
    while at < block.size and block[at] != _QUOTE:
        if block[at] == _ESCAPE or block[at] < _FIRST_PRINTABLE:
            return -1
        at += 1
    return at if at < block.size else -1


@helper
def _digits_end(block: Bytes, at: int) -> int:
    """Behind the digits that begin here."""
    while at < block.size and _ZERO <= block[at] < _ZERO + 10:
        at += 1
    return at


@helper
def _whole_end(block: Bytes, at: int) -> int:
    """Behind the whole number that begins here; -1 if none does."""
    start = at + 1 if block[at] == _MINUS else at
    at = _digits_end(block, start)
    return -1 if at == start or (block[start] == _ZERO and at > start + 1) else at


@helper
def _is_word(block: Bytes, at: int, word: bytes) -> bool:
    """Whether a word stands here."""
    if at + len(word) > block.size:
        return False
    for place in range(len(word)):  # noqa: SIM110 - numba
        if block[at + place] != word[place]:
            return False
    return True


@helper
def _value_end(block: Bytes, at: int) -> int:
    """Behind a value that nobody wants; -1 if it is not plain."""
    if block[at] == _QUOTE:
        return _string_end(block, at) + 1 or -1
    if _is_word(block, at, b"true") or _is_word(block, at, b"null"):
        return at + 4
    if _is_word(block, at, b"false"):
        return at + 5
    at = _whole_end(block, at)
    if at < 0 or at == block.size or block[at] != _DOT:
        return at
    end = _digits_end(block, at + 1)
    return -1 if end == at + 1 else end


@helper
def _wanted(block: Bytes, start: int, stop: int, names: Bytes, ends: Numbers) -> int:
    """Which of the columns has this name, or -1."""
    for column in range(ends.size - 1):
        begin = ends[column]
        same = stop - start == ends[column + 1] - begin
        at = start
        while same and at < stop:
            same = block[at] == names[begin + at - start]
            at += 1
        if same:
            return column
    return -1


@helper
def _take(
    block: Bytes,
    at: int,
    row: int,
    kinds: Numbers,
    column: int,
    numbers: NDArray[np.int64],
    offsets: NDArray[np.int32],
    texts: NDArray[np.uint8],
) -> int:
    """Write the value that begins here where it belongs; behind it, or -1 if it is not plain."""
    kind = _TEXT if block[at] == _QUOTE else _INTEGER
    if kinds[column] == _UNKNOWN:
        kinds[column] = kind
    if kinds[column] != kind:
        return -1
    if kind == _TEXT:
        end = _string_end(block, at)
        to = offsets[column, row]
        for place in range(at + 1, end):
            texts[column, to] = block[place]
            to += 1
        offsets[column, row + 1] = to
        return end + 1 or -1
    end = _whole_end(block, at)
    negative = block[at] == _MINUS
    start = at + 1 if negative else at
    if end < 0 or end - start > _MOST_DIGITS:
        return -1
    number = np.int64(0)
    for place in range(start, end):
        number = 10 * number + np.int64(block[place] - _ZERO)
    numbers[column, row] = -number if negative else number
    return end


@helper
def _line_end(  # noqa: PLR0911
    block: Bytes,
    at: int,
    row: int,
    names: Bytes,
    ends: Numbers,
    kinds: Numbers,
    numbers: NDArray[np.int64],
    offsets: NDArray[np.int32],
    texts: NDArray[np.uint8],
    seen: Numbers,
) -> int:
    """Write the wanted values of the object that begins here; behind it, or -1 if not plain."""
    missing = seen.size
    while True:  # at the brace before the first field, or at the comma before the next one
        at = _after_space(block, at + 1)
        if at == block.size or block[at] != _QUOTE:
            return -1
        start, at = at + 1, _string_end(block, at)
        column = -1 if at < 0 else _wanted(block, start, at, names, ends)
        at = _after_space(block, at + 1) if at >= 0 else block.size
        if at == block.size or block[at] != _COLON:
            return -1
        at = _after_space(block, at + 1)
        if at == block.size:
            return -1
        if column < 0:
            at = _value_end(block, at)
        elif seen[column] == row + 1:
            return -1
        else:
            seen[column] = row + 1
            missing -= 1
            at = _take(block, at, row, kinds, column, numbers, offsets, texts)
        at = _after_space(block, at) if at >= 0 else block.size
        if at == block.size:
            return -1
        if block[at] == _CLOSE:
            return -1 if missing else at + 1
        if block[at] != _COMMA:
            return -1


@kernel(
    f"int64({read_only('uint8')}, {read_only('uint8')}, int64[::1], int64[::1], int64[:, ::1], "
    "int32[:, ::1], uint8[:, ::1])"
)
def _read(
    block: Bytes,
    names: Bytes,
    ends: Numbers,
    kinds: Numbers,
    numbers: NDArray[np.int64],
    offsets: NDArray[np.int32],
    texts: NDArray[np.uint8],
) -> int:
    """Write the wanted values of all lines; how many lines there are, or -1 if one is not plain."""
    offsets[:, 0] = 0
    seen = np.zeros(kinds.size, np.int64)
    row = at = 0
    while at < block.size:
        at = _after_space(block, at)
        if at < block.size and block[at] == _OPEN:
            at = _line_end(block, at, row, names, ends, kinds, numbers, offsets, texts, seen)
            if at < 0:
                return -1
            row += 1
            at = _after_space(block, at)
        if at < block.size and block[at] != _LF:
            return -1
        at += 1
    return row
