"""Find the states in a file, without reading what is in their tables."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from panprivacy.errors import InputError
from panprivacy.explain.description import Description
from panprivacy.explain.parameters import describe
from panprivacy.sealing import FRONT_BYTES, is_sealed, unseal
from panprivacy.statistics.header import Header, read_header
from panprivacy.statistics.resuming import OWN_BYTES


@dataclass(frozen=True, slots=True)
class Alike:
    """States that stand one after another and have the same front.

    Args:
        first: place of the first one in the file, counting from 1.
        last: place of the last one.
        description: of each.
    """

    first: int
    last: int
    description: Description

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


def read_states(path: Path, identity: Path | None = None) -> list[Alike]:
    """Describe the states that a file holds, one after another.

    Only their public fronts are read, without a buffer that would take in what follows; a sealed
    file has to be opened whole.

    Args:
        path: of the file.
        identity: a file with the age identities that may open it, if it is sealed.

    Raises:
        InputError: a file cannot be read, cannot be opened, or holds anything else. No message
            shows what a file holds.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            message = "a state is read from a file, and this is none"
            raise InputError(message)
        with path.open("rb", buffering=0) as stream:
            if is_sealed(stream.read(FRONT_BYTES)):
                return _grouped(_headers(_opened(stream, identity)))
            return _grouped(_headers(stream))
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise InputError(message) from None


def _headers(stream: BinaryIO) -> Iterator[Header]:
    """The front of each state, in turn; of those that hold others, the fronts of these."""
    size = stream.seek(0, os.SEEK_END)
    start, place = 0, 1
    while start < size or place == 1:
        try:
            header = _header_at(stream, start, size)
            held_after = _held_after(header)
        except InputError as error:
            where = f"after state {place - 1:,} of the file: " if place > 1 else ""
            raise InputError(where + error.reason) from None
        if held_after is None:
            yield header
            place += 1
        start += header.state_bytes if held_after is None else held_after


def _held_after(header: Header) -> int | None:
    """After how many bytes the first state within this one begins; None if it holds none."""
    own_bytes = header.public().get(OWN_BYTES)
    if own_bytes is None:
        return None
    if type(own_bytes) is not int or not 0 <= own_bytes <= header.body_bytes:
        message = "the state is damaged: its public parameters do not go together"
        raise InputError(message)
    return header.front_bytes + own_bytes


def _header_at(stream: BinaryIO, start: int, size: int) -> Header:
    """The front of the state that begins at `start`, in a file of so many bytes."""
    stream.seek(start)
    header = read_header(stream)
    if start + header.state_bytes > size:
        message = "the state is cut off"
        raise InputError(message)
    return header


def _opened(stream: BinaryIO, identity: Path | None) -> BinaryIO:
    """What a sealed file holds."""
    if identity is None:
        message = (
            "the file is sealed (encrypted with age): nothing in it can be read without the "
            "identity, which is kept elsewhere; where it is, name it with identity="
        )
        raise InputError(message)
    stream.seek(0)
    return io.BytesIO(unseal(stream.read(), identity))


def _grouped(headers: Iterable[Header]) -> list[Alike]:
    """One description for each run of equal headers."""
    found: list[Alike] = []
    before = None
    for place, header in enumerate(headers, start=1):
        if header == before:
            found[-1] = Alike(found[-1].first, place, found[-1].description)
        else:
            found.append(Alike(place, place, describe(header)))
        before = header
    return found
