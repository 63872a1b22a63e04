"""The queues of a cluster: one for each shard of a stream, and what can go wrong with them."""

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
    """The broker has lost what was sent, and nobody knows whether it was read before."""


class QueueFullError(BrokerError):
    """A queue is full: its shard does not keep up, or is gone. Come again later."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of one shard.

    Args:
        name: of the cluster.
        stream: the stream of the configuration.
        shards: how many there are.
        shard: which this one is, from 0.

    Raises:
        InputError: a name is not of letters, digits, `_` and `-`, or there is no such shard.
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
        """Under which its messages are published."""
        return f"{self.name}.{self.stream}.{self.shards}.{self.shard}"


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """A place in a queue: behind the message of that number.

    Args:
        born: when the queue was created, in nanoseconds.
        sequence: of the message, from 1; 0 before the first.
    """

    born: int
    sequence: int

    def packed(self) -> bytes:
        """As 16 bytes."""
        return _PACKED.pack(self.born, self.sequence)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """What `packed` gave."""
        return cls(*_PACKED.unpack(packed))


START: Final = Position(0, 0)
"""Before all messages, whenever a queue was born."""

END: Final = Position((1 << 64) - 1, 0)
"""Behind all messages."""


def checked(name: str) -> str:
    """A name that can be part of a subject."""
    if not _NAME.fullmatch(name):
        message = "names of clusters and streams have letters, digits, _ and - in a broker"
        raise InputError(message)
    return name
