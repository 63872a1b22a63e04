"""Marks: public messages in the queues that show where a release is cut.

The coordinator puts one mark into each queue of a stream. A shard counts the messages before the
mark, and continues after it once it has contributed. So a row belongs to the window in which the
broker took it, regardless of crashes and of how late a shard learns of the cut.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import Sealed
from panprivacy.cluster.queues import Position, Queue, QueueFullError

_MARK: Final = struct.Struct("<16sdQ")
"""Layout of a mark; shorter than any envelope."""
_MAGIC: Final = b"panprivacy mark\0"

WindowRelease = tuple[float, int]
"""Start of the window of a release, and the number of the release within the window."""

Message = tuple[Position, Sealed]
"""A message of a queue, with the position after it."""


def packed_mark(release: WindowRelease) -> bytes:
    """Return the message that marks a cut; the same for the same release."""
    return _MARK.pack(_MAGIC, *release)


def read_mark(message: Sealed) -> WindowRelease | None:
    """Return the release that a message marks; None if it is no mark."""
    if len(message) != _MARK.size or bytes(message[: len(_MAGIC)]) != _MAGIC:
        return None
    _, window, number = _MARK.unpack(message)
    return window, number


def before_mark(messages: Sequence[Message], release: WindowRelease) -> tuple[list[Message], bool]:
    """Return the messages before the mark of a release, and whether the mark is among them."""
    found = list(takewhile(lambda one: read_mark(one[1]) != release, messages))
    return found, len(found) < len(messages)


def put_marks(broker: Broker, queues: Iterable[Queue], release: WindowRelease) -> list[Position]:
    """Mark the cut of a release in each queue; repeating it within two minutes adds nothing.

    A full queue takes no mark. Its cut is its current end: a shard that counts beyond the cut
    before it learns of it reports that, see `ShardStream.contribute`.

    Returns:
        For each queue, the position after the last message before the mark.

    Raises:
        BrokerError: the broker does not answer. Call again.
    """
    message, each = packed_mark(release), list(queues)
    try:
        placed = broker.publish([(queue, message) for queue in each])
    except QueueFullError:
        return [_cut_of(broker, queue, message) for queue in each]
    return [_before(position) for position in placed]


def _cut_of(broker: Broker, queue: Queue, message: bytes) -> Position:
    """Mark the cut in one queue unless it is full; return the position of the cut."""
    try:
        (position,) = broker.publish([(queue, message)])
    except QueueFullError:
        return broker.last(queue)
    return _before(position)


def _before(position: Position) -> Position:
    return Position(position.born, position.sequence - 1)
