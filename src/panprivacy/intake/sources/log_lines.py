r"""Log lines: the combined format of Apache and nginx, and formats given by a regular expression.

Fields are returned as they stand in the log, including escapes: a browser is the same user agent in
every line of one log. A field that is empty, or "-", is null; a returned field must be UTF-8.

A remote user may contain spaces, brackets and escaped quotes: outsiders can put them there. Quotes
are escaped by the server, as \" or \x22, so that the first `] "` of a line ends the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panprivacy.errors import InputError
from panprivacy.ground.kernels import helper, inlined, kernel, read_only
from panprivacy.intake.sources.addresses import Bytes, frozen, validity
from panprivacy.intake.sources.columns import Column, check_columns, not_integers, show_all
from panprivacy.intake.sources.reader import Feed
from panprivacy.intake.sources.text import Lines, check_utf8, complete_records, parsed
from panprivacy.tables.hashing import trailing_zeros
from panprivacy.tables.ids import first_null

Bounds = npt.NDArray[np.int32]

_NUMBERS = ("status", "body_bytes_sent")
FIELDS = (
    *("remote_addr", "remote_user", "time_local", "request"),
    *(*_NUMBERS, "http_referer", "http_user_agent"),
)
"""Fields of the combined format, by their names in nginx; the identity by `identd` is left out."""
PARTS = ("method", "path", "query")
"""Parts of the request `GET /shop?id=7 HTTP/1.1`: before, within and after the first `?`."""

_COLUMNS = (*FIELDS, *PARTS)
_LF, _CR, _SPACE, _QUOTE, _DASH, _ZERO, _OPEN, _BACKSLASH, _CLOSE, _ASK, _COMMA = b'\n\r "-0[\\]?,'
_EIGHT = np.uint64(8)
_EACH_BYTE = np.uint64(0x0101010101010101)
_TOP_BITS = np.uint64(0x8080808080808080)
_REQUEST = 2 * FIELDS.index("request")
_MOST_DIGITS = 19
_LARGEST = np.uint64((1 << 63) - 1)
# Alternatives that start no group come first: quoted text, an escape, a class of characters.
_GROUP = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\(\?P?<(\w+)>", re.DOTALL
)


def read_combined(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse lines of the combined format, or of the common one, which ends before the referer.

    Columns are from `FIELDS` and `PARTS`: int64 if integers are wanted, and for the status and the
    bytes sent, otherwise binary. Parts are null if a request has no such form.

    Raises:
        InputError: there is no such field, a line has another format, or a wanted field is not
            UTF-8; additional fields at the end of a line are ignored.
    """
    known = f"the fields of a line are {show_all(_COLUMNS)}"
    columns = check_columns(columns, _COLUMNS, known=known)
    lines = Lines()
    parse = partial(_parse_combined, columns=columns)
    yield from parsed(file, complete_records(file, lines), parse, lines)


def read_lines(file: Feed, columns: Sequence[Column], *, pattern: str) -> Iterator[pa.RecordBatch]:
    """Match a pattern, a result of `only_wanted_groups`, in every line.

    Columns are int64 if integers are wanted, otherwise binary.

    Raises:
        InputError: a line does not match, or a column of it is not UTF-8.
    """
    found = check_columns(columns, _group_names(pattern))
    lines = Lines()
    parse = partial(_parse_lines, columns=found, pattern=pattern)
    return parsed(file, complete_records(file, lines), parse, lines)


def only_wanted_groups(pattern: str, columns: Sequence[Column]) -> str:
    """Check a pattern of RE2 over bytes, and let it capture only the named groups that are wanted.

    It is several times faster with the other groups unnamed.

    Raises:
        InputError: the pattern is wrong, or has no such groups.
    """
    names = _group_names(pattern)
    if not names:
        message = "the pattern has no named group, such as (?P<user>\\S+), to be a column"
        raise InputError(message)
    known = f"the named groups of the pattern are {show_all(names)}"
    wanted = {column.name for column in check_columns(columns, names, known=known)}
    return _GROUP.sub(
        lambda found: "(?:" if found[1] and found[1] not in wanted else found[0], pattern
    )


