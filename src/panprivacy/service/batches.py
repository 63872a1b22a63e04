"""What is sent to a stream at once, and which of it came lately: a retry is not counted twice.

A batch id is the sender's, for a batch and not for a person: it stays in the state for as long as
it is among the last so many, and whoever has the state can test whether a batch came. The content
of a batch leaves nothing here, so a retry with other content is not noticed.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from panprivacy.errors import PanPrivacyError

ID_BYTES = 16


class BusyError(PanPrivacyError):
    """The stream does something that takes a while; who can wait calls again with `wait`."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent at once, to be counted whole or not at all.

    Args:
        batches: with the columns of the stream.
        batch_id: of all of them together, if the sender may send them again.
    """

    batches: Sequence[pa.RecordBatch]
    batch_id: bytes | None = None


Outcome = bool | Exception
"""Whether it was counted now, or why it cannot be."""


class BatchIds:
    """The last so many batch ids, by hash.

    Args:
        most: how many are kept; the oldest one makes room.
    """

    __slots__ = ("_hashes", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, batch_id: bytes) -> bool:
        return _hash(batch_id) in self._hashes

    def add(self, batch_id: bytes) -> None:
        """Keep an id that was not there."""
        self._hashes[_hash(batch_id)] = None
        if len(self._hashes) > self._most:
            self._hashes.popitem(last=False)

    @property
    def state_bytes(self) -> int:
        """The size of `packed()`, however many there are."""
        return ID_BYTES * self._most

    def packed(self) -> bytes:
        """All hashes, oldest first, and zeros in place of those that have not come yet."""
        return b"".join(self._hashes).ljust(self.state_bytes, b"\0")

    def unpack(self, packed: bytes) -> None:
        """Take over what `packed` gave."""
        parts = [packed[at : at + ID_BYTES] for at in range(0, len(packed), ID_BYTES)]
        self._hashes = OrderedDict.fromkeys(part for part in parts if any(part))


def _hash(batch_id: bytes) -> bytes:
    return hashlib.sha256(batch_id).digest()[:ID_BYTES]
