"""Published answers as files: JSON, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from panprivacy.service.outgoing.records import FIELDS, NULLABLE, Published

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


def as_json(answers: Sequence[Published]) -> bytes:
    """Return a JSON list of objects with the fields of `Published`.

    Args:
        answers: of any streams.

    Returns:
        UTF-8. Times are ISO 8601 with Z, infinity is the text "inf", and lost or inapplicable
        values are null.
    """
    rows = [{name: _plain(getattr(answer, name)) for name in _NAMES} for answer in answers]
    return json.dumps(rows, allow_nan=False).encode()


def as_csv(answers: Sequence[Published]) -> bytes:
    """Return a CSV with a header and a line for each answer.

    Args:
        answers: of any streams.

    Returns:
        UTF-8, according to RFC 4180. Cells are as in JSON, and empty for null. A text that a
        spreadsheet might run as a formula gets an apostrophe in front, and so does a text that
        begins with an apostrophe: a reader that removes the first apostrophe gets the text of the
        JSON.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_NAMES)
    for answer in answers:
        writer.writerow([_cell(_plain(getattr(answer, name))) for name in _NAMES])
    return text.getvalue().encode()


def as_parquet(answers: Sequence[Published]) -> bytes:
    """Return a Parquet table with a typed column for each field of `Published`.

    Args:
        answers: of any streams.

    Returns:
        A file of Parquet. Times are microseconds in UTC, and infinity is that of floats.
    """
    columns = {name: [getattr(answer, name) for answer in answers] for name in _NAMES}
    file = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=_SCHEMA), file)
    return bytes(file.getvalue())


WRITERS: Final[Mapping[str, Callable[[Sequence[Published]], bytes]]] = {
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