def _group_names(pattern: str) -> list[str]:
    """Return the names of the groups; raise RE2's reason, without the pattern, if it is invalid."""
    try:
        matched = pc.extract_regex(pa.array([], pa.binary()), pattern)
    except pa.ArrowInvalid as error:
        complaint = str(error)
    except UnicodeEncodeError:
        complaint = "invalid UTF-8"
    else:
        return [field.name for field in matched.type]
    if "unnamed groups" in complaint:
        message = "the pattern has a group without a name; write (?:...) or (?P<name>...)"
        raise InputError(message)
    reason = complaint.removeprefix("Invalid regular expression: ").split(": ")[0]
    message = f"the pattern is no regular expression of RE2: {' '.join(reason.split())}"
    raise InputError(message)


def _parse_lines(block: bytes, *, columns: Sequence[Column], pattern: str) -> pa.Table:
    """Parse one block of complete lines into a table of the wanted columns."""
    matched = pc.extract_regex(_lines(block), pattern)
    if matched.null_count:
        message = "this line does not match the pattern"
        raise InputError(message, row=first_null(matched) + 1)
    return check_utf8(pa.table({c.name: _finished(matched.field(c.name), c) for c in columns}))


def _parse_combined(block: bytes, *, columns: Sequence[Column]) -> pa.Table:
    """Parse one block of complete lines into a table of the wanted columns."""
    text = np.frombuffer(block, np.uint8)
    lines = np.count_nonzero(text == _LF)
    bounds = np.empty((lines, 2 * len(FIELDS)), np.int32)
    bad = _find_fields(text, bounds)
    if bad >= 0:
        message = "this line is not in the combined log format"
        raise InputError(message, row=bad + 1)
    if any(column.name in PARTS for column in columns):
        parts = np.empty((lines, 2 * len(PARTS)), np.int32)
        _find_parts(text, bounds, parts)
        bounds = np.hstack((bounds, parts))
    fields = {c: bounds[:, 2 * _COLUMNS.index(c.name) :] for c in columns}
    gathered = {c: _gathered(text, at[:, 0], at[:, 1]) for c, at in fields.items()}
    return check_utf8(pa.table({c.name: _finished(field, c) for c, field in gathered.items()}))


def _lines(block: bytes) -> pa.Array:
    """Return the lines of a block, without their ends, LF or CRLF."""
    text = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero(text == _LF).astype(np.int32)
    starts = np.append(np.int32(0), stops[:-1] + np.int32(1))
    return _gathered(text, starts, stops - (text[stops - 1] == _CR))  # its last byte is LF


def _gathered(text: Bytes, starts: Bounds, stops: Bounds) -> pa.Array:
    """Return a piece of every line."""
    ends = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(stops - starts, out=ends[1:])
    # NumPy caches small freed arrays with their content; Arrow's buffers are not cached.
    data = pa.allocate_buffer(int(ends[-1]))
    _gather(text, starts, ends, np.frombuffer(data, np.uint8))
    return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(ends), data])


def _finished(field: pa.Array, column: Column) -> pa.Array:
    """Return the field with its nulls, as numbers if it is numeric."""
    _, ends, data = field.buffers()
    offsets, text = frozen(ends, np.int32), frozen(data, np.uint8)
    known = np.empty(len(field), np.bool_)
    _find_known(offsets, text, known)
    valid = validity(known)
    if not (column.integers or column.name in _NUMBERS):
        return pa.Array.from_buffers(pa.binary(), len(field), [valid, ends, data])
    numbers = pa.allocate_buffer(8 * len(field))
    bad = _read_integers(offsets, text, known, np.frombuffer(numbers, np.int64))
    if bad >= 0:
        raise not_integers(column.name).after(bad)
    return pa.Array.from_buffers(pa.int64(), len(field), [valid, numbers])


_TEXT = read_only("uint8")
_OFFSETS = read_only("int32")


