"""Files that are replaced as a whole, and files from elsewhere, which may be of any size.

The old content of what is replaced is there until the new one is on the disk.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Final

from panprivacy.errors import InputError

_CHUNK: Final = 1 << 16


def read_at_most(path: Path, most: int) -> bytes:
    """Read a complete file.

    Args:
        path: path of the file, or of a pipe.
        most: bytes that it may have.

    Raises:
        InputError: it has more.
        OSError: it cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        return read_rest(file, most, str(path))


def read_rest(file: BinaryIO | FileIO, most: int, name: str = "the file") -> bytes:
    """Read the rest of an open file; see `read_at_most`."""
    size = os.fstat(file.fileno()).st_size  # 0 of a pipe
    parts, left = list[bytes](), most
    while left >= 0 and (part := file.read(min(max(size, _CHUNK), left + 1))):
        parts.append(part)
        left -= len(part)
    if left < 0:
        message = f"{name} is too long: it may have {most:,} bytes"
        raise InputError(message)
    return b"".join(parts)


def unfinished(path: Path) -> Path:
    """Return the path of the new content until it is on the disk; a crash may leave it there."""
    return path.with_name(f"{path.name}.new")


def replace_file(path: Path, data: bytes, check: Callable[[Path], None] | None = None) -> None:
    """Put data in place of a file: on the disk when this returns.

    Args:
        path: path of the file.
        data: its new content; its owner alone can read it.
        check: is shown the new file beside the old one, and raises if it may not take its place.

    Raises:
        OSError: the file is as it was; or it is the new one, and only its folder could not be
            written to the disk, so that a power cut may bring the old one back.
    """
    replace_files([path], data, check)


def replace_files(
    paths: Sequence[Path], data: bytes, check: Callable[[Path], None] | None = None
) -> None:
    """Put the same data in place of several files, once all of it is on the disk.

    Args:
        paths: paths of the files.
        data: their new content.
        check: as of `replace_file`, for each of them.

    Raises:
        OSError: one of them cannot be written, and all are as they were; or, which is rare, some
            are replaced already.
    """
    written: list[Path] = []
    try:
        for path in paths:
            written.append(unfinished(path))
            with open(written[-1], "wb", opener=_create) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if check is not None:
                check(written[-1])
        for fresh, path in zip(written, paths, strict=True):
            fresh.replace(path)
    except BaseException:
        for fresh in written:
            with suppress(OSError):
                fresh.unlink()
        raise
    for folder in dict.fromkeys(path.parent for path in paths):
        sync_names(folder)


def write_new_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that is not there: whatever happens, it is there whole or not at all.

    Args:
        path: path of the file.
        data: its content.
        mode: its permissions.

    Raises:
        FileExistsError: it is there.
        OSError: it cannot be written.
    """
    with in_turn(path.parent):
        if os.path.lexists(path):
            raise FileExistsError
        replace_file(path, data, lambda fresh: fresh.chmod(mode))


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Wait for other programs of ours that write in the same folder by turns."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sync_names(path: Path) -> None:
    """Sync the names of a folder to the disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _create(path: str, flags: int) -> int:
    """Open a file that its owner alone can read."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
