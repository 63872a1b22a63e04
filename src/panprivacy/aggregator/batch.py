"""What a server adds up: its shares of the sums, of how many reports, and a checksum of which.

Reference: draft-ietf-ppm-dap-17, "Batch Buckets"; draft-irtf-cfrg-vdaf-18, section 7.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from panprivacy.aggregator.messages import CHECKSUM_BYTES
from panprivacy.errors import InputError
from panprivacy.vdaf import MODULUS, Prio3Count, aggregate

_FRONT: Final = struct.Struct(f"<Q{CHECKSUM_BYTES}s")


class BatchBucket(NamedTuple):
    """A batch bucket.

    Args:
        reports: how many are valid.
        checksum: of their ids.
        shares: of the sums, one field element for each answer.
    """

    reports: int
    checksum: bytes
    shares: tuple[int, ...]

    @classmethod
    def empty(cls, answers: int) -> Self:
        """One without reports."""
        return cls(0, bytes(CHECKSUM_BYTES), (0,) * answers)

    @classmethod
    def of(
        cls, names: Sequence[bytes], outputs: NDArray[np.uint64], accepted: NDArray[np.bool_]
    ) -> Self:
        """One of some reports.

        Args:
            names: their ids.
            outputs: this server's shares, of shape (reports, answers).
            accepted: which of them are valid.
        """
        shares = tuple(aggregate(one, accepted) for one in outputs.T)
        found = cls(0, bytes(CHECKSUM_BYTES), shares)
        for name in (one for one, valid in zip(names, accepted, strict=True) if valid):
            found = found._replace(
                reports=found.reports + 1, checksum=_either(found.checksum, sha256(name).digest())
            )
        return found

    def joined(self, other: Self) -> Self:
        """Both together."""
        return self._replace(
            reports=self.reports + other.reports,
            checksum=_either(self.checksum, other.checksum),
            shares=tuple((a + b) % MODULUS for a, b in zip(self.shares, other.shares, strict=True)),
        )

    def __bytes__(self) -> bytes:
        return _FRONT.pack(self.reports, self.checksum) + share_bytes(self.shares)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """One that was kept."""
        reports, checksum = _FRONT.unpack_from(data)
        return cls(reports, checksum, read_shares(data[_FRONT.size :]))


def share_bytes(shares: Sequence[int]) -> bytes:
    """Shares of sums as VDAF writes them: 8 bytes each, the lowest first."""
    return b"".join(one.to_bytes(Prio3Count.SHARE_BYTES, "little") for one in shares)


def read_shares(data: bytes) -> tuple[int, ...]:
    """Shares that were written so.

    Raises:
        InputError: a number is no field element, or its bytes are too few.
    """
    pieces = range(0, len(data), Prio3Count.SHARE_BYTES)
    found = tuple(int.from_bytes(data[at : at + Prio3Count.SHARE_BYTES], "little") for at in pieces)
    if len(data) % Prio3Count.SHARE_BYTES or any(one >= MODULUS for one in found):
        message = "these are no shares of sums: they are damaged"
        raise InputError(message)
    return found


def _either(one: bytes, other: bytes) -> bytes:
    """The bits that are set in one of them."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
