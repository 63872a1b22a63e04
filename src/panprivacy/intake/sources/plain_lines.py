"""Plain NDJSON, as most programs write it, read in one pass; other NDJSON is refused.

A plain line is one flat object, with each wanted field once, whose ids are strings without escapes,
or whole numbers of 64 bits. Unwanted fields are only skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy import uint64
from numpy.typing import NDArray

from panprivacy.ground.kernels import helper, inlined, instruction, kernel, read_only
from panprivacy.tables.hashing import non_digits, trailing_zeros

_UNKNOWN, _INTEGER, _TEXT, _NUMBER, _MIXED = range(5)
"""Content of a column: int64, texts, int64 or uint64, and texts or numbers, which become texts."""
_MOST_DIGITS = uint64(18)
"""Maximum number of digits that always fit into int64."""
_LARGEST, _TEN_POWER_19 = uint64((1 << 63) - 1), uint64(10**19)
_MOST_BYTES = (1 << 31) - 1
"""Maximum offset of Arrow's texts."""

_SPACE, _TAB, _CR, _LF, _QUOTE, _COMMA, _MINUS, _DOT, _ZERO, _COLON = map(uint64, b' \t\r\n",-.0:')
_OPEN, _CLOSE, _ESCAPE, _PLUS, _EXPONENT, _LOWER = map(uint64, b"{}\\+e ")
_TRUE, _FALSE, _NULL = (
    uint64(int.from_bytes(one, "little")) for one in (b"true", b"false", b"null")
)
_NOT_PLAIN, _ONE, _FOUR, _FIVE, _EIGHT = map(uint64, (0, 1, 4, 5, 8))
_ONES, _TOPS = uint64(0x0101010101010101), uint64(0x8080808080808080)
_UPPER_HALVES = uint64(0xF0F0F0F0F0F0F0F0)
_QUOTES, _ESCAPES, _PRINTABLES = (_ONES * uint64(byte) for byte in b'"\\ ')
_POWERS = np.array([10**digits for digits in range(9)], np.uint64)
_KINDS = {pa.null(): _UNKNOWN, pa.int64(): _INTEGER, pa.binary(): _MIXED}

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
ByteAddress = np.uint64
"""Address of a byte. The last byte of a block ends a line, so that every search ends there."""

_load_byte = instruction("load_byte")
_load_word = instruction("load_word")
_store_word = instruction("store_word")


def read_plain_lines(block: bytes | bytearray, types: dict[str, pa.DataType]) -> pa.Table | None:
    """Return the wanted columns of complete lines; None if there are none, or one is not plain.

    It reads no fractions: where a type is another one than these, no line is plain.

    Args:
        block: lines; it ends in a newline.
        types: by name int64; binary for texts, and numbers as texts; null for texts or numbers,
            according to the first value.
    """
    text, width = np.frombuffer(block, np.uint8), len(types)
    if any(kind not in _KINDS for kind in types.values()):
        return None
    if len(block) > _MOST_BYTES or not block.endswith(b"\n"):
        return None
    rows = np.count_nonzero(text == ord("\n"))
    names = [name.encode() for name in types]
    kinds = np.array([_KINDS[kind] for kind in types.values()], np.int64)
    ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
    # At least a word more than is used: glibc does not overwrite the last one when it is freed.
    numbers = np.empty((width, rows + 2), np.int64)
    offsets = np.empty((width, rows + 3), np.int32)
    offsets[:, 0] = 0
    has_texts = any(kind != _INTEGER for kind in kinds.tolist())
    texts = np.empty((width, len(block) + 16 if has_texts else 0), np.uint8)
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
    if kind in (_INTEGER, _NUMBER):
        return pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(numbers)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text[: offsets[rows]])]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


@helper
def _word(at: ByteAddress, end: ByteAddress) -> np.uint64:
    """Return the eight bytes that begin here; zeros in place of bytes after the block."""
    if end - at >= _EIGHT:
        return _load_word(at)
    word = uint64(0)
    for place in range(end - at):
        word |= _load_byte(at + uint64(place)) << (_EIGHT * uint64(place))
    return word


@helper
def _after_space(at: ByteAddress) -> ByteAddress:
    """Return the position of the next character that is no space within a line."""
    byte = _load_byte(at)
    while byte in (_SPACE, _TAB, _CR):
        at += _ONE
        byte = _load_byte(at)
    return at


@inlined
def _stops(word: np.uint64) -> np.uint64:
    """Return the top bit of the first byte that ends a plain string, and perhaps of later bytes.

    `(x - 0x01..01) & ~x & 0x80..80` finds the first byte of `x` that is 0.
    """
    quotes, escapes = word ^ _QUOTES, word ^ _ESCAPES
    found = (quotes - _ONES) & ~quotes | (escapes - _ONES) & ~escapes
    return (found | (word - _PRINTABLES) & ~word) & _TOPS


