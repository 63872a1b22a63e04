"""Requests to a stream, and the ids of the recent ones: a retry is not counted twice.

A batch id is the sender's, for a batch and not for a person. It stays in the state while it is one
of the last `most`, and a reader of the state can test whether a batch came. The content of a batch
leaves nothing here, so a retry with other content is not noticed.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from panprivacy.errors import InputError, PanPrivacyError, without_frames
from panprivacy.ground.room import check_room
from panprivacy.intake.programs.counting import Counting
from panprivacy.intake.programs.intake import Checked, Columns, Intake
from panprivacy.service.config.stream import IdKind, StreamConfig

ID_BYTES = 16
_ROOM: Final = 8 << 20
"""Bytes for counting, which takes a few KiB however many rows there are, and for its answer."""


class BusyError(PanPrivacyError):
    """The stream is busy for a while; a caller that can wait calls again with `wait`."""


class HalvedError(PanPrivacyError):
    """A batch that was counted in part, as memory ran out meanwhile."""

    def __init__(self) -> None:
        super().__init__(
            "memory ran out while this was counted: a part of it may be in the answer, and the "
            "window is not complete; do not send it again"
        )


@dataclass(frozen=True, slots=True)
class Submission:
    """One request: its rows are counted together or not at all.

    Args:
        batches: with the columns of the stream.
        batch_id: the id of all of them together, if the sender may retry.
    """

    batches: Sequence[pa.RecordBatch]
    batch_id: bytes | None = None


Outcome = bool | Exception
"""Whether it was counted now, or why it cannot be."""


class BatchIds:
    """The most recent batch ids, by hash.

    Args:
        most: the number of stored ids; the oldest one makes room.
    """

    __slots__ = ("_hashes", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, batch_id: bytes) -> bool:
        return _hash(batch_id) in self._hashes

    def add(self, batch_id: bytes) -> bytes | None:
        """Store a new id, and return the hash of the one that made room for it, if one did."""
        self._hashes[_hash(batch_id)] = None
        if len(self._hashes) > self._most:
            return self._hashes.popitem(last=False)[0]
        return None

    def remove(self, batch_id: bytes, oldest: bytes | None) -> None:
        """Undo the last `add`, which returned `oldest`."""
        self._hashes.pop(_hash(batch_id), None)
        if oldest is not None:
            self._hashes[oldest] = None
            self._hashes.move_to_end(oldest, last=False)

    @property
    def state_bytes(self) -> int:
        """Size of `packed()`, whatever the number of ids."""
        return ID_BYTES * self._most

    def packed(self) -> bytes:
        """Return all hashes, oldest first, padded with zeros to the size."""
        return b"".join(self._hashes).ljust(self.state_bytes, b"\0")

    def unpack(self, packed: bytes) -> None:
        """Load the result of `packed`."""
        parts = [packed[at : at + ID_BYTES] for at in range(0, len(packed), ID_BYTES)]
        self._hashes = OrderedDict.fromkeys(part for part in parts if any(part))


class Reception:
    """Counts the requests to one stream: of each all rows or none, and none twice.

    Args:
        config: the configuration of the stream.
        counting: its statistics, which determine the columns that are read.
        ids: the form of user ids, if it is not the configured one.
    """

    def __init__(
        self, config: StreamConfig, counting: Counting, *, ids: IdKind | None = None
    ) -> None:
        self._ids = ids or config.ids
        self._intake = Intake(config.columns(counting), config.nulls)
        self.batch_ids = BatchIds(config.retries)
        self._halved: frozenset[bytes] = frozenset()

    @property
    def columns(self) -> Columns:
        """Columns that are read from each row."""
        return self._intake.columns

    def take(self, counting: Counting, several: Sequence[Submission]) -> list[Outcome]:
        """Count simultaneous requests in one pass.

        Args:
            counting: the statistics that count it.
            several: in any order.

        Returns:
            For each, whether it was counted now; False if one with its id was counted before; or
            the error why it cannot be counted, which does not affect the others.

        Raises:
            MemoryError: there is too little memory to count them. Nothing was counted.
            HalvedError: memory ran out while they were counted. A part of them was counted.
        """
        checked: list[Checked] = []
        added: list[tuple[bytes, bytes | None]] = []
        try:
            outcomes = [self._accept(counting, sent, checked, added) for sent in several]
            if checked:
                check_room(_ROOM)
        except BaseException:  # none of them was counted
            for name, oldest in reversed(added):
                self.batch_ids.remove(name, oldest)
            raise
        if checked:  # a batch that fails halfway is not counted again: its id is stored
            try:
                counting.internals.memory.apply(*checked)
            except MemoryError:
                self._halved |= {_hash(name) for name, _ in added}
                raise HalvedError from None
        return outcomes

    def _accept(
        self,
        counting: Counting,
        sent: Submission,
        accepted: list[Checked],
        added: list[tuple[bytes, bytes | None]],
    ) -> Outcome:
        """Check one request, and add it to those that are to be counted; store its id."""
        name = sent.batch_id
        if name is not None and name in self.batch_ids:
            return HalvedError() if _hash(name) in self._halved else False
        try:
            accepted += self.check(counting, sent.batches)
        except MemoryError:  # none of them is counted
            raise
        except Exception as error:  # noqa: BLE001 - for its sender
            return without_frames(error)
        if name is not None:
            added.append((name, self.batch_ids.add(name)))
        return True

    def check(self, counting: Counting, batches: Sequence[pa.RecordBatch]) -> list[Checked]:
        """Return all batches checked, for the statistics to count.

        Raises:
            InputError: a row cannot be counted.
        """
        checked: list[Checked] = []
        rows = 0
        for batch in batches:
            kind, whole = batch.schema.types[0], self._ids is IdKind.integers
            named = self.columns.user is not None and not self.columns.holds_values
            # a text among numbers is a mistake of the sender
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
