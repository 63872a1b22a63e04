"""The batch of a server: its shares of the sums, the number of reports, and their checksum.

Reference: draft-ietf-ppm-dap-17, "Batch Buckets"; draft-irtf-cfrg-vdaf-18, section 7.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.aggregator.messages import CHECKSUM_BYTES
from panprivacy.devices.vdaf import MODULUS, Prio3Count, aggregate
from panprivacy.errors import InputError

_FRONT: Final = struct.Struct(f"<Q{CHECKSUM_BYTES}s")


class BatchBucket(NamedTuple):
    """A batch bucket.

    Args:
        reports: how many are valid.
        checksum: checksum of their ids.
        shares: shares of the sums, one field element for each answer.
    """

    reports: int
    checksum: bytes
    shares: tuple[int, ...]

    @classmethod
    def empty(cls, answers: int) -> Self:
        """Return a batch without reports."""
        return cls(0, bytes(CHECKSUM_BYTES), (0,) * answers)

    @classmethod
    def of(
        cls, names: Sequence[bytes], outputs: NDArray[np.uint64], accepted: NDArray[np.bool_]
    ) -> Self:
        """Return a batch of some reports.

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

    def combined(self, other: Self) -> Self:
        """Return both together."""
        return self._replace(
            reports=self.reports + other.reports,
            checksum=_either(self.checksum, other.checksum),
            shares=tuple((a + b) % MODULUS for a, b in zip(self.shares, other.shares, strict=True)),
        )

    def __bytes__(self) -> bytes:
        return _FRONT.pack(self.reports, self.checksum) + share_bytes(self.shares)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Return a batch from its stored bytes."""
        reports, checksum = _FRONT.unpack_from(data)
        return cls(reports, checksum, read_shares(data[_FRONT.size :]))


def share_bytes(shares: Sequence[int]) -> bytes:
    """Return shares of sums as VDAF writes them: 8 bytes each, the lowest first."""
    return b"".join(one.to_bytes(Prio3Count.SHARE_BYTES, "little") for one in shares)


def read_shares(data: bytes) -> tuple[int, ...]:
    """Return shares that were written so.

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
    """Return the bits that are set in one of them."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
