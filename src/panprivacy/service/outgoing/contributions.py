"""Output of a window in place of an answer: a sealed contribution, for `panprivacy merge`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from panprivacy.ground.files import replace_file
from panprivacy.ground.sealing import seal
from panprivacy.intake.programs.counting import Counting
from panprivacy.service.outgoing.records import StoreError

NOTE = "sealed as a contribution, for panprivacy merge"
"""Note in the release store, in place of a number."""

_CHUNK_BYTES, _TAG_BYTES = 1 << 16, 16
"""Bytes that age seals at a time, and bytes that it adds to each."""
_HEAD_BYTES = 1_024
"""Maximum size of the header that age writes, with a random line in it."""


@dataclass(frozen=True, slots=True)
class StreamContributions:
    """Files for the contributions of a stream.

    Args:
        folder: the folder of the files.
        stream: name of the stream.
        recipient: a public key of age, whose private half is not on this machine.
    """

    folder: Path
    stream: str
    recipient: str

    def of(self, began: datetime) -> Path:
        """Return the file of the window whose counting began then; no two windows have the same."""
        moment = began.astimezone(UTC)
        second = f"{moment:%Y-%m-%dT%H-%M-%S}"
        part = f".{moment:%f}" if moment.microsecond else ""
        return self.folder / f"{self.stream}-{second}{part}Z.part"

    def sealed(self, counting: Counting, *, complete: bool) -> bytes:
        """Return the sealed contribution of a window and end its counting; it was paid for before.

        Args:
            counting: the statistics of the window.
            complete: whether the window was counted from its start to its end.
        """
        parts = counting.internals.contributions.parts("sums")
        packed = b"".join(part.under(complete=complete).packed() for part in parts)
        return seal(packed, self.recipient)

    def most_bytes(self, counting: Counting) -> int:
        """Return the maximum size of the result of `sealed`; the statistics are wiped.

        Args:
            counting: statistics of the plan, which count nothing.
        """
        plain = sum(
            len(part.under(complete=False).packed())
            for part in counting.internals.contributions.parts("sums")
        )
        counting.forget()
        return plain + _TAG_BYTES * (plain // _CHUNK_BYTES + 1) + _HEAD_BYTES

    def write(self, began: datetime, sealed: bytes) -> None:
        """Write a contribution to the disk before this returns.

        Raises:
            StoreError: it cannot be written now; try again.
        """
        try:
            replace_file(self.of(began), sealed)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            message = f"a contribution cannot be written: {reason}"
            raise StoreError(message) from None
