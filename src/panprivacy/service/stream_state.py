"""The state of a stream as bytes: what it has of its own, before the state of its window."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from panprivacy.errors import InputError
from panprivacy.service.outgoing import announcements, payment

_UNTIL = struct.Struct("<q")
OWN_BYTES = _UNTIL.size + payment.PACKED_BYTES + announcements.PACKED_BYTES
"""Of what is there whatever is counted; the names of batches follow."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """What a state is made of.

    Args:
        holds_until: until when it holds all that was counted.
        paid: of `Payment`.
        seen: of `Announcements`.
        names: of `BatchIds`.
        inner: of `Windowed`.
    """

    holds_until: datetime
    paid: bytes
    seen: bytes
    names: bytes
    inner: bytes

    @classmethod
    def of(cls, own: bytes, inner: bytes) -> StreamState:
        """One, taken apart.

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
        return cls(
            holds_until, own[_UNTIL.size : paid], own[paid:OWN_BYTES], own[OWN_BYTES:], inner
        )


def packed(holds_until: int, paid: bytes, seen: bytes, names: bytes) -> bytes:
    """What a state has of its own.

    Args:
        holds_until: in seconds since 1970.
        paid: of `Payment`.
        seen: of `Announcements`.
        names: of `BatchIds`.
    """
    return _UNTIL.pack(holds_until) + paid + seen + names
