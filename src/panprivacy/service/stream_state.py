"""The state of a stream as bytes: its own part, before the state of its window."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from panprivacy.errors import InputError
from panprivacy.service.outgoing import announcements, payment

FORMAT = 2
"""Format number of the states of streams; format 1 has no room for releases that wait."""
_UNTIL = struct.Struct("<q")
OWN_BYTES = _UNTIL.size + payment.PACKED_BYTES + announcements.PACKED_BYTES
"""Size of the fixed part of a state; releases that wait and the batch ids follow."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """The parts of a state.

    Args:
        holds_until: the time until which it contains all counted rows.
        paid: the part of `Payment`.
        seen: the part of `Announcements`.
        waiting: the part of `Outbox`.
        names: the part of `BatchIds`.
        inner: the part of `Windowed`.
    """

    holds_until: datetime
    paid: bytes
    seen: bytes
    waiting: bytes
    names: bytes
    inner: bytes

    @classmethod
    def of(cls, own: bytes, inner: bytes, waiting_bytes: int) -> StreamState:
        """Return the parts of a state.

        Args:
            own: a result of `packed`.
            inner: the part of `Windowed`.
            waiting_bytes: the size of the part of `Outbox`.

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
    """Return the stream's own part of a state.

    Args:
        holds_until: in seconds since 1970.
        paid: the part of `Payment`.
        seen: the part of `Announcements`.
        waiting: the part of `Outbox`.
        names: the part of `BatchIds`.
    """
    return _UNTIL.pack(holds_until) + paid + seen + waiting + names