@kernel(f"void({_TEXT}, int32[:], int32[::1], uint8[::1])")
def _gather(text: Bytes, starts: Bounds, ends: Bounds, data: Bytes) -> None:
    """Copy a piece of every line, one after another."""
    for line in range(starts.size):
        at, to = np.uint64(starts[line]), np.uint64(ends[line])
        # unsigned: an index from the end is slower
        for byte in range(np.uint64(ends[line + 1]) - to):
            data[to + byte] = text[at + byte]


@kernel(f"void({_OFFSETS}, {_TEXT}, boolean[::1])")
def _find_known(offsets: Bounds, text: Bytes, known: npt.NDArray[np.bool_]) -> None:
    """Find the values that are neither empty nor "-"."""
    for row in range(known.size):
        length = offsets[row + 1] - offsets[row]
        known[row] = length > 1 or (length == 1 and text[offsets[row]] != _DASH)


@kernel(f"({_OFFSETS}, {_TEXT}, boolean[::1], int64[::1])")
def _read_integers(
    offsets: Bounds, text: Bytes, known: npt.NDArray[np.bool_], numbers: npt.NDArray[np.int64]
) -> int:
    """Read decimal numbers, possibly with a minus sign; return the first invalid row, or -1."""
    for row in range(known.size):
        numbers[row] = 0
        if not known[row]:
            continue
        at, stop = offsets[row], offsets[row + 1]
        negative = text[at] == _DASH
        at += negative
        if at == stop:
            return row
        while at < stop - 1 and text[at] == _ZERO:
            at += 1
        if stop - at > _MOST_DIGITS:
            return row
        size = np.uint64(0)
        for digit in range(at, stop):
            if not 0 <= text[digit] - _ZERO <= 9:
                return row
            size = np.uint64(10) * size + np.uint64(text[digit] - _ZERO)
        if size > _LARGEST + np.uint64(negative):
            return row
        numbers[row] = -np.int64(size) if negative else np.int64(size)
    return -1


@kernel(f"({_TEXT}, int32[:, ::1])")
def _find_fields(text: Bytes, bounds: Bounds) -> int:
    """Find the fields of every line.

    No search goes past a newline, and the last byte is one: nothing outside the text is read.

    Returns:
        The first line that is not in the combined format, or -1.
    """
    at = 0
    for line in range(len(bounds)):
        at = _find_head(text, at, bounds[line])
        if at >= 0:
            at = _find_numbers(text, at, bounds[line])
        if at >= 0:
            at = _find_agent(text, at, bounds[line])
        if at < 0:
            return line
        at = _next(text, at, _LF, _LF) + 1
    return -1


@kernel(f"void({_TEXT}, int32[:, ::1], int32[:, ::1])")
def _find_parts(text: Bytes, bounds: Bounds, parts: Bounds) -> None:
    """Find the method, the path and the query of every request; empty if missing.

    The last space of a request is before its protocol: a target may contain spaces that a client
    did not escape.
    """
    for line in range(len(bounds)):
        start, end = bounds[line, _REQUEST], bounds[line, _REQUEST + 1]
        parts[line] = start
        space = start
        while space < end and text[space] != _SPACE:
            space += 1
        stop = end - 1
        while stop > space and text[stop] != _SPACE:
            stop -= 1
        if stop <= space:  # no two spaces: a line of HTTP/0.9, or of another protocol
            continue
        ask = space + 1
        while ask < stop and text[ask] != _ASK:
            ask += 1
        parts[line, 1] = space
        parts[line, 2], parts[line, 3] = space + 1, ask
        parts[line, 4], parts[line, 5] = min(ask + 1, stop), stop