@helper
def _string_end(at: ByteAddress, end: ByteAddress) -> ByteAddress:
    """Return the position after the string whose first quote is here, if it is plain."""
    at += _ONE
    stops = _stops(_word(at, end))
    while stops == uint64(0):
        at += _EIGHT
        stops = _stops(_word(at, end))
    at += trailing_zeros(stops) >> uint64(3)
    return at + _ONE if _load_byte(at) == _QUOTE else _NOT_PLAIN


@helper
def _unread_string_end(at: ByteAddress, end: ByteAddress) -> ByteAddress:
    """Return the position after the string whose first quote is here, for any content."""
    at += _ONE
    while True:
        stops = _stops(_word(at, end))
        if stops == uint64(0):
            at += _EIGHT
            continue
        at += trailing_zeros(stops) >> uint64(3)
        byte = _load_byte(at)
        if byte == _QUOTE:
            return at + _ONE
        at += uint64(byte == _ESCAPE)
        if _load_byte(at) == _LF:
            return _NOT_PLAIN
        at += _ONE


@inlined
def _eight_digits(word: np.uint64) -> np.uint64:
    """Return the number of eight digits, whose upper halves are ignored."""
    pairs = (word & uint64(0x0F0F0F0F0F0F0F0F)) * uint64(0xA01) >> uint64(8)
    fours = (pairs & uint64(0x00FF00FF00FF00FF)) * uint64(0x640001) >> uint64(16)
    return (fours & uint64(0x0000FFFF0000FFFF)) * uint64(0x271000000001) >> uint64(32)


@helper
def _digits(at: ByteAddress, end: ByteAddress) -> tuple[ByteAddress, np.uint64]:
    """Return the position after the digits that begin here, and their value modulo 2**64."""
    number, word = uint64(0), _word(at, end)
    others = non_digits(word) & _UPPER_HALVES
    while others == uint64(0):
        number = number * _POWERS[8] + _eight_digits(word)
        at += _EIGHT
        word = _word(at, end)
        others = non_digits(word) & _UPPER_HALVES
    count = trailing_zeros(others) >> uint64(3)
    if count:
        number = number * _POWERS[count] + _eight_digits(word << (uint64(64) - _EIGHT * count))
    return at + count, number


@helper
def _parse_integer(at: ByteAddress, end: ByteAddress) -> tuple[ByteAddress, np.int64]:
    """Return the position after the whole number that begins here, if any, and the number."""
    negative = _load_byte(at) == _MINUS
    start = at + uint64(negative)
    behind, number = _digits(start, end)
    if behind == start or (_load_byte(start) == _ZERO and behind > start + _ONE):
        behind = _NOT_PLAIN
    return behind, -np.int64(number) if negative else np.int64(number)


@helper
def _is_word(at: ByteAddress, word: np.uint64, length: np.uint64) -> bool:
    """Return whether a word stands here."""
    for place in range(length):
        if _load_byte(at + uint64(place)) != word >> (_EIGHT * uint64(place)) & uint64(0xFF):
            return False
    return True


@helper
def _value_end(at: ByteAddress, end: ByteAddress) -> ByteAddress:
    """Return the position after an unwanted value, if it is neither a list nor an object."""
    if _load_byte(at) == _QUOTE:
        return _unread_string_end(at, end)
    if _is_word(at, _TRUE, _FOUR) or _is_word(at, _NULL, _FOUR):
        return at + _FOUR
    if _is_word(at, _FALSE, _FIVE):
        return at + _FIVE
    behind, _ = _parse_integer(at, end)
    if behind != _NOT_PLAIN and _load_byte(behind) == _DOT:
        behind = _digits_behind(behind + _ONE, end)
    if behind != _NOT_PLAIN and _load_byte(behind) | _LOWER == _EXPONENT:
        behind += _ONE
        sign = _load_byte(behind)
        behind = _digits_behind(behind + uint64(sign in (_PLUS, _MINUS)), end)
    return behind


@helper
def _digits_behind(at: ByteAddress, end: ByteAddress) -> ByteAddress:
    """Return the position after the digits that begin here, if there are any."""
    behind, _ = _digits(at, end)
    return behind if behind > at else _NOT_PLAIN


@helper
def _name(at: ByteAddress, end: ByteAddress) -> tuple[ByteAddress, ByteAddress]:
    """Return the end of the field name that begins here, and the start of its value."""
    if _load_byte(at) != _QUOTE:
        return _NOT_PLAIN, _NOT_PLAIN
    behind = _string_end(at, end)
    colon = _after_space(behind) if behind != _NOT_PLAIN else at
    if _load_byte(colon) != _COLON:
        return _NOT_PLAIN, _NOT_PLAIN
    return behind - _ONE, _after_space(colon + _ONE)


@helper
def _same(at: ByteAddress, stop: ByteAddress, name: ByteAddress) -> bool:
    """Return whether the same bytes stand at another place."""
    while at < stop:
        if _load_byte(at) != _load_byte(name):
            return False
        at += _ONE
        name += _ONE
    return True


@helper
def _wanted(
    start: ByteAddress, stop: ByteAddress, names: ByteAddress, ends: ByteAddress, columns: int
) -> int:
    """Return the index of the column with this name, or -1."""
    for column in range(columns):
        entry = ends + _EIGHT * uint64(column)
        begin, length = _load_word(entry), _load_word(entry + _EIGHT) - _load_word(entry)
        if stop - start == length and _same(start, stop, names + begin):
            return column
    return -1


