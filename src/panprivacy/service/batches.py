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

from panprivacy.errors import InputError, PanPrivacyError, without_frames
from panprivacy.programs.counting import Counting
from panprivacy.programs.intake import Checked, Columns, Intake
from panprivacy.service.config.stream import Ids, StreamConfig

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


class Reception:
    """Counts what is sent to one stream: of each all rows or none, and none twice.

    Args:
        config: of the stream.
        counting: its statistics, which tell what is read of each row.
        ids: what comes in place of a user, unless it is what is configured.
    """

    def __init__(self, config: StreamConfig, counting: Counting, *, ids: Ids | None = None) -> None:
        self._ids = ids or config.ids
        self._intake = Intake(config.columns(counting), config.nulls)
        self.batch_ids = BatchIds(config.retries)

    @property
    def columns(self) -> Columns:
        """What is read of each row."""
        return self._intake.columns

    def take(self, counting: Counting, several: Sequence[Sent]) -> list[Outcome]:
        """Count what came at the same time in one pass.

        Args:
            counting: what counts it.
            several: in any order.

        Returns:
            For each, whether it was counted now; False if one of that id was counted before; or
            why it cannot be counted, which keeps none of the others from it.
        """
        checked: list[Checked] = []
        outcomes = [self._accept(counting, sent, checked) for sent in several]
        if checked:
            counting.apply(*checked)
        return outcomes

    def _accept(self, counting: Counting, sent: Sent, accepted: list[Checked]) -> Outcome:
        """Check one of several, and add it to those that are to be counted."""
        name = sent.batch_id
        if name is not None and name in self.batch_ids:
            return False
        try:
            accepted += self.check(counting, sent.batches)
        except Exception as error:  # noqa: BLE001 - for its sender
            return without_frames(error)
        if name is not None:  # before it is counted: what fails in the middle is not counted again
            self.batch_ids.add(name)
        return True

    def check(self, counting: Counting, batches: Sequence[pa.RecordBatch]) -> list[Checked]:
        """All batches checked, for the statistics to count.

        Raises:
            InputError: a row cannot be counted.
        """
        checked: list[Checked] = []
        rows = 0
        for batch in batches:
            kind, whole = batch.schema.types[0], self._ids is Ids.integers
            named = self.columns.user is not None
            # a text among numbers is a mistake of who sends
            if named and not pa.types.is_null(kind) and pa.types.is_integer(kind) != whole:
                wanted = f'{"whole numbers" if whole else "texts"} (ids = "{self._ids}")'
                message = f"the user ids of this stream are {wanted}; send such ids, "
                message += "or change the service"
                raise InputError(message)
            checked.append(self._intake.prepare(counting, batch, rows))
            rows += batch.num_rows
        return checked


def _hash(batch_id: bytes) -> bytes:
    return hashlib.sha256(batch_id).digest()[:ID_BYTES]
