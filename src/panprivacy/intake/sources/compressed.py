"""Compressed files, unpacked as they are read.

Decompressors store the last part of their output, from 32 KiB (gzip) to many MiB. So only files are
unpacked here, which are read to their end at once; a silent pipe would leave that part in memory,
and must be unpacked by another program.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from panprivacy.errors import InputError

START_BYTES = 7
"""Number of bytes that show whether a file is compressed."""

_GZIP = rb"\x1f\x8b(?:[\0-\x1f]|\Z)"
"""Start of gzip; no text continues like this."""

DAMAGE = (
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    pa.ArrowException,
)
"""Errors that decompressors raise."""


_CODINGS = ("gzip", "zstd")
"""Content codings that bodies may have."""


@dataclass(frozen=True)
class Packing:
    """A format of compressed files.

    Args:
        name: name of the format.
        command: unpacks a file to standard output.
        open: opens the content of a compressed file.
    """

    name: str
    command: str
    open: Callable[[BinaryIO], Any]

    @property
    def advice(self) -> str:
        """Description of the format, and how to read it through a pipe."""
        command = f"{self.command} FILE | panprivacy run - ..."
        body = f"; of a body, Content-Encoding: {self.name} says so" * (self.name in _CODINGS)
        return f"this is {self.name}; decompress it on the way: {command}{body}"


def _open_zstd(file: BinaryIO) -> pa.NativeFile:
    """Open a second descriptor: pyarrow closes its input."""
    again = io.FileIO(os.dup(file.fileno()))
    return pa.CompressedInputStream(pa.PythonFile(again, mode="r"), "zstd")


def _open_zip(file: BinaryIO) -> Any:
    """Open the only file of an archive.

    Raises:
        InputError: there are several, or none.
    """
    archive = zipfile.ZipFile(file)
    return archive.open(_only_member(archive))


def _only_named(name: str, command: str) -> Packing:
    """Return a format that is recognised and not unpacked: a file is refused as what it is."""

    def refuse(_: BinaryIO) -> Any:
        raise InputError(packing.advice)

    packing = Packing(name, command, refuse)
    return packing


def member_name(path: str) -> str | None:
    """Return the name of the only file of a zip; None if the path is no sound zip file.

    Raises:
        InputError: it holds several files, or none.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - a pipe would block
        return None
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE:
        return None
    with archive:
        return _only_member(archive).filename


def _only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [one for one in archive.infolist() if not one.is_dir()]
    if len(members) != 1:
        message = f"this zip holds {len(members):,} files: unpack it, and read them one by one"
        raise InputError(message)
    return members[0]


_PACKINGS = {
    _GZIP: Packing("gzip", "gzip -dc", lambda file: gzip.GzipFile(fileobj=file)),
    rb"\x28\xb5\x2f\xfd": Packing("zstd", "zstd -dc", _open_zstd),
    rb"\xfd7zXZ\0": Packing("xz", "xz -dc", lzma.LZMAFile),
    rb"BZh[1-9]1AY": Packing("bzip2", "bzip2 -dc", bz2.BZ2File),
    rb"PK\x03\x04": Packing("zip", "unzip -p", _open_zip),
    rb"\x04\x22\x4d\x18": _only_named("lz4", "lz4 -dc"),
    rb"7z\xbc\xaf\x27\x1c": _only_named("7z", "7z x -so"),
    rb"\x1f\x9d": _only_named("compress", "uncompress -c"),
    rb"LZIP\x01": _only_named("lzip", "lzip -dc"),
    rb"\x5d\0\0": _only_named("lzma", "xz --format=lzma -dc"),
}

ZIP = ".zip"
EXTENSIONS = (
    *(".gz", ".zst", ".zstd", ".xz", ".bz2", ZIP),
    *(".lz4", ".7z", ".z", ".lz", ".lzma"),
)


def packing_of(start: bytes) -> Packing | None:
    """Return the format of a compressed file with this start; None if it is not compressed."""
    found = (one for signature, one in _PACKINGS.items() if re.match(signature, start))
    return next(found, None)
