"""Several files that are read as one: lists of names, globs, and directories of Parquet.

Files are read in the order in which they are named; those of a directory or a glob in the order of
their paths. Each is opened when the previous one has ended, so there may be any number.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.intake.sources.columns import Column
from panprivacy.intake.sources.reader import Feed, Input, Stop, Stopped

_PARQUET = ".parquet", ".pq", ".parq"


@dataclass(frozen=True)
class SourceFile:
    """One file.

    Args:
        path: path of the file, or "-" for standard input.
        keys: the columns given by the names of its folders, such as `year=2026`.
    """

    path: str
    keys: Mapping[str, pa.Scalar] = field(default_factory=dict)


def parts_of(paths: Sequence[str], format: str | None) -> list[SourceFile]:  # noqa: A002
    """Return the files of these paths, in reading order.

    Args:
        paths: files, directories, globs, or "-".
        format: the given format; directories are read only as Parquet.

    Raises:
        InputError: there are none, one is named twice, or a directory holds something else.
    """
    found = [part for path in paths for part in _parts(path, format)]
    if not found:
        message = "name a file, or - for standard input"
        raise InputError(message)
    seen: set[object] = set()
    for part in found:
        identity = _identity(part.path)
        if identity in seen:
            message = f"{part.path} is named twice, so that its rows would count twice"
            raise InputError(message)
        seen.add(identity)
    return found


def with_keys(
    read: Callable[[Feed, Sequence[Column]], Iterator[pa.RecordBatch]],
    file: Feed,
    columns: Sequence[Column],
    keys: Mapping[str, pa.Scalar],
) -> Iterator[pa.RecordBatch]:
    """Read columns of a file, including those given by the names of its folders."""
    if not any(column.name in keys for column in columns):
        yield from read(file, columns)
        return
    inner = [column for column in columns if column.name not in keys]
    for batch in read(file, inner):
        rows = iter(batch.columns)
        arrays = [
            pa.repeat(keys[column.name], batch.num_rows) if column.name in keys else next(rows)
            for column in columns
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


class Files:
    """Files that are opened one after another.

    Pipes are opened at once, as their writers may wait for that.

    Args:
        parts: the files, one or more.

    Raises:
        InputError: one cannot be read.
    """

    def __init__(self, parts: Sequence[SourceFile]) -> None:
        self._parts, self.stop = parts, Stop()
        self._open: dict[str, Input] = {}
        try:
            for at, part in enumerate(parts):
                self._check(part.path, first=at == 0)
        except BaseException:
            self.close()
            raise
        sizes = [self._size(part.path) for part in parts]
        self.size = None if None in sizes else sum(size or 0 for size in sizes)
        self._done, self._current = 0, self._open[parts[0].path]

    @property
    def several(self) -> bool:
        """Whether there are several files."""
        return len(self._parts) > 1

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._done + self._current.position

    def opened(self) -> Iterator[tuple[SourceFile, Input]]:
        """Open each file in turn, and close it after."""
        for part in self._parts:
            if self.stop.given:
                raise Stopped
            file = self._open.pop(part.path, None) or Input.open(part.path, self.stop)
            self._current = self._open[part.path] = file
            yield part, file
            self._done += file.size or 0
            file.position = 0
            file.close()

    @contextmanager
    def again(self, name: str | None) -> Iterator[Input | None]:
        """Open a file again, from its start; None for a pipe, and for a file that has gone."""
        path = self._parts[0].path if name is None else name
        stop, file = Stop(), None
        try:
            if path != "-" and self._size(path) is not None:
                file = Input.open(path, stop)
        except InputError:
            pass
        try:
            yield file
        finally:
            if file is not None:
                file.close()
            stop.close()

    def close(self) -> None:
        """Close the open files."""
        for file in self._open.values():
            file.close()
        self.stop.close()

    def _check(self, path: str, *, first: bool) -> None:
        """Open a pipe, and the first file; check only that other files are readable."""
        if first or path == "-" or not _is_file(path):
            self._open[path] = Input.open(path, self.stop)
        elif not os.access(path, os.R_OK):
            message = f"cannot read {path}: {os.strerror(13)}"
            raise InputError(message)

    def _size(self, path: str) -> int | None:
        """Return the size of a file in bytes; None if it is no regular file."""
        if path in self._open:
            return self._open[path].size
        try:
            return Path(path).stat().st_size if _is_file(path) else None
        except OSError:
            return None


def _parts(path: str, format: str | None) -> Iterator[SourceFile]:  # noqa: A002
    """Yield the files of a path."""
    if path != "-" and Path(path).is_dir():
        yield from _parts_of_directory(path, format)
    elif path != "-" and has_magic(path) and not Path(path).exists():
        found = sorted(glob(path, recursive=True))  # noqa: PTH207 - of any root
        if not found:
            message = f"no file is called like {path}"
            raise InputError(message)
        for one in found:
            yield from _parts(one, format)
    else:
        yield SourceFile(path)


def _parts_of_directory(path: str, format: str | None) -> Iterator[SourceFile]:  # noqa: A002
    """Yield the Parquet files below a directory, with the keys of their folders."""
    files = sorted(
        str(one)
        for one in Path(path).rglob("*")
        if one.is_file() and not _hidden(one.relative_to(path))
    )
    other = next((one for one in files if not one.lower().endswith(_PARQUET)), None)
    if format not in (None, "parquet") or other is not None or not files:
        holds = "no files" if not files else "other files than Parquet"
        said = f"and holds {holds}" if format in (None, "parquet") else "which can be of Parquet"
        message = f"{path} is a directory, {said}: name its files, as '{path.rstrip('/')}/*.csv'"
        raise InputError(message)
    for name, keys in zip(files, _keys_of(files), strict=True):
        yield SourceFile(name, keys)


def _hidden(path: Path) -> bool:
    """Return whether a file is a mark or an index, by its first character."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _keys_of(files: Sequence[str]) -> list[Mapping[str, pa.Scalar]]:
    """Return the keys of the folders of each file, each key with one type over all files."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - slow

    if not any("=" in part for name in files for part in Path(name).parts[:-1]):
        return [{}] * len(files)
    try:
        factory = ds.HivePartitioning.discover(infer_dictionary=False)
        places = [str(Path(name).absolute()) for name in files]
        whole = ds.dataset(places, format="parquet", partitioning=factory)
        told = {
            one.path: ds.get_partition_keys(one.partition_expression)
            for one in whole.get_fragments()
        }
    except (pa.ArrowException, OSError):
        message = (
            f"{files[0]} cannot be read as Parquet: it is truncated, damaged or something else"
        )
    else:
        return [
            {
                key: pa.scalar(value, whole.schema.field(key).type)
                for key, value in told[str(Path(name).absolute())].items()
            }
            for name in files
        ]
    raise InputError(message)


def _is_file(path: str) -> bool:
    """Return whether it is a regular file, which can be read again; raise if it does not exist."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
    raise InputError(message)


def _identity(path: str) -> object:
    """Return an identity that is equal for two names of one file."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return path
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else path
