"""CSV: ends of records, and columns as bytes or whole numbers.

Ids stay bytes, as they stand between the delimiters, and must be UTF-8; their type is never
guessed, so that 007 and 7 are two users in every block. An empty field is null.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from panprivacy.errors import InputError
from panprivacy.ground.kernels import kernel, read_only
from panprivacy.intake.sources.columns import (
    Column,
    StartError,
    check_columns,
    not_integers,
    not_numbers,
    show_all,
)
from panprivacy.intake.sources.reader import Feed
from panprivacy.intake.sources.text import (
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
_OUTSIDE, _INSIDE, _CLOSED, _COMMENT = range(4)
_NO_COMMENT = -1
_QUOTE, _LF, _CR = b'"\n\r'
_SURE = {
    *("user_id", "visitor_id", "client_id", "customer_id", "session_id", "user_agent"),
    *("ip_address", "remote_addr", "timestamp", "datetime", "created_at"),
}
_USUAL = {"id", "user", "visitor", "uuid", "email", "ip", "url", "page", "time", "date", *_SURE}
"""Usual names of columns, which are not usual as values."""
_WRONG_WIDTH = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
_NO_NUMBER = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (int64|double)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Dialect of a CSV.

    Args:
        delimiter: the delimiter; None for the first of `,`, `;`, tab and `|` that divides the
            header line into the wanted columns and others.
        comment: the character that starts lines to be ignored; None if all lines count.
    """

    delimiter: str | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        """Check that the delimiter suits pyarrow, and that the comment is unambiguous.

        Raises:
            InputError: one is not a single ASCII character, or has another meaning.
        """
        for name, one, example in (
            ("delimiter", self.delimiter, ";"),
            ("comment", self.comment, "#"),
        ):
            if one is not None and (len(one) != 1 or not one.isascii() or one in '"\r\n\0'):
                message = (
                    f"the {name} must be one character of ASCII, such as {example} and no quote"
                )
                raise InputError(message)
        if self.comment is not None and self.comment == self.delimiter:
            message = "the delimiter and the comment must be two characters"
            raise InputError(message)

    def cutter(self) -> QuotedLines:
        """Return the cutter, which finds the ends of records."""
        return QuotedLines(self.delimiter or _DELIMITERS[0], self.comment)


def read_delimited(
    file: Feed, columns: Sequence[Column], *, dialect: Dialect
) -> Iterator[pa.RecordBatch]:
    """Parse CSV with a header line; columns are int64 where integers are wanted, otherwise binary.

    Args:
        file: the input.
        columns: the wanted columns.
        dialect: the dialect of the file.

    Raises:
        InputError: it is not such a CSV.
    """
    check_start(file)
    dialect = _detected(file, dialect, [column.name for column in columns])
    cutter = dialect.cutter()
    blocks = cut(file, cutter)
    names, data = _split_header(blocks, dialect)
    columns = check_columns(columns, names, known=_known(columns, names))
    parse = partial(_parse, names=names, columns=columns, dialect=dialect)
    yield from parsed(file, data, parse, cutter)


def line_of(file: Feed, row: int, *, wanted: Sequence[str], dialect: Dialect) -> int | None:
    """Read a CSV again up to a row, and return the line on which the row begins.

    Args:
        file: the input, from its start.
        row: number of the row, from 1 after the header line.
        wanted: names of the columns that are read.
        dialect: the dialect of the file.

    Returns:
        The line, counted from 1 over header, comments, empty lines and those within quotes; None if
        there is no such row.
    """
    check_start(file)
    dialect = _detected(file, dialect, wanted)
    lines, rows, width = 0, 0, 0
    try:
        for block in cut(file, dialect.cutter()):
            starts, ends, counts = _records(block, dialect)
            pairs = zip(starts, ends, strict=True)
            empty = np.array([not block[start:end].strip(b"\r\n") for start, end in pairs])
            if not width:
                header = np.flatnonzero(counts & ~empty)[:1]
                if not header.size:
                    lines += block.count(b"\n")
                    continue
                at = header[0]
                width = len(_names(block[starts[at] : ends[at]], dialect))
                counts[: at + 1] = False
            found = starts[counts & ~empty] if width > 1 else starts[counts]
            if rows + len(found) >= row:
                return lines + 1 + block.count(b"\n", 0, int(found[row - rows - 1]))
            rows, lines = rows + len(found), lines + block.count(b"\n")
    except InputError:  # the incomplete record is the next one
        pass
    return lines + 1 if width and row == rows + 1 else None


