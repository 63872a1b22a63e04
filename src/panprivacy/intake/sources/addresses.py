"""IP addresses: one number of 16 bytes each, however the address is written.

An IPv4 address becomes the IPv6 address that maps it, so that 1.2.3.4 and ::ffff:102:304 are one
user. What is accepted is what Python's `ipaddress` accepts, and what servers write around it: the
first address of a list, brackets, a port, and a zone; it is dropped: `fe80::1%eth0` is `fe80::1`.
All that come through a Unix socket, `unix:`, are one user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.ground.kernels import helper, kernel, read_only
from panprivacy.intake.sources.columns import Column, Prefixes, StartError
from panprivacy.intake.sources.reader import Feed
from panprivacy.intake.sources.unreadable import halves_of_batch, read_before
from panprivacy.tables.ids import gatherable, offset_type

Bytes = npt.NDArray[np.uint8]
Groups = npt.NDArray[np.uint16]

ADDRESS_BYTES = 16
ADDRESSES = pa.binary(ADDRESS_BYTES)

_DOT, _COLON, _ZERO, _OPEN, _CLOSE, _COMMA, _PERCENT, _SPACE = b".:0[],% "
_U, _N, _I, _X = b"unix"


def with_addresses(
    file: Feed, batches: Iterator[pa.RecordBatch], columns: Sequence[Column]
) -> Iterator[pa.RecordBatch]:
    """Read the addresses in columns of addresses; other columns pass.

    Batches have the wanted columns in order. As in `text.parsed`, rows of a pipe are not counted.

    Raises:
        InputError: a value is no address; its row is counted over the whole file.
    """
    if not any(column.address for column in columns):
        yield from batches
        return
    rows = 0
    for batch in batches:
        read = partial(_converted, columns=columns)
        parts, wrong = read_before(batch, halves_of_batch, read, file.skips)
        yield from [pa.concat_batches(parts)] if len(parts) > 1 else parts
        if wrong:
            raise wrong.pop().after(rows) from None
        rows += batch.num_rows if file.size is not None else 0
        del batch, parts


def read_addresses(column: pa.Array, prefixes: Prefixes) -> pa.Array:
    """Read texts or byte strings as addresses, truncated to the given prefix; nulls stay null.

    Returns:
        Big-endian numbers of 16 bytes, of Arrow's type fixed_size_binary(16).

    Raises:
        InputError: a value is no address; with its row in the column.
    """
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), ADDRESSES)
    offsets, text = _layout(column)
    known = np.array(column.is_valid())
    # NumPy keeps small arrays that were freed, with what they hold; Arrow's buffers are no cache.
    buffer = pa.allocate_buffer(ADDRESS_BYTES * len(column))
    numbers = np.frombuffer(buffer, np.uint8)
    groups = np.zeros(8, np.uint16)
    bad = _read_all(offsets, text, known, prefixes.ipv4, prefixes.ipv6, numbers, groups)
    if bad >= 0:
        message = "this is not an IP address"
        raise InputError(message, row=bad + 1)
    return pa.Array.from_buffers(ADDRESSES, len(column), [validity(known), buffer])


def validity(known: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    """Return Arrow's bitmap of the rows that are not null; None if no row is null."""
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))


