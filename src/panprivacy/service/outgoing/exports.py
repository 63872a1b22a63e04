"""Published answers as files: JSON, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from panprivacy.service.outgoing.records import FIELDS, NULLABLE, Page

_NAMES: Final = list(FIELDS)
_WEIGHT: Final = re.compile(r"(?:^|;)\s*q=(1(?:\.0*)?|0(?:\.[0-9]*)?)\s*(?:;|$)")
_FORMULA: Final = re.compile(
    "[=+\\-@\t\r\n\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}"
    "\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}']"
)
"""First characters of texts that a spreadsheet may run, and the quote that prevents it."""
_NUMBER: Final = re.compile(r"-(\d+|inf)", re.ASCII)
_SCHEMA: Final = pa.schema(
    [pa.field(name, kind, nullable=name in NULLABLE) for name, (kind, _) in FIELDS.items()]
)


class Piece(NamedTuple):
    """A part of a file.

    Args:
        data: the bytes of this part.
        is_last: whether no other part follows.
    """

    data: bytes
    is_last: bool


def as_json(pages: Iterable[Page]) -> Iterator[Piece]:
    """Yield a JSON list of objects with the fields of `Published`, a piece for each page.

    Args:
        pages: answers of any streams.

    Returns:
        UTF-8. Times are ISO 8601 with Z, infinity is the text "inf", and lost or inapplicable
        values are null.
    """
    before = "["
    for page in pages:
        rows = [{name: _plain(getattr(one, name)) for name in _NAMES} for one in page.answers]
        text = json.dumps(rows, allow_nan=False)[1:-1]
        yield Piece(f"{before}{text}{']' if page.is_last else ''}".encode(), page.is_last)
        before = ", "


def as_csv(pages: Iterable[Page]) -> Iterator[Piece]:
    """Yield a CSV with a header and a line for each answer, a piece for each page.

    Args:
        pages: answers of any streams.

    Returns:
        UTF-8, according to RFC 4180. Cells are as in JSON, and empty for null. A text that a
        spreadsheet might run as a formula gets an apostrophe in front, and so does a text that
        begins with an apostrophe: a reader that removes the first apostrophe gets the text of the
        JSON.
    """
    rows = [_NAMES]
    for page in pages:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerows(rows)
        for answer in page.answers:
            writer.writerow([_cell(_plain(getattr(answer, name))) for name in _NAMES])
        yield Piece(text.getvalue().encode(), page.is_last)
        rows = []


def as_parquet(pages: Iterable[Page]) -> Iterator[Piece]:
    """Yield a Parquet table with a column for each field of `Published`, a piece for each page.

    Args:
        pages: answers of any streams.

    Returns:
        A file of Parquet, with a row group for each page. Times are microseconds in UTC, and
        infinity is that of floats.
    """
    file = _Taken()
    writer = pq.ParquetWriter(pa.PythonFile(file, "w"), _SCHEMA)
    for page in pages:
        columns = {name: [getattr(answer, name) for answer in page.answers] for name in _NAMES}
        writer.write_table(pa.table(columns, schema=_SCHEMA))
        if page.is_last:
            writer.close()
        yield Piece(file.take(), page.is_last)


class _Taken(io.RawIOBase):
    """File that is taken away while it is written."""

    def __init__(self) -> None:
        self._data, self._before = bytearray(), 0

    def writable(self) -> bool:
        """Return that it is."""
        return True

    def tell(self) -> int:
        """Return the position in the complete file."""
        return self._before + len(self._data)

    def write(self, data: Any) -> int:
        """Append data."""
        self._data += data
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        found, self._data = bytes(self._data), bytearray()
        self._before += len(found)
        return found


WRITERS: Final[Mapping[str, Callable[[Iterable[Page]], Iterator[Piece]]]] = {
    "application/json": as_json,
    "text/csv": as_csv,
    "application/vnd.apache.parquet": as_parquet,
}
"""Writer of each media type; the first is the default."""


def preferred(accept: str | None, kinds: Iterable[str]) -> str | None:
    """Return the media type that an `Accept` header prefers, the first of equal ones.

    Args:
        accept: the header; None if there is none. Unreadable parts are ignored.
        kinds: media types without parameters.

    Returns:
        One of `kinds`; None if the header excludes them all.
    """
    ranges: dict[str, float] = {}
    for part in (accept or "*/*").lower().split(","):
        media, _, parameters = part.partition(";")
        weight = _WEIGHT.search(parameters)
        name = media.strip()
        ranges[name] = max(ranges.get(name, 0.0), float(weight[1]) if weight else 1.0)
    liked = {}
    for kind in kinds:  # the most specific range counts
        names = kind, f"{kind.partition('/')[0]}/*", "*/*"
        liked[kind] = next((ranges[name] for name in names if name in ranges), 0.0)
    best = max(liked, key=liked.__getitem__)
    return best if liked[best] else None


def _cell(value: object) -> object:
    """Return a JSON value as a CSV cell: never a formula, for any name of a group."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _plain(value: object) -> object:
    """Return a value of a field that JSON can represent."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