def _known(wanted: Sequence[Column], names: Sequence[str]) -> str:
    """Return the description of the first line: its names, unless it looks like a record."""
    if _are_names(wanted, names):
        return f"the columns are {show_all(names)}"
    return "the first line of the input must name the columns"


def _are_names(wanted: Sequence[Column], names: Sequence[str]) -> bool:
    """Return whether a first line contains a wanted, similar or usual column name."""
    known = {name.lower().replace(" ", "_") for name in names}
    return (
        bool(known & _SURE)
        or len(known & _USUAL) > 1
        or any(get_close_matches(column.name.lower(), known, n=1, cutoff=0.7) for column in wanted)
    )


def _detected(file: Feed, dialect: Dialect, wanted: Sequence[str]) -> Dialect:
    """Detect the delimiter from the header line, which is then read again; return the dialect."""
    if dialect.delimiter is not None:
        return dialect
    start = b""
    while not (header := _first_line(start, dialect)) and len(start) < RECORD_BYTES:
        block = file.read_some(BLOCK_BYTES)
        if not block:
            break
        start += block
    file.push_back(start)
    header = header or start.lstrip(b"\r\n") + b"\n"
    return replace(dialect, delimiter=_delimiter_of(header, wanted))


def _first_line(start: bytes, dialect: Dialect) -> bytes:
    """Return the first line that is neither empty nor a comment; empty if it is incomplete."""
    skipped = rb"[\r\n]" if dialect.comment is None else _comments(dialect.comment) + rb"|[\r\n]"
    line, end, _ = re.sub(rb"\A(?:%b)+" % skipped, b"", start).partition(b"\n")
    return line + end if end else b""


def _comments(comment: str) -> bytes:
    """Return a pattern for a comment line, from its start."""
    return re.escape(comment.encode()) + rb"[^\n]*\n"


def _delimiter_of(header: bytes, wanted: Sequence[str]) -> str:
    """Return the delimiter that divides a header line into the wanted columns."""
    found = {}
    for delimiter in _DELIMITERS:
        with suppress(StartError):
            found[delimiter] = _names(header, Dialect(delimiter))
    if not wanted:
        return max(found, key=lambda delimiter: len(found[delimiter]), default=_DELIMITERS[0])
    fits = (one for one, names in found.items() if set(wanted) <= set(names))
    return next(fits, _DELIMITERS[0])


class QuotedLines(Lines):
    """Cutter for CSV: a record ends at a newline that is not inside a quoted field.

    A quote opens a field only where a field begins: the inch mark in `19" rack` is an ordinary
    character to pyarrow, so that counting quotes modulo two would cut in the wrong places.
    """

    def __init__(self, delimiter: str, comment: str | None = None) -> None:
        self._marks = ord(delimiter), _NO_COMMENT if comment is None else ord(comment)
        self._state = _OUTSIDE
        self._previous = _LF

    @property
    def open_quote(self) -> bool:
        """Whether the blocks so far end inside a quoted field."""
        return self._state == _INSIDE

    def last_end(self, block: bytes) -> int:
        """Return the end of the last complete record in the block."""
        if self._state != _INSIDE and b'"' not in block:
            end = block.rfind(b"\n") + 1
            if end or self._previous == _LF:  # the rest starts a line
                begun = block[end : end + 1] == bytes([max(self._marks[1], 0)])
                self._state = _COMMENT if begun else _OUTSIDE
        else:
            view = np.frombuffer(block, np.uint8)
            end, self._state = _scan(view, self._state, self._previous, *self._marks)
        self._previous = block[-1]
        return end

    def end_near(self, block: bytes, at: int) -> int:
        """Return an end of a record in a complete block: the last up to `at`, or the next."""
        if b'"' not in block:
            return super().end_near(block, at)
        end, least, most = self._last_within(block, at), at, len(block)
        while not end and least < most:  # the first record extends beyond that position
            middle = (least + most) // 2
            if self._last_within(block, middle):
                most = middle
            else:
                least = middle + 1
        return end or least

    def _last_within(self, block: bytes, stop: int) -> int:
        """Return the last end of a complete record up to a position; 0 if there is none."""
        view = np.frombuffer(block, np.uint8)[:stop]
        end, _ = _scan(view, _OUTSIDE, _LF, *self._marks)
        return int(end)


