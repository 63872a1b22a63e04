"""Ids from a file or a pipe, as they arrive, in bounded memory.

`reader` reads ahead in a thread; `delimited`, `ndjson`, `log_lines` and `columnar` parse the
formats; `text` holds what the text formats share; `addresses` reads the IP addresses of any format.
The ids are sensitive: an error names the row and the reason, and carries neither a value nor the
exception of pyarrow, which quotes values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.intake.sources.addresses import with_addresses
from panprivacy.intake.sources.bodies import MEDIA_TYPES, BodyReader
from panprivacy.intake.sources.columnar import read_arrow, read_parquet
from panprivacy.intake.sources.columns import Column, Prefixes, StartError, check_wanted, show
from panprivacy.intake.sources.compressed import EXTENSIONS as PACKED
from panprivacy.intake.sources.compressed import ZIP, member_name
from panprivacy.intake.sources.delimited import Dialect, line_of, read_delimited
from panprivacy.intake.sources.log_lines import only_wanted_groups, read_combined, read_lines
from panprivacy.intake.sources.ndjson import read_ndjson
from panprivacy.intake.sources.reader import Feed, FileStart, Source
from panprivacy.intake.sources.several import Files, SourceFile, parts_of, with_keys
from panprivacy.intake.sources.unreadable import Skips

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "BodyReader",
    "Column",
    "Prefixes",
    "Skips",
    "Source",
    "StartError",
    "dialect_of",
    "open_source",
]

_Reader = Callable[[Feed, Sequence[Column]], Iterator[pa.RecordBatch]]

_TSV = Dialect("\t")

_READERS: dict[str, _Reader] = {
    "csv": partial(read_delimited, dialect=Dialect()),
    "tsv": partial(read_delimited, dialect=_TSV),
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
    *paths: str,
    columns: Sequence[Column],
    format: str | None = None,  # noqa: A002 - the word that users know
    pattern: str | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    skips: Skips | None = None,
) -> Source:
    """Open files, or standard input, for one pass over some of their columns.

    Errors in what the input holds are raised when its batches are iterated over.

    Args:
        paths: files, directories of Parquet, globs, or "-" for standard input; read in the order in
            which they are named, and those of a directory or a glob in that of their paths.
        columns: the wanted columns, in this order; empty to read any one column and count rows.
        format: one of `FORMATS`; by default the format of the file's extension.
        pattern: for the format "lines": a regular expression of RE2 that is found in every line;
            its named groups are the columns.
        delimiter: the delimiter of the format "csv"; None to detect it from the header line.
        comment: for "csv" and "tsv": the character that starts lines to be ignored.
        skips: counts rows that cannot be read; None if the first one ends the input.

    Returns:
        A context manager that yields record batches.

    Raises:
        InputError: there is no such file, its format is not known or not that of the others, the
            pattern is missing or wrong, or a column is named twice.
    """
    parts = parts_of(paths, format)
    kind = _kind_of(parts, format)
    check_wanted(columns)
    dialect = dialect_of(kind, delimiter, comment)
    read = _reader(kind, columns, pattern, dialect)
    files = Files(parts)
    return Source(
        files,
        _batches(files, read, columns, skips),
        skips=skips,
        line_of=partial(_line_of, files, [column.name for column in columns], dialect),
    )


def _batches(
    files: Files, read: _Reader, columns: Sequence[Column], skips: Skips | None
) -> Iterator[pa.RecordBatch | FileStart]:
    """Yield the rows of all files, one after another."""
    for part, file in files.opened():
        name = part.path if files.several else None
        file.skips = None if skips is None else skips.part(name)
        yield FileStart(name, counted=file.size is not None)
        yield from with_addresses(file, with_keys(read, file, columns, part.keys), columns)


def _line_of(
    files: Files, wanted: Sequence[str], dialect: Dialect | None, name: str | None, row: int
) -> int | None:
    """Return the line of a CSV on which a row begins."""
    if dialect is None:
        return None
    with files.again(name) as file:
        return None if file is None else line_of(file, row, wanted=wanted, dialect=dialect)


def dialect_of(kind: str, delimiter: str | None, comment: str | None) -> Dialect | None:
    """Return the dialect of a CSV; None for other formats.

    Raises:
        InputError: the format has no delimiter, or no comments.
    """
    if kind == "csv":
        return Dialect(delimiter, comment)
    if delimiter is not None:
        message = f"a delimiter is for the format csv, and the format is {kind}"
        raise InputError(message)
    if kind == "tsv":
        return replace(_TSV, comment=comment)
    if comment is not None:
        message = f"a comment is for the formats csv and tsv, and the format is {kind}"
        raise InputError(message)
    return None


def _reader(
    kind: str, columns: Sequence[Column], pattern: str | None, dialect: Dialect | None
) -> _Reader:
    """Return the reader of a format; check the pattern before anything is read."""
    if kind != _LINES and pattern is not None:
        message = f"a pattern is for the format {_LINES}, and the format is {kind}"
        raise InputError(message)
    if dialect is not None:
        return partial(read_delimited, dialect=dialect)
    if kind != _LINES:
        return _READERS[kind]
    if pattern is None:
        message = f"the format {_LINES} needs a pattern, such as ^(?P<user>\\S+)"
        raise InputError(message)
    return partial(read_lines, pattern=only_wanted_groups(pattern, columns))


def _kind_of(parts: Sequence[SourceFile], named: str | None) -> str:
    """Return the format that all files have."""
    kinds = {_format(part.path, named): part.path for part in reversed(parts)}
    if len(kinds) > 1:
        (first, a), (second, b), *_ = reversed(kinds.items())
        message = f"{a} is {first} and {b} is {second}: count files of one format at a time"
        raise InputError(message)
    return next(iter(kinds))


def _format(path: str, named: str | None) -> str:
    """Return the given format, or that of the extension."""
    known = ", ".join(FORMATS)
    if named is not None:
        if named not in FORMATS:
            message = f"there is no format {show(named)}; the formats are {known}"
            raise InputError(message)
        return named
    if path == "-":
        message = f"standard input has no extension; name it with format=, of: {known}"
        raise InputError(message)
    plain = PurePath(path)
    if plain.suffix.lower() in PACKED:
        packing, plain = plain.suffix.lower(), plain.with_suffix("")
        if packing == ZIP and plain.suffix.lower() not in _EXTENSIONS:  # the file within has a name
            plain = PurePath(member_name(path) or plain)
    extension = plain.suffix.lower()
    if extension == ".json":
        message = (
            f"{path}: name the format ndjson, which is one JSON object a line; "
            "jq -c '.[]' makes lines of a list of objects"
        )
        raise InputError(message)
    if extension not in _EXTENSIONS:
        message = (
            f"{path}: the extension does not tell the format; name it with format=, of: {known}"
        )
        raise InputError(message)
    return _EXTENSIONS[extension]
