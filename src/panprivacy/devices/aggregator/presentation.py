"""The presentation language of TLS, as far as DAP uses it: numbers, byte strings, lists, structs.

Reference: RFC 8446, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from panprivacy.errors import InputError

T = TypeVar("T")


class ByteReader:
    """Bytes that are read from the front.

    Args:
        data: the bytes.
    """

    __slots__ = ("_data", "_place")

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    @property
    def is_empty(self) -> bool:
        """Whether all bytes were read."""
        return self._place == len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes.

        Raises:
            InputError: fewer remain.
        """
        taken = self._data[self._place : self._place + size]
        if len(taken) < size:
            message = "the message ends too early: it is damaged, or something else"
            raise InputError(message)
        self._place += size
        return taken


class Codec(Protocol[T]):
    """The writer and reader of one kind of value."""

    def write(self, value: T) -> bytes:
        """Return the bytes of a value."""

    def read(self, source: ByteReader) -> T:
        """Return the value that comes next.

        Raises:
            InputError: there is none.
        """


@dataclass(frozen=True, slots=True)
class UnsignedInteger:
    """A whole number from 0, of a fixed number of bytes, the highest first: `uint8`, `uint64`."""

    size: int

    def write(self, value: int) -> bytes:
        """Return the bytes of a number."""
        return value.to_bytes(self.size, "big")

    def read(self, source: ByteReader) -> int:
        """Return the number that comes next."""
        return int.from_bytes(source.take(self.size), "big")


@dataclass(frozen=True, slots=True)
class Fixed:
    """A string of fixed length: `opaque name[size]`."""

    size: int

    def write(self, value: bytes) -> bytes:
        """Return the bytes as they are."""
        return value

    def read(self, source: ByteReader) -> bytes:
        """Return the bytes that come next."""
        return source.take(self.size)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Bytes behind their number, which takes `prefix` bytes: `opaque name<least..2^16-1>`."""

    prefix: int
    least: int = 0

    def write(self, value: bytes) -> bytes:
        """Return the number of bytes, and the bytes."""
        return len(value).to_bytes(self.prefix, "big") + value

    def read(self, source: ByteReader) -> bytes:
        """Return the bytes that come next."""
        found = source.take(int.from_bytes(source.take(self.prefix), "big"))
        if len(found) < self.least:
            message = "a part of the message is empty that must not be"
            raise InputError(message)
        return found


@dataclass(frozen=True, slots=True)
class Rest(Generic[T]):
    """Repeated values up to the end: `Kind name[message_length]`.

    Args:
        each: how one of them is written.
        most: maximum number of values; a message with more is refused at the first of these.
    """

    each: Codec[T]
    most: int | None = None

    def write(self, value: tuple[T, ...]) -> bytes:
        """Return the values one after the other."""
        return b"".join(map(self.each.write, value))

    def read(self, source: ByteReader) -> tuple[T, ...]:
        """Return all values up to the end."""
        found = list[T]()
        while not source.is_empty:
            if len(found) == self.most:
                message = f"a message has at most {self.most:,} parts: send the others in another"
                raise InputError(message)
            found.append(self.each.read(source))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Within(Generic[T]):
    """A value in an opaque string, which it fills."""

    around: Opaque
    inner: Codec[T]

    def write(self, value: T) -> bytes:
        """Return the string."""
        return self.around.write(self.inner.write(value))

    def read(self, source: ByteReader) -> T:
        """Return the value in the string that comes next."""
        return decoded(self.inner, self.around.read(source))


class Struct(Generic[T]):
    """A named tuple, part after part.

    Args:
        make: the named tuple.
        parts: how each of its fields is written.
    """

    __slots__ = ("_make", "_parts")

    def __init__(self, make: Callable[..., T], *parts: Codec[Any]) -> None:
        self._make, self._parts = make, parts

    def write(self, value: Any) -> bytes:
        """Return the parts, one after the other."""
        return b"".join(part.write(each) for part, each in zip(self._parts, value, strict=True))

    def read(self, source: ByteReader) -> T:
        """Return the struct that comes next."""
        return self._make(*[part.read(source) for part in self._parts])


def decoded(codec: Codec[T], data: bytes) -> T:
    """Return the one value that is in some bytes.

    Raises:
        InputError: there is none, or more comes after it. The message shows nothing of it.
    """
    source = ByteReader(data)
    found = codec.read(source)
    if not source.is_empty:
        message = "the message goes on behind its end: it is damaged, or something else"
        raise InputError(message)
    return found


UINT8: Final = UnsignedInteger(1)
UINT16: Final = UnsignedInteger(2)
UINT64: Final = UnsignedInteger(8)
