"""The presentation language of TLS, as far as DAP uses it: numbers, byte strings, lists, structs.

Reference: RFC 8446, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from panprivacy.errors import InputError

T = TypeVar("T")


class Source:
    """Bytes that are read from the front.

    Args:
        data: the bytes.
    """

    __slots__ = ("_data", "_place")

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    @property
    def is_empty(self) -> bool:
        """Whether all was read."""
        return self._place == len(self._data)

    def take(self, size: int) -> bytes:
        """So many bytes.

        Raises:
            InputError: there are fewer.
        """
        taken = self._data[self._place : self._place + size]
        if len(taken) < size:
            message = "the message ends too early: it is damaged, or something else"
            raise InputError(message)
        self._place += size
        return taken


class Codec(Protocol[T]):
    """How one kind of value is written, and read again."""

    def write(self, value: T) -> bytes:
        """The bytes of a value."""

    def read(self, source: Source) -> T:
        """The value that comes next.

        Raises:
            InputError: there is none.
        """


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number from 0, of so many bytes, the highest first: `uint8`, `uint64`."""

    size: int

    def write(self, value: int) -> bytes:
        """The bytes of a number."""
        return value.to_bytes(self.size, "big")

    def read(self, source: Source) -> int:
        """The number that comes next."""
        return int.from_bytes(source.take(self.size), "big")


@dataclass(frozen=True, slots=True)
class Fixed:
    """So many bytes: `opaque name[size]`."""

    size: int

    def write(self, value: bytes) -> bytes:
        """The bytes as they are."""
        return value

    def read(self, source: Source) -> bytes:
        """The bytes that come next."""
        return source.take(self.size)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Bytes behind their number, which takes `prefix` bytes: `opaque name<least..2^16-1>`."""

    prefix: int
    least: int = 0

    def write(self, value: bytes) -> bytes:
        """The number of bytes, and the bytes."""
        return len(value).to_bytes(self.prefix, "big") + value

    def read(self, source: Source) -> bytes:
        """The bytes that come next."""
        found = source.take(int.from_bytes(source.take(self.prefix), "big"))
        if len(found) < self.least:
            message = "a part of the message is empty that must not be"
            raise InputError(message)
        return found


@dataclass(frozen=True, slots=True)
class Rest(Generic[T]):
    """As many of something as there are up to the end: `Kind name[message_length]`.

    Args:
        each: how one of them is written.
        most: how many are read; who sends more is refused at the first of these.
    """

    each: Codec[T]
    most: int | None = None

    def write(self, value: tuple[T, ...]) -> bytes:
        """One after the other."""
        return b"".join(map(self.each.write, value))

    def read(self, source: Source) -> tuple[T, ...]:
        """All that come."""
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
        """The string."""
        return self.around.write(self.inner.write(value))

    def read(self, source: Source) -> T:
        """The value in the string that comes next."""
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
        """The parts, one after the other."""
        return b"".join(part.write(each) for part, each in zip(self._parts, value, strict=True))

    def read(self, source: Source) -> T:
        """The struct that comes next."""
        return self._make(*[part.read(source) for part in self._parts])


def decoded(codec: Codec[T], data: bytes) -> T:
    """The one value that is in some bytes.

    Raises:
        InputError: there is none, or more comes after it. The message shows nothing of it.
    """
    source = Source(data)
    found = codec.read(source)
    if not source.is_empty:
        message = "the message goes on behind its end: it is damaged, or something else"
        raise InputError(message)
    return found


UINT8: Final = Number(1)
UINT16: Final = Number(2)
UINT64: Final = Number(8)
