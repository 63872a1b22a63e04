"""Ids from a body in memory, such as that of an HTTP request: all of them, or an error.

The parsers are those of files and pipes, without the thread and the descriptors; only a body can be
JSON or bare numbers. A body comes from whoever can reach a port, so that what it unpacks to is
bounded. Parquet is left out: its encodings repeat values, and pyarrow tells how often only by
decoding them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.noise import wipe
from panprivacy.sources.addresses import with_addresses
from panprivacy.sources.arrow_bodies import read_arrow_body
from panprivacy.sources.columns import Column, check_wanted, show
from panprivacy.sources.delimited import read_delimited
from panprivacy.sources.json_bodies import read_json_body
from panprivacy.sources.log_lines import read_combined, read_lines
from panprivacy.sources.ndjson import column_types, read_ndjson
from panprivacy.sources.plain_lines import read_plain_lines
from panprivacy.sources.reader import BATCH_ROWS, Feed, anew
from panprivacy.sources.text import check_utf8

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
"""What `read_body` calls the format of each media type."""

_MOST_BYTES = 1 << 30
_INT64_BYTES = 8

Body = bytes | bytearray | memoryview
_Reader = Callable[[memoryview, Sequence[Column]], Iterator[pa.RecordBatch]]


def read_body(
    kind: str, body: Body, columns: Sequence[Column], *, pattern: str | None = None
) -> list[pa.RecordBatch]:
    """Read some columns of a body in memory.

    Args:
        kind: one of the values of `MEDIA_TYPES`, or "combined" or "lines" for log lines.
        body: must stay as it is for as long as the batches live, which may point into it.
        columns: handed out in this order; none where only rows are counted: then there is one of
            nulls, and nothing of what the rows hold.
        pattern: of "lines"; comes from `only_wanted_groups`.

    Returns:
        Record batches of at most 262,144 rows. Nulls are kept.

    Raises:
        InputError: any of it cannot be used; the message names the row where one is to blame.
    """
    check_wanted(columns)
    if kind not in _READERS and pattern is None:
        message = f"a body cannot be read as {show(kind)}; the formats are {', '.join(_READERS)}"
        raise InputError(message)
    read = _READERS.get(kind) or partial(
        _read_text, parse=partial(read_lines, pattern=pattern or "")
    )
    view = memoryview(body).cast("B")
    if view.nbytes > _MOST_BYTES:
        message = f"this is longer than {_MOST_BYTES >> 20:,} MiB; send it in parts"
        raise InputError(message)
    counted = Feed(io.BytesIO(), view.nbytes)  # only says that rows are counted
    try:
        # Not by a name: the frame of this function is kept with the error, and a reader holds ids.
        if not columns:
            return list(_rows_alone(read(view, columns)))
        return list(with_addresses(counted, read(view, columns), columns))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not show an id
        wrong = anew(error)
    raise wrong  # without the frames of parsers, which hold ids


def read_together(
    kind: str, bodies: Sequence[Body], columns: Sequence[Column]
) -> tuple[bytearray, list[pa.RecordBatch]] | None:
    """Read several bodies as one, which costs less; of errors nothing is told.

    Returns:
        What the batches point into, to be overwritten after them, and the rows of all bodies; None
        where a reader has to look at each body by itself.
    """
    if not columns:
        return None
    if kind == "int64":
        if len(columns) > 1 or any(len(body) % _INT64_BYTES for body in bodies):
            return None
        joined = bytearray().join(bodies)
        return joined, list(_read_int64(memoryview(joined), columns))
    if kind != "ndjson":
        return None
    joined = bytearray(b"\n").join((*bodies, b""))  # no plain line goes on in the next one
    batches = None
    try:
        table = read_plain_lines(joined, column_types(columns))
        if table is not None:
            feed, pieces = Feed(io.BytesIO(), len(joined)), iter(check_utf8(table).to_batches())
            batches = list(with_addresses(feed, pieces, columns))
    except InputError:
        pass
    finally:
        if batches is None:
            wipe(np.frombuffer(joined, np.uint8))
    return None if batches is None else (joined, batches)


def _rows_alone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As many nulls as there are rows."""
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
    """In place if the body is aligned, as Arrow's buffers must be."""
    buffer = pa.py_buffer(body)
    return buffer if buffer.address % _INT64_BYTES == 0 else pa.py_buffer(bytes(body))


def _read_int64(body: memoryview, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Little-endian numbers and nothing else, in place."""
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


_READERS: dict[str, _Reader] = {
    "csv": partial(_read_text, parse=partial(read_delimited, delimiter=None)),
    "tsv": partial(_read_text, parse=partial(read_delimited, delimiter="\t")),
    "ndjson": partial(_read_text, parse=read_ndjson),
    "json": read_json_body,
    "combined": partial(_read_text, parse=read_combined),
    "arrow": lambda body, columns: read_arrow_body(_aligned(body), columns),
    "int64": _read_int64,
}
