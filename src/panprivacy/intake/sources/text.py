"""Text, cut into blocks of complete records, each parsed as soon as it has arrived.

Files and pipes are handled alike: raw blocks arrive, the part after the last complete record waits
for the next block, and the part before is parsed by pyarrow at once. No record is handled in
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.intake.sources.columns import StartError, show
from panprivacy.intake.sources.compressed import START_BYTES, packing_of
from panprivacy.intake.sources.reader import BATCH_ROWS, Feed
from panprivacy.intake.sources.unreadable import read_before

BLOCK_BYTES = 2 << 20
RECORD_BYTES = 64 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = b"\xff\xfe", b"\xfe\xff"

_SIGNATURES = {
    b"PAR1": "this is Parquet, not text; name the format parquet",
    b"ARROW1": "this is Arrow IPC, not text; name the format arrow",
}


T = TypeVar("T", pa.Table, pa.RecordBatch)


class Lines:
    """Cutter of records: here, at every newline. It gets each block once, in order."""

    def last_end(self, block: bytes) -> int:
        """Return the end of the last complete record in the block."""
        return block.rfind(b"\n") + 1

    @property
    def open_quote(self) -> bool:
        """Whether the blocks so far end inside a quoted field."""
        return False

    def halves(self, block: bytes) -> tuple[bytes, bytes] | None:
        """Divide complete records, near the middle; None if there is only one."""
        end = self.end_near(block, len(block) // 2)
        return (block[:end], block[end:]) if end < len(block) else None

    def end_near(self, block: bytes, at: int) -> int:
        """Return an end of a record in a complete block: the last up to `at`, or the next."""
        return block.rfind(b"\n", 0, at) + 1 or block.index(b"\n", at) + 1


def complete_records(file: Feed, cutter: Lines) -> Iterator[bytes]:
    """Cut a stream at ends of records; complete records are yielded at once.

    Yields:
        Some complete records, of which the last ends in a newline.

    Raises:
        InputError: the stream is no text, a record is too long, or a quote is open at the end. Row
            1 is the first record that has not been yielded.
    """
    check_start(file)
    yield from cut(file, cutter)


def cut(file: Feed, cutter: Lines) -> Iterator[bytes]:
    """Cut a stream whose start was checked; see `complete_records`."""
    pending: list[bytes] = []
    length = 0
    for block in iter(lambda: file.read_some(BLOCK_BYTES), b""):
        end = cutter.last_end(block)
        if end:
            yield b"".join((*pending, block[:end]))
            pending, length = [], 0
        pending.append(block[end:])
        length += len(block) - end
        del block
        if length > RECORD_BYTES:
            hint = ': a closing " may be missing' if cutter.open_quote else ""
            reason = f"this record is longer than {RECORD_BYTES >> 20} MiB{hint}"
            raise InputError(reason, row=1)
    if cutter.open_quote:
        message = 'a quoted field is still open at the end of the input: a closing " is missing'
        raise InputError(message, row=1)
    if length:
        yield b"".join((*pending, b"\n"))


def parsed(
    file: Feed, blocks: Iterator[bytes], parse: Callable[[bytes], pa.Table], cutter: Lines
) -> Iterator[pa.RecordBatch]:
    """Parse block after block; all rows before an unreadable one are yielded.

    Args:
        file: the source of the blocks. The rows of a pipe are not counted from block to block: a
            running count of rows is state that an intruder could read.
        blocks: complete records; row 1 of their errors is the first record not yielded.
        parse: reads one block; row 1 of its errors is the block's first.
        cutter: divides blocks.

    Raises:
        InputError: the error of `blocks` or `parse`, with the row counted over the whole file.
    """
    rows = 0
    try:
        for block in blocks:
            skipped = file.skips.rows if file.skips else 0
            tables, wrong = read_before(block, cutter.halves, parse, file.skips)
            yield from _batches(tables)
            if wrong:
                raise wrong.pop()
            if file.size is not None:
                rows += sum(table.num_rows for table in tables)
                rows += file.skips.rows - skipped if file.skips else 0
            del block, tables
    except InputError as error:
        raise error.after(rows) from None


def _batches(tables: list[pa.Table]) -> list[pa.RecordBatch]:
    """Return the rows of one block; a column has the null type in tables without a value for it."""
    if not tables:
        return []
    table = tables[0]
    if len(tables) > 1:
        table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    return table.to_batches(max_chunksize=BATCH_ROWS)


def check_utf8(table: T) -> T:
    """Check that all texts are UTF-8, and return the table; raise `InputError` at a bad row."""
    for name in table.schema.names:
        column, before = table[name], 0
        if column.type != pa.binary() or _is_utf8(column):
            continue
        while len(column) > 1:
            middle = len(column) // 2
            if _is_utf8(column[:middle]):
                column, before = column[middle:], before + middle
            else:
                column = column[:middle]
        message = f"column {show(name)} holds a text that is not UTF-8"
        raise InputError(message, row=before + 1)
    return table


def _is_utf8(column: pa.Array | pa.ChunkedArray) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def check_start(file: Feed) -> None:
    """Check that the stream is text, and drop the byte order mark; a first line may be very short.

    UTF-16, which begins with a mark of its own, is read as UTF-8 from then on.
    """
    start = block = file.read_some(BLOCK_BYTES)
    while block and len(start) < START_BYTES and b"\n" not in start:
        block = file.read_some(BLOCK_BYTES)
        start += block
    packing = packing_of(start)
    if packing is not None:
        raise StartError(packing.advice)
    for signature, reason in _SIGNATURES.items():
        if start.startswith(signature) and start[len(signature) :][:1] < b" ":  # text goes on
            raise StartError(reason)
    if start.startswith(_UTF_16):
        file.read_as_utf_16(start)
    else:
        file.push_back(start.removeprefix(BYTE_ORDER_MARK))
