"""CSV: where its records end, and its columns as bytes or whole numbers.

Ids stay bytes, as they stand between the delimiters, and must be UTF-8; nothing guesses their type,
so that 007 and 7 are two users in every block. An empty field is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from panprivacy._kernels import kernel, read_only
from panprivacy.errors import InputError
from panprivacy.sources.columns import Column, StartError, check_columns, not_integers
from panprivacy.sources.reader import Feed
from panprivacy.sources.text import (
    BLOCK_BYTES,
    BYTE_ORDER_MARK,
    RECORD_BYTES,
    Lines,
    check_start,
    check_utf8,
    cut,
    parsed,
)

_MOST_COLUMNS = 1 << 16
_DELIMITERS = ",;\t|"
_OUTSIDE, _INSIDE, _CLOSED = range(3)
_QUOTE, _LF, _CR = b'"\n\r'
_WRONG_WIDTH = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
_NOT_INT64 = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to int64")


def read_delimited(
    file: Feed, columns: Sequence[Column], *, delimiter: str | None
) -> Iterator[pa.RecordBatch]:
    """Parse CSV with a header line; columns are int64 where integers are wanted, otherwise binary.

    Args:
        file: the input.
        columns: that are wanted.
        delimiter: between fields; None for the first of `,`, `;`, tab and `|` that divides the
            header line into the wanted columns and others.

    Raises:
        InputError: it is not such a CSV.
    """
    check_start(file)
    delimiter = delimiter or _delimiter_of(file, [column.name for column in columns])
    cutter = QuotedLines(delimiter)
    blocks = cut(file, cutter)
    names, data = _split_header(blocks, delimiter)
    # Without a header line the first record would be listed, and its values are ids.
    columns = check_columns(
        columns, names, known="the first line of the input must name the columns"
    )
    parse = partial(_parse, names=names, columns=columns, delimiter=delimiter)
    yield from parsed(file, data, parse, cutter)


def check_delimiter(delimiter: str) -> str:
    """Refuse what pyarrow cannot take as a delimiter.

    Raises:
        InputError: it is not one character of ASCII, or one that has another meaning.
    """
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        message = "the delimiter must be one character of ASCII, such as ; and no quote"
        raise InputError(message)
    return delimiter


def _delimiter_of(file: Feed, wanted: Sequence[str]) -> str:
    """The delimiter of a header line, which is read again."""
    start = b""
    while b"\n" not in start.lstrip(b"\r\n") and len(start) < RECORD_BYTES:
        block = file.read_some(BLOCK_BYTES)
        if not block:
            break
        start += block
    file.push_back(start)
    header = start.lstrip(b"\r\n").partition(b"\n")[0] + b"\n"
    found = {}
    for delimiter in _DELIMITERS:
        with suppress(StartError):
            found[delimiter] = _names(header, delimiter)
    if not wanted:
        return max(found, key=lambda delimiter: len(found[delimiter]), default=_DELIMITERS[0])
    fits = (one for one, names in found.items() if set(wanted) <= set(names))
    return next(fits, _DELIMITERS[0])


class QuotedLines(Lines):
    """A record ends at a newline that is not inside a quoted field.

    A quote opens a field only where a field begins: the inch mark in `19" rack` is an ordinary
    character to pyarrow, so that counting quotes modulo two would cut in the wrong places.
    """

    def __init__(self, delimiter: str) -> None:
        self._delimiter = ord(delimiter)
        self._state = _OUTSIDE
        self._previous = _LF

    @property
    def open_quote(self) -> bool:
        """Whether the blocks so far end inside a quoted field."""
        return self._state == _INSIDE

    def last_end(self, block: bytes) -> int:
        """How much of the block lies before the end of its last complete record."""
        if self._state != _INSIDE and b'"' not in block:
            end = block.rfind(b"\n") + 1
        else:
            view = np.frombuffer(block, np.uint8)
            end, self._state = _scan(view, self._state, self._previous, self._delimiter)
        self._previous = block[-1]
        return end

    def end_near(self, block: bytes, at: int) -> int:
        """The end of a record of a block of whole ones: the last up to a place, or the next."""
        if b'"' not in block:
            return super().end_near(block, at)
        end, least, most = self._last_within(block, at), at, len(block)
        while not end and least < most:  # the first record goes on beyond that place
            middle = (least + most) // 2
            if self._last_within(block, middle):
                most = middle
            else:
                least = middle + 1
        return end or least

    def _last_within(self, block: bytes, stop: int) -> int:
        """The last end of a record up to a place of a block of whole ones; 0 if there is none."""
        view = np.frombuffer(block, np.uint8)[:stop]
        end, _ = _scan(view, _OUTSIDE, _LF, self._delimiter)
        return int(end)


def _scan_quotes(
    block: npt.NDArray[np.uint8], state: int, previous: int, delimiter: int
) -> tuple[int, int]:
    """Follow the quotes through a block, from the state of the byte before it.

    Returns:
        The index after the last newline that ends a record, 0 if none does; the state at the end.
    """
    end = 0
    for i in range(block.size):
        if block[i] == _QUOTE:
            before = block[i - 1] if i else previous
            if state == _INSIDE:
                state = _CLOSED
            elif before in (delimiter, _LF, _CR) or (state == _CLOSED and before == _QUOTE):
                state = _INSIDE
            else:
                state = _OUTSIDE
        elif block[i] == _LF and state != _INSIDE:
            end = i + 1
    return end, state


_scan = kernel(f"({read_only('uint8')}, int64, int64, int64)")(_scan_quotes)


def _split_header(blocks: Iterator[bytes], delimiter: str) -> tuple[list[str], Iterator[bytes]]:
    """The column names, and the blocks without them."""
    records = b""
    while not records:
        records = _header_block(blocks).lstrip(b"\r\n")
    cutter, start, end = QuotedLines(delimiter), 0, 0
    while start == end or not cutter.last_end(records[start:end]):
        start, end = end, records.find(b"\n", end) + 1
    return _names(records[:end], delimiter), _resumed(records[end:], blocks)


def _resumed(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    del first
    yield from blocks


def _header_block(blocks: Iterator[bytes]) -> bytes:
    """The next block; an error names the header line, which is no data row."""
    try:
        return next(blocks)
    except StopIteration:
        message = "there is no header line: the input is empty"
        raise StartError(message) from None
    except InputError as error:
        reason = error.reason if error.row is None else f"the header line: {error.reason}"
        raise StartError(reason) from None


def _names(header: bytes, delimiter: str) -> list[str]:
    """Parse the header line as pyarrow would."""
    if header.startswith((b"{", b"[")):
        message = "this looks like NDJSON, not CSV; name the format ndjson"
        raise StartError(message)
    if header.count(delimiter.encode()) >= _MOST_COLUMNS:
        message = f"the header line names more than {_MOST_COLUMNS:,} columns"
        raise StartError(message)
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(header),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(header) + 1),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter),
        )
        names = list(table.column_names)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        message = "the header line cannot be read; it must be UTF-8"
        raise StartError(message) from None
    if table.num_rows:
        message = "lines must end in a newline (LF or CRLF), not in a lone carriage return"
        raise StartError(message)
    return names


def _parse(
    block: bytes, *, names: list[str], columns: Sequence[Column], delimiter: str
) -> pa.Table:
    """One block of whole records, as a table of the wanted columns."""
    kinds = {column.name: pa.int64() if column.integers else pa.binary() for column in columns}
    if block.startswith(BYTE_ORDER_MARK):  # of an id: pyarrow drops one wherever a block begins
        block = BYTE_ORDER_MARK + block
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=names
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                # With one column an empty line is an empty field, so a null.
                ignore_empty_lines=len(names) > 1,
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(kinds),
                column_types=kinds,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        raise _explain(str(error), names) from None
    return check_utf8(table)


def _explain(message: str, names: Sequence[str]) -> InputError:
    """What pyarrow found wrong, without the line that it quotes."""
    if found := _WRONG_WIDTH.match(message):
        row, expected, got = map(int, found.groups())
        return InputError(f"the header has {expected:,} fields, and this row {got:,}", row=row)
    if found := _NOT_INT64.match(message):
        column, row = map(int, found.groups())
        return not_integers(names[column]).after(row - 1)
    return InputError("this cannot be parsed as CSV")
