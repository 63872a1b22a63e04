"""The queues of a cluster, one for each shard of a stream, and their errors."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final, Self

from panprivacy.errors import InputError, PanPrivacyError

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_PACKED: Final = struct.Struct("<QQ")


class BrokerError(PanPrivacyError):
    """The broker does not answer, or refuses."""


class LostError(BrokerError):
    """The broker has lost a message, and nobody knows whether it was read before."""


class QueueFullError(BrokerError):
    """A queue is full: its shard does not keep up, or is gone. Come again later."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of one shard.

    Args:
        name: the name of the cluster.
        stream: the name of the stream in the configuration.
        shards: number of shards.
        shard: number of this shard, from 0.

    Raises:
        InputError: a name has other characters than letters, digits, `_` and `-`; no such shard.
    """

    name: str
    stream: str
    shards: int
    shard: int

    def __post_init__(self) -> None:
        for name in (self.name, self.stream):
            checked(name)
        if not 0 <= self.shard < self.shards:
            message = f"shard {self.shard} of {self.shards} is none: they are counted from 0"
            raise InputError(message)

    @property
    def subject(self) -> str:
        """Subject under which its messages are published."""
        return f"{self.name}.{self.stream}.{self.shards}.{self.shard}"


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """Position in a queue: after the message of that number.

    Args:
        born: creation time of the queue, in nanoseconds.
        sequence: number of the message, from 1; 0 before the first.
    """

    born: int
    sequence: int

    def packed(self) -> bytes:
        """Return the position as 16 bytes."""
        return _PACKED.pack(self.born, self.sequence)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the position that `packed` encoded."""
        return cls(*_PACKED.unpack(packed))


START: Final = Position(0, 0)
"""Position before all messages, for any creation time of the queue."""

END: Final = Position((1 << 64) - 1, 0)
"""Position after all messages."""


def checked(name: str) -> str:
    """Return the name if it can be part of a subject.

    Raises:
        InputError: it cannot.
    """
    if not _NAME.fullmatch(name):
        message = "names of clusters and streams have letters, digits, _ and - in a broker"
        raise InputError(message)
    return name
