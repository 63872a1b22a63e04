"""What is sent to a stream at once, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from panprivacy.errors import PanPrivacyError


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