@helper
def _copy(at: ByteAddress, stop: ByteAddress, end: ByteAddress, to: ByteAddress) -> ByteAddress:
    """Copy a text, and up to seven bytes more; return the position after the copy."""
    while at < stop:
        _store_word(to, _word(at, end))
        at += _EIGHT
        to += _EIGHT
    return to + stop - at


@helper
def _id(at: ByteAddress, end: ByteAddress, kind: int) -> tuple[ByteAddress, np.int64]:
    """Return the position after the whole number here, if it fits into 64 bits, and the number."""
    behind, number = _parse_integer(at, end)
    negative = _load_byte(at) == _MINUS
    digits = behind - at - uint64(negative)
    if digits <= _MOST_DIGITS or behind == _NOT_PLAIN:
        return behind, number
    size = uint64(-number if negative else number)  # for up to 19 digits; else modulo 2**64
    fits = size <= _LARGEST + uint64(negative) if negative or kind == _INTEGER else True
    if digits > _MOST_DIGITS + _ONE:  # from 10**19 to 2 * 10**19: a remainder is less
        leads = _load_byte(at) == _ZERO + _ONE and digits == _MOST_DIGITS + uint64(2)
        fits = kind != _INTEGER and not negative and leads and size >= _TEN_POWER_19
    return behind if fits else _NOT_PLAIN, number


@inlined
def _field(
    at: ByteAddress, end: ByteAddress, names: ByteAddress, ends: ByteAddress, columns: int
) -> tuple[int, ByteAddress]:
    """Return the column of the field after this character, or -1, and the start of its value."""
    start = _after_space(at + _ONE)
    stop, value = _name(start, end)
    return _wanted(start + _ONE, stop, names, ends, columns), value


@inlined
def _is_other(kind: int, quoted: np.uint64) -> bool:
    """Return whether a value does not go with the content of its column."""
    return kind in (_INTEGER, _NUMBER) if quoted else kind == _TEXT


@inlined
def _value(
    at: ByteAddress, end: ByteAddress, kind: int, quoted: np.uint64, to: ByteAddress
) -> tuple[ByteAddress, np.int64, np.uint64]:
    """Return the position after a wanted value, its number, and the size of its text, copied."""
    text, number, size = at + quoted, np.int64(0), uint64(0)
    if quoted:
        at = _string_end(at, end)
    else:
        at, number = _id(at, end, kind)
        text += uint64(number == 0 and _load_byte(text) == _MINUS)
    if (quoted or kind == _MIXED) and at != _NOT_PLAIN:
        size = _copy(text, at - quoted, end, to) - to
    return at, number, size


@kernel(
    f"int64({read_only('uint8')}, {read_only('uint8')}, int64[::1], int64[::1], int64[:, ::1], "
    "int32[:, ::1], uint8[:, ::1])"
)
def _read(  # noqa: C901, PLR0912 - counting the references of arrays that are handed on takes longer
    block: Bytes,
    names: Bytes,
    ends: Numbers,
    kinds: Numbers,
    numbers: NDArray[np.int64],
    offsets: NDArray[np.int32],
    texts: NDArray[np.uint8],
) -> int:
    """Write the wanted values of all lines; return how many lines, or -1 if one is not plain."""
    names_at, ends_at = uint64(names.ctypes.data), uint64(ends.ctypes.data)
    texts_at, at = texts.ctypes.data, uint64(block.ctypes.data)
    seen, row, end = np.zeros(kinds.size, np.int64), 0, at + uint64(block.size)
    while at < end:
        at = _after_space(at)
        if _load_byte(at) == _OPEN:
            missing, more = kinds.size, True
            while more:  # at the brace before the first field, or at the comma before the next one
                column, at = _field(at, end, names_at, ends_at, kinds.size)
                if at == _NOT_PLAIN:
                    return -1
                if column < 0:
                    at = _value_end(at, end)
                else:
                    quoted = uint64(_load_byte(at) == _QUOTE)
                    if kinds[column] == _UNKNOWN:
                        kinds[column] = _TEXT if quoted else _NUMBER
                    kind = kinds[column]
                    if _is_other(kind, quoted) or seen[column] > row:
                        return -1
                    seen[column] = row + 1
                    missing -= 1
                    to = uint64(texts_at + column * texts.shape[1] + offsets[column, row])
                    at, number, size = _value(at, end, kind, quoted, to)
                    if not quoted:
                        numbers[column, row] = number
                    if quoted or kind == _MIXED:
                        offsets[column, row + 1] = offsets[column, row] + np.int32(size)
                if at == _NOT_PLAIN:
                    return -1
                at = _after_space(at)
                more = _load_byte(at) == _COMMA
            if missing or _load_byte(at) != _CLOSE:
                return -1
            row += 1
            at = _after_space(at + _ONE)
        if _load_byte(at) != _LF:
            return -1
        at += _ONE
    return row