@inlined
def _find_head(text: Bytes, at: int, bound: Bounds) -> int:
    """Find the address, the user and the time; return the start of the request, or -1."""
    end = _next(text, at, _SPACE, _SPACE)
    while end > at and text[end - 1] == _COMMA and text[end] == _SPACE:  # a list of addresses
        end = _next(text, end + 1, _SPACE, _SPACE)
    if end == at or text[end] != _SPACE:
        return -1
    bound[0], bound[1] = at, end
    at = end + 1
    end = _next(text, at, _SPACE, _SPACE)  # the identity by identd
    if end == at or text[end] != _SPACE:
        return -1
    at = end + 1
    end = _next(text, at, _CLOSE, _CLOSE)
    while text[end] == _CLOSE and not (text[end + 1] == _SPACE and text[end + 2] == _QUOTE):
        end = _next(text, end + 1, _CLOSE, _CLOSE)
    start = end
    while start > at and text[start - 1] != _OPEN and text[start - 1] != _CLOSE:
        start -= 1
    if text[end] == _LF or start - at < 3 or start == end:
        return -1
    if text[start - 1] != _OPEN or text[start - 2] != _SPACE:
        return -1
    bound[2], bound[3] = at, start - 2
    if start - 2 - at == 2 and text[at] == _QUOTE and text[at + 1] == _QUOTE:
        bound[3] = at  # Apache's form of an empty name
    bound[4], bound[5] = start, end
    return end + 3


@inlined
def _find_numbers(text: Bytes, at: int, bound: Bounds) -> int:
    """Find the request, the status and the bytes sent; return their end, or -1."""
    end = _quoted_end(text, at)
    if text[end] != _QUOTE:
        return -1
    bound[6], bound[7] = at, end
    end += 1
    for field in (8, 10):
        at = end + 1
        if text[end] != _SPACE:
            return -1
        end = _number_end(text, at)
        if end == at:
            return -1
        bound[field], bound[field + 1] = at, end
    return end


@inlined
def _find_agent(text: Bytes, at: int, bound: Bounds) -> int:
    """Find the referer and the user agent, if present; return the end of the format, or -1."""
    bound[12:] = at
    if _is_line_end(text, at):
        return at
    for field in (12, 14):
        if text[at] != _SPACE or text[at + 1] != _QUOTE:
            return -1
        end = _quoted_end(text, at + 2)
        if text[end] != _QUOTE:
            return -1
        bound[field], bound[field + 1] = at + 2, end
        at = end + 1
    return at if text[at] == _SPACE or _is_line_end(text, at) else -1


@helper
def _quoted_end(text: Bytes, at: int) -> int:
    """Return the position of the next quote that is not escaped, or of the newline."""
    end = _next(text, at, _QUOTE, _BACKSLASH)
    while text[end] == _BACKSLASH:
        escaped = 1 if text[end + 1] == _LF else 2
        end = _next(text, end + escaped, _QUOTE, _BACKSLASH)
    return end


@helper
def _number_end(text: Bytes, at: int) -> int:
    """Return the end of some digits, or of a dash."""
    if text[at] == _DASH:
        return at + 1
    while 0 <= text[at] - _ZERO <= 9:
        at += 1
    return at


@helper
def _is_line_end(text: Bytes, at: int) -> bool:
    return text[at] == _LF or (text[at] == _CR and text[at + 1] == _LF)


@helper
def _next(text: Bytes, at: int, first: int, second: int) -> np.int64:
    """Return the next of two characters, or newline; reads eight bytes at a time if possible."""
    here = np.uint64(at)
    while here + _EIGHT <= np.uint64(text.size):
        word = _word(text, here)
        found = _zeros(word ^ (np.uint64(first) * _EACH_BYTE))
        found |= _zeros(word ^ (np.uint64(second) * _EACH_BYTE))
        found |= _zeros(word ^ (np.uint64(_LF) * _EACH_BYTE))
        if found:
            return np.int64(here + trailing_zeros(found) // _EIGHT)
        here += _EIGHT
    while text[here] != first and text[here] != second and text[here] != _LF:
        here += np.uint64(1)
    return np.int64(here)


@helper
def _word(text: Bytes, at: np.uint64) -> np.uint64:
    """Return eight bytes, the first one lowest; compiled to one load."""
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(text[at + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@helper
def _zeros(word: np.uint64) -> np.uint64:
    """Return the top bits of the zero bytes; bytes above the lowest such may be wrong."""
    return (word - _EACH_BYTE) & ~word & _TOP_BITS
