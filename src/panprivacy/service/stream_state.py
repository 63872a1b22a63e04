"""The state of a stream as bytes: what it has of its own, before the state of its window."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from panprivacy.errors import InputError
from panprivacy.service.outgoing import announcements, payment

FORMAT = 2
"""Of the states of streams; those of 1 have no place for releases that wait."""
_UNTIL = struct.Struct("<q")
OWN_BYTES = _UNTIL.size + payment.PACKED_BYTES + announcements.PACKED_BYTES
"""Of what is there whatever is counted; releases that wait and the names of batches follow."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """What a state is made of.

    Args:
        holds_until: until when it holds all that was counted.
        paid: of `Payment`.
        seen: of `Announcements`.
        waiting: of `Outbox`.
        names: of `BatchIds`.
        inner: of `Windowed`.
    """

    holds_until: datetime
    paid: bytes
    seen: bytes
    waiting: bytes
    names: bytes
    inner: bytes

    @classmethod
    def of(cls, own: bytes, inner: bytes, waiting_bytes: int) -> StreamState:
        """One, taken apart.

        Args:
            own: what `packed` gave.
            inner: of `Windowed`.
            waiting_bytes: the size of what `Outbox` gave.

        Raises:
            InputError: it is damaged.
        """
        try:
            (second,) = _UNTIL.unpack(own[: _UNTIL.size])
            holds_until = datetime.fromtimestamp(second, UTC)
        except (ValueError, OverflowError, OSError):
            message = "the state is damaged: no checkpoint was written then"
            raise InputError(message) from None
        paid = _UNTIL.size + payment.PACKED_BYTES
        names = OWN_BYTES + waiting_bytes
        seen, waiting = own[paid:OWN_BYTES], own[OWN_BYTES:names]
        return cls(holds_until, own[_UNTIL.size : paid], seen, waiting, own[names:], inner)


def packed(holds_until: int, paid: bytes, seen: bytes, waiting: bytes, names: bytes) -> bytes:
    """What a state has of its own.

    Args:
        holds_until: in seconds since 1970.
        paid: of `Payment`.
        seen: of `Announcements`.
        waiting: of `Outbox`.
        names: of `BatchIds`.
    """
    return _UNTIL.pack(holds_until) + paid + seen + waiting + names