def _scan_quotes(
    block: npt.NDArray[np.uint8], state: int, previous: int, delimiter: int, comment: int
) -> tuple[int, int]:
    """Follow the quotes and comments through a block, from the state of the byte before it.

    Returns:
        The index after the last newline that ends a record, 0 if none does; the state at the end.
    """
    end = 0
    for i in range(block.size):
        if state == _COMMENT:
            if block[i] == _LF:
                state, end = _OUTSIDE, i + 1
        elif block[i] == comment and state != _INSIDE and (block[i - 1] if i else previous) == _LF:
            state = _COMMENT
        elif block[i] == _QUOTE:
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


_scan = kernel(f"({read_only('uint8')}, int64, int64, int64, int64)")(_scan_quotes)


def _records(
    block: bytes, dialect: Dialect
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return starts and ends of the records in a complete block, and which are no comments."""
    cutter, ends, start = dialect.cutter(), [], 0
    for line in io.BytesIO(block):
        start += len(line)
        if cutter.last_end(line):
            ends.append(start)
    starts = np.array([0, *ends[:-1]], np.int64)
    first = np.frombuffer(block, np.uint8)[starts]
    comment = _NO_COMMENT if dialect.comment is None else ord(dialect.comment)
    return starts, np.array(ends, np.int64), first != comment


def _split_header(blocks: Iterator[bytes], dialect: Dialect) -> tuple[list[str], Iterator[bytes]]:
    """Return the column names, and the blocks without them."""
    records = b""
    while not records:
        records = _without_comments(_header_block(blocks), dialect).lstrip(b"\r\n")
    cutter, start, end = dialect.cutter(), 0, 0
    while start == end or not cutter.last_end(records[start:end]):
        start, end = end, records.find(b"\n", end) + 1
    return _names(records[:end], dialect), _resumed(records[end:], blocks)


def _without_comments(block: bytes, dialect: Dialect) -> bytes:
    """Return a block of complete records without comment lines; a quoted line is no comment."""
    if dialect.comment is None or dialect.comment.encode() not in block:
        return block
    if b'"' not in block:
        return re.sub(rb"(?m)^" + _comments(dialect.comment), b"", block)
    starts, ends, counts = _records(block, dialect)
    pairs = zip(starts[counts], ends[counts], strict=True)
    return b"".join(block[start:end] for start, end in pairs)


def _resumed(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    del first
    yield from blocks


def _header_block(blocks: Iterator[bytes]) -> bytes:
    """Return the next block; an error names the header line, which is no data row."""
    try:
        return next(blocks)
    except StopIteration:
        message = "there is no header line: the input is empty"
        raise StartError(message) from None
    except InputError as error:
        reason = error.reason if error.row is None else f"the header line: {error.reason}"
        raise StartError(reason) from None


def _names(header: bytes, dialect: Dialect) -> list[str]:
    """Parse the header line as pyarrow does."""
    delimiter = dialect.delimiter or _DELIMITERS[0]
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
    block: bytes, *, names: list[str], columns: Sequence[Column], dialect: Dialect
) -> pa.Table:
    """Parse one block of complete records into a table of the wanted columns."""
    kinds = {column.name: _kind_of(column) for column in columns}
    block = _without_comments(block, dialect)
    if not block:
        return pa.schema(list(kinds.items())).empty_table()
    # part of an id: pyarrow drops one at the start of each block
    if block.startswith(BYTE_ORDER_MARK):
        block = BYTE_ORDER_MARK + block
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=names
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=dialect.delimiter or _DELIMITERS[0],
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


def _kind_of(column: Column) -> pa.DataType:
    """Return the type as which a column is read."""
    if column.numbers:
        return pa.float64()
    return pa.int64() if column.integers else pa.binary()


def _explain(message: str, names: Sequence[str]) -> InputError:
    """Return pyarrow's finding as an error, without the line that it quotes."""
    if found := _WRONG_WIDTH.match(message):
        row, expected, got = map(int, found.groups())
        return InputError(f"the header has {expected:,} fields, and this row {got:,}", row=row)
    if found := _NO_NUMBER.match(message):
        column, row = map(int, found.groups()[:2])
        wrong = not_integers if found[3] == "int64" else not_numbers
        return wrong(names[column]).after(row - 1)
    return InputError("this cannot be parsed as CSV")