def _converted(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    arrays = [
        read_addresses(array, column.address) if column.address else array
        for array, column in zip(batch.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _layout(column: pa.Array) -> tuple[npt.NDArray[Any], Bytes]:
    """Return the offsets of a column of byte strings, and the bytes they point into, read-only."""
    column = gatherable(column)
    width = offset_type(column.type)
    if width is None:
        message = "IP addresses must be texts such as 192.0.2.1 or 2001:db8::1"
        raise StartError(message)
    _, offsets, text = column.buffers()
    ends = frozen(offsets, width) if offsets else np.zeros(1, width)
    return ends[column.offset : column.offset + len(column) + 1], frozen(text, np.uint8)


def frozen(buffer: pa.Buffer | None, kind: Any) -> npt.NDArray[Any]:
    """Return a read-only view of a buffer: kernels are compiled for one kind of array."""
    view = np.frombuffer(buffer, kind) if buffer else np.empty(0, kind)
    view.flags.writeable = False
    return view


@helper
def _digit(character: int) -> int:
    """Return the value of a hexadecimal digit, or 16."""
    if 0 <= character - _ZERO <= 9:
        return character - _ZERO
    lower = character | 32
    return lower - 87 if 97 <= lower <= 102 else 16


@helper
def _read_ipv4(text: Bytes, at: int, stop: int) -> int:
    """Return the IPv4 address text[at:stop], or -1."""
    number = 0
    for part in range(4):
        begin, value = at, 0
        while at < stop and at - begin < 3 and _digit(text[at]) < 10:
            value = 10 * value + _digit(text[at])
            at += 1
        leading_zero = at - begin > 1 and text[begin] == _ZERO
        if at == begin or leading_zero or value > 255:
            return -1
        number = number << 8 | value
        if part < 3:
            if at == stop or text[at] != _DOT:
                return -1
            at += 1
    return number if at == stop else -1


@helper
def _read_ipv6(text: Bytes, at: int, stop: int, groups: Groups) -> bool:
    """Write the eight groups of text[at:stop]; return whether it is an IPv6 address."""
    used, gap = 0, -1
    if stop - at >= 2 and text[at] == _COLON and text[at + 1] == _COLON:
        gap = 0
        at += 2
    while at < stop:
        begin, value = at, 0
        while at < stop and at - begin < 4 and _digit(text[at]) < 16:
            value = value << 4 | _digit(text[at])
            at += 1
        if at < stop and text[at] == _DOT:
            used += _read_last(text, begin, stop, groups, used)
            break
        if at == begin or used == 8:
            return False
        groups[used] = value
        used += 1
        if at == stop:
            break
        if text[at] != _COLON or at + 1 == stop:
            return False
        at += 1
        if text[at] == _COLON:
            if gap >= 0:
                return False
            gap = used
            at += 1
    return used == 8 if gap < 0 else _widen(groups, used, gap)


@helper
def _read_last(text: Bytes, at: int, stop: int, groups: Groups, used: int) -> int:
    """Write the IPv4 address text[at:stop] as the last two groups; return 2, or 9 on failure."""
    number = _read_ipv4(text, at, stop)
    if number < 0 or used > 6:
        return 9
    groups[used], groups[used + 1] = number >> 16, number & 0xFFFF
    return 2


@helper
def _widen(groups: Groups, used: int, gap: int) -> bool:
    """Insert the zeros that :: replaces; return whether it replaces any."""
    zeros = 8 - used
    if zeros <= 0:
        return False
    for group in range(7, gap - 1, -1):
        groups[group] = groups[group - zeros] if group - zeros >= gap else 0
    return True


@helper
def _number(text: Bytes, at: int, stop: int, groups: Groups) -> int:
    """Return the IPv4 address text[at:stop]; -1 if its groups were written, -2 if it is none."""
    number = _read_ipv4(text, at, stop)
    if number < 0:
        number = -1 if _read_ipv6(text, at, stop, groups) else -2
    return number


@helper
def _find(text: Bytes, at: int, stop: int, wanted: int) -> int:
    """Return the first position of a character, or the end."""
    while at < stop and text[at] != wanted:
        at += 1
    return at


@helper
def _within(text: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the bounds of the first address of a list, without brackets, port, zone; or empty."""
    stop = _find(text, at, stop, _COMMA)
    while stop > at and text[stop - 1] == _SPACE:
        stop -= 1
    if at < stop and text[at] == _OPEN:
        at += 1
        end = _find(text, at, stop, _CLOSE)
        behind = end + 1
    else:
        end = _find(text, at, stop, _COLON)
        if _find(text, at, end, _DOT) == end:  # no port can follow the colons of IPv6
            end = stop
        behind = end
    zone = _find(text, at, end, _PERCENT)
    sound = _is_port(text, behind, stop) and zone != end - 1
    return at, zone if sound else at


@helper
def _is_port(text: Bytes, at: int, stop: int) -> bool:
    """Return whether this is empty, or a colon and digits."""
    if at >= stop:
        return at == stop
    digits = at + 1
    while digits < stop and 0 <= text[digits] - _ZERO <= 9:
        digits += 1
    return text[at] == _COLON and digits == stop and digits > at + 1


@helper
def _is_unix(text: Bytes, at: int, stop: int) -> bool:
    """Return whether this is `unix:`, with or without a path."""
    return (
        stop - at >= 5
        and text[at] == _U
        and text[at + 1] == _N
        and text[at + 2] == _I
        and text[at + 3] == _X
        and text[at + 4] == _COLON
    )


@helper
def _truncated(
    high: np.uint64, low: np.uint64, ipv4: int, ipv6: int
) -> tuple[np.uint64, np.uint64]:
    """Return the number with the dropped bits set to zero."""
    mapped = high == np.uint64(0) and low >> np.uint64(32) == np.uint64(0xFFFF)
    dropped = 32 - ipv4 if mapped else 128 - ipv6
    if dropped >= 64:
        return high >> np.uint64(dropped - 64) << np.uint64(dropped - 64), np.uint64(0)
    return high, low >> np.uint64(dropped) << np.uint64(dropped)


@helper
def _write(word: np.uint64, numbers: Bytes, at: int) -> None:
    """Write eight bytes, the most significant one first."""
    for byte in range(8):
        numbers[at + byte] = word >> np.uint64(56 - 8 * byte)


@kernel(
    *(
        f"({read_only(offset)}, {read_only('uint8')}, boolean[::1], int64, int64, uint8[::1], "
        "uint16[::1])"
        for offset in ("int32", "int64")
    )
)
def _read_all(
    offsets: npt.NDArray[Any],
    text: Bytes,
    known: npt.NDArray[np.bool_],
    ipv4: int,
    ipv6: int,
    numbers: Bytes,
    groups: Groups,
) -> int:
    """Write the number of each address into `numbers`; return the first invalid row, or -1."""
    for row in range(known.size):
        high = low = np.uint64(0)
        start, stop = np.int64(offsets[row]), np.int64(offsets[row + 1])
        if known[row]:
            number = _number(text, start, stop, groups)
            if number == -2:
                first, last = _within(text, start, stop)
                number = _number(text, first, last, groups)
                if number == -2 and _is_unix(text, start, stop):
                    groups[:] = 0
                    number = -1
            if number >= 0:
                low = np.uint64(0xFFFF << 32 | number)
            elif number == -1:
                for group in range(4):
                    high = high << np.uint64(16) | np.uint64(groups[group])
                    low = low << np.uint64(16) | np.uint64(groups[group + 4])
            else:
                groups[:] = 0
                return row
            high, low = _truncated(high, low, ipv4, ipv6)
        _write(high, numbers, ADDRESS_BYTES * row)
        _write(low, numbers, ADDRESS_BYTES * row + 8)
    groups[:] = 0
    return -1
