"""Ids from a body in memory, such as that of an HTTP request: all of them, or an error.

The parsers are those of files and pipes, without the thread and the descriptors; only a body can be
JSON or bare numbers. A body comes from an untrusted sender, so its unpacked size is bounded.
Parquet is not supported: its encodings repeat values, and pyarrow shows how often only by decoding
them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.intake.sources.addresses import with_addresses
from panprivacy.intake.sources.arrow_bodies import read_arrow_body
from panprivacy.intake.sources.columns import Column, check_wanted, show
from panprivacy.intake.sources.delimited import Dialect, read_delimited
from panprivacy.intake.sources.json_bodies import read_json_body
from panprivacy.intake.sources.log_lines import read_combined, read_lines
from panprivacy.intake.sources.ndjson import column_types, read_ndjson
from panprivacy.intake.sources.plain_lines import read_plain_lines
from panprivacy.intake.sources.reader import BATCH_ROWS, Feed, anew
from panprivacy.intake.sources.text import check_utf8
from panprivacy.privacy.noise import wipe

MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "application/vnd.apache.arrow.stream": "arrow",
        "application/vnd.apache.arrow.file": "arrow",
        "application/octet-stream": "int64",
        "application/x-ndjson": "ndjson",
        "application/jsonl": "ndjson",
        "application/json": "json",
        "text/csv": "csv",
        "text/tab-separated-values": "tsv",
    }
)
"""Format name in `BodyReader.read` of each media type."""

_MOST_BYTES = 1 << 30
_INT64_BYTES = 8

Buffer = bytes | bytearray | memoryview
_BodyReader = Callable[[memoryview, Sequence[Column]], Iterator[pa.RecordBatch]]


class BodyReader:
    """Reader of some columns of bodies in memory.

    Args:
        columns: the wanted columns, in order; none to count rows: the result is then one column of
            nulls, without any content of the rows.

    Raises:
        InputError: a column cannot be read like this.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        check_wanted(columns)
        self._columns = columns
        self._has_addresses = any(column.address for column in columns)

    def read(self, kind: str, body: Buffer, *, pattern: str | None = None) -> list[pa.RecordBatch]:
        """Read a body.

        Args:
            kind: one of the values of `MEDIA_TYPES`, or "combined" or "lines" for log lines.
            body: the body; it must not change while the batches exist, which may point into it.
            pattern: for "lines"; a result of `only_wanted_groups`.

        Returns:
            Record batches of at most 262,144 rows. Nulls are preserved.

        Raises:
            InputError: the body, or a part of it, is invalid; the message names the row, if any.
        """
        if kind not in _READERS and pattern is None:
            message = (
                f"a body cannot be read as {show(kind)}; the formats are {', '.join(_READERS)}"
            )
            raise InputError(message)
        parse = _READERS.get(kind) or partial(
            _read_text, parse=partial(read_lines, pattern=pattern or "")
        )
        view = memoryview(body).cast("B")
        if view.nbytes > _MOST_BYTES:
            message = f"this is longer than {_MOST_BYTES >> 20:,} MiB; send it in parts"
            raise InputError(message)
        try:
            # Not by a name: the frame of this function is kept with the error, and a reader holds
            # ids.
            if not self._columns:
                return list(_rows_alone(parse(view, self._columns)))
            return list(self._with_addresses(parse(view, self._columns), view.nbytes))
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not show an id
            wrong = anew(error)
        raise wrong  # without the frames of parsers, which hold ids

    def read_together(
        self, kind: str, bodies: Sequence[Buffer]
    ) -> tuple[bytearray, list[pa.RecordBatch]] | None:
        """Read several bodies as one, which is cheaper; errors give no details.

        Returns:
            The buffer that the batches point into, to be overwritten after use, and the rows of
            all bodies; None if each body must be read on its own.
        """
        columns = self._columns
        if not columns:
            return None
        if kind == "int64":
            if len(columns) > 1 or any(len(body) % _INT64_BYTES for body in bodies):
                return None
            joined = bytearray().join(bodies)
            return joined, list(_read_int64(memoryview(joined), columns))
        if kind != "ndjson":
            return None
        joined = bytearray(b"\n").join((*bodies, b""))  # no plain line continues in the next body
        batches = None
        try:
            table = read_plain_lines(joined, column_types(columns))
            if table is not None:
                pieces = iter(check_utf8(table).to_batches())
                batches = list(self._with_addresses(pieces, len(joined)))
        except InputError:
            pass
        finally:
            if batches is None:
                wipe(np.frombuffer(joined, np.uint8))
        return None if batches is None else (joined, batches)

    def _with_addresses(
        self, batches: Iterator[pa.RecordBatch], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the addresses in columns of addresses of a body of this size; others pass."""
        if not self._has_addresses:
            return batches
        counted = Feed(io.BytesIO(), size)  # only marks that rows are counted
        return with_addresses(counted, batches, self._columns)


def _rows_alone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield columns of nulls with the same numbers of rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            nulls = pa.nulls(min(BATCH_ROWS, batch.num_rows - start))
            yield pa.RecordBatch.from_arrays([nulls], names=[""])


def _read_text(
    body: memoryview,
    columns: Sequence[Column],
    parse: Callable[[Feed, Sequence[Column]], Iterator[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    return parse(Feed(io.BytesIO(body), body.nbytes), columns)


def _aligned(body: memoryview) -> pa.Buffer:
    """Return the body as a buffer, in place if it is aligned, as Arrow requires."""
    buffer = pa.py_buffer(body)
    return buffer if buffer.address % _INT64_BYTES == 0 else pa.py_buffer(bytes(body))


def _read_int64(body: memoryview, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Read little-endian numbers, in place."""
    if len(columns) > 1:
        message = "bare numbers are one column; send Arrow, CSV or JSON for several"
        raise InputError(message)
    if body.nbytes % _INT64_BYTES:
        message = "bare numbers take 8 bytes each, and this is no multiple of 8 bytes long"
        raise InputError(message)
    rows = body.nbytes // _INT64_BYTES
    ids = pa.Array.from_buffers(pa.int64(), rows, [None, _aligned(body)])
    batch = pa.RecordBatch.from_arrays([ids], names=[one.name for one in columns] or [""])
    for start in range(0, rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


_READERS: dict[str, _BodyReader] = {
    "csv": partial(_read_text, parse=partial(read_delimited, dialect=Dialect())),
    "tsv": partial(_read_text, parse=partial(read_delimited, dialect=Dialect("\t"))),
    "ndjson": partial(_read_text, parse=read_ndjson),
    "json": read_json_body,
    "combined": partial(_read_text, parse=read_combined),
    "arrow": lambda body, columns: read_arrow_body(_aligned(body), columns),
    "int64": _read_int64,
}
