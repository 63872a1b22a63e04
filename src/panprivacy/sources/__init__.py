"""Ids from a file or a pipe, as they arrive, in bounded memory.

`reader` reads ahead in a thread; `delimited`, `ndjson` and `columnar` parse one format each; `text`
holds what the text formats share. The ids are sensitive: an error names the row and the reason, and
carries neither a value nor the exception of pyarrow, which quotes values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import PurePath

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.sources.columnar import read_arrow, read_parquet
from panprivacy.sources.columns import Column, show
from panprivacy.sources.delimited import read_delimited
from panprivacy.sources.ndjson import read_ndjson
from panprivacy.sources.reader import Input, Source

__all__ = ["FORMATS", "Column", "Source", "open_source"]

_READERS: dict[str, Callable[[Input, Sequence[Column]], Iterator[pa.RecordBatch]]] = {
    "csv": partial(read_delimited, delimiter=","),
    "tsv": partial(read_delimited, delimiter="\t"),
    "ndjson": read_ndjson,
    "parquet": read_parquet,
    "arrow": read_arrow,
}
FORMATS = tuple(_READERS)
_EXTENSIONS = {
    **{f".{name}": name for name in FORMATS},
    ".jsonl": "ndjson",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".arrows": "arrow",
}


def open_source(path: str, *, columns: Sequence[Column], format: str | None = None) -> Source:  # noqa: A002 - the word that users know
    """Open a file, or standard input, for one pass over some of its columns.

    Errors in what the input holds are raised when its batches are iterated over.

    Args:
        path: a file, or "-" for standard input.
        columns: at least one; handed out in this order.
        format: one of `FORMATS`; by default what the file's extension says.

    Returns:
        A context manager that hands out record batches.

    Raises:
        InputError: there is no such file, its format is not known, or a column is named twice.
    """
    _check_wanted(columns)
    read = _READERS[_format(path, format)]
    file = Input.open(path)
    return Source(file, read(file, columns))


def _check_wanted(columns: Sequence[Column]) -> None:
    names = [column.name for column in columns]
    if not names:
        message = "name at least one column"
        raise InputError(message)
    for name in names:
        if names.count(name) > 1:
            message = f"column {show(name)} is asked for twice"
            raise InputError(message)


def _format(path: str, named: str | None) -> str:
    """The format that is named, or that the extension means."""
    known = ", ".join(FORMATS)
    if named is not None:
        if named not in _READERS:
            message = f"there is no format {show(named)}; the formats are {known}"
            raise InputError(message)
        return named
    if path == "-":
        message = f"standard input has no extension; name its format: {known}"
        raise InputError(message)
    extension = PurePath(path).suffix.lower()
    if extension not in _EXTENSIONS:
        message = f"{path}: the extension does not tell the format; name it: {known}"
        raise InputError(message)
    return _EXTENSIONS[extension]
