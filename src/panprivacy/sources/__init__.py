"""Ids from a file or a pipe, as they arrive, in bounded memory.

`reader` reads ahead in a thread; `delimited`, `ndjson`, `log_lines` and `columnar` parse the
formats; `text` holds what the text formats share; `addresses` reads the IP addresses of any format.
The ids are sensitive: an error names the row and the reason, and carries neither a value nor the
exception of pyarrow, which quotes values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import PurePath

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.sources.addresses import with_addresses
from panprivacy.sources.bodies import MEDIA_TYPES, read_body, read_together
from panprivacy.sources.columnar import read_arrow, read_parquet
from panprivacy.sources.columns import Column, Prefixes, StartError, check_wanted, show
from panprivacy.sources.compressed import EXTENSIONS as PACKED
from panprivacy.sources.delimited import check_delimiter, read_delimited
from panprivacy.sources.log_lines import only_wanted_groups, read_combined, read_lines
from panprivacy.sources.ndjson import read_ndjson
from panprivacy.sources.reader import Feed, Input, Source
from panprivacy.sources.unreadable import Skips

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "Column",
    "Prefixes",
    "Skips",
    "Source",
    "StartError",
    "open_source",
    "read_body",
    "read_together",
]

_Reader = Callable[[Feed, Sequence[Column]], Iterator[pa.RecordBatch]]

_READERS: dict[str, _Reader] = {
    "csv": partial(read_delimited, delimiter=None),
    "tsv": partial(read_delimited, delimiter="\t"),
    "ndjson": read_ndjson,
    "parquet": read_parquet,
    "arrow": read_arrow,
    "combined": read_combined,
}
_LINES = "lines"
FORMATS = (*_READERS, _LINES)
_EXTENSIONS = {
    **{f".{name}": name for name in ("csv", "tsv", "ndjson", "parquet", "arrow")},
    ".jsonl": "ndjson",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".arrows": "arrow",
}


def open_source(
    path: str,
    *,
    columns: Sequence[Column],
    format: str | None = None,  # noqa: A002 - the word that users know
    pattern: str | None = None,
    delimiter: str | None = None,
    skips: Skips | None = None,
) -> Source:
    """Open a file, or standard input, for one pass over some of its columns.

    Errors in what the input holds are raised when its batches are iterated over.

    Args:
        path: a file, or "-" for standard input.
        columns: handed out in this order; none for any one, so that rows can be counted.
        format: one of `FORMATS`; by default what the file's extension says.
        pattern: for the format "lines": a regular expression of RE2 that is found in every line;
            its named groups are the columns.
        delimiter: of the format "csv"; None for what the header line tells.
        skips: counts rows that cannot be read; None if the first one ends the input.

    Returns:
        A context manager that hands out record batches.

    Raises:
        InputError: there is no such file, its format is not known, the pattern is missing or wrong,
            or a column is named twice.
    """
    kind = _format(path, format)
    check_wanted(columns)
    read = _reader(kind, columns, pattern, delimiter)
    file = Input.open(path)
    file.skips = skips
    return Source(file, with_addresses(file, read(file, columns), columns))


def _reader(
    kind: str, columns: Sequence[Column], pattern: str | None, delimiter: str | None
) -> _Reader:
    """What reads a format; a pattern that cannot be used is refused before anything is read."""
    if delimiter is not None:
        if kind != "csv":
            message = f"a delimiter is for the format csv, and the format is {kind}"
            raise InputError(message)
        return partial(read_delimited, delimiter=check_delimiter(delimiter))
    if kind != _LINES and pattern is not None:
        message = f"a pattern is for the format {_LINES}, and the format is {kind}"
        raise InputError(message)
    if kind != _LINES:
        return _READERS[kind]
    if pattern is None:
        message = f"the format {_LINES} needs a pattern, such as ^(?P<user>\\S+)"
        raise InputError(message)
    return partial(read_lines, pattern=only_wanted_groups(pattern, columns))


def _format(path: str, named: str | None) -> str:
    """The format that is named, or that the extension means."""
    known = ", ".join(FORMATS)
    if named is not None:
        if named not in FORMATS:
            message = f"there is no format {show(named)}; the formats are {known}"
            raise InputError(message)
        return named
    if path == "-":
        message = f"standard input has no extension; name its format: {known}"
        raise InputError(message)
    plain = PurePath(path)
    if plain.suffix.lower() in PACKED:
        plain = plain.with_suffix("")
    extension = plain.suffix.lower()
    if extension == ".json":
        message = (
            f"{path}: name the format ndjson, which is one JSON object a line; "
            "jq -c '.[]' makes lines of a list of objects"
        )
        raise InputError(message)
    if extension not in _EXTENSIONS:
        message = f"{path}: the extension does not tell the format; name it: {known}"
        raise InputError(message)
    return _EXTENSIONS[extension]
