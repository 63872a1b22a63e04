"""Record of the coordinator: windows, and releases in progress.

All of it is public, so it is stored beside the sealed states as JSON. A release is recorded before
any shard is asked to contribute to it, and stays in the file until all shards have forgotten their
contributions: so a coordinator that continues from the file requests the same contributions again,
and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Final

import msgspec

from panprivacy.cluster.queues import Position
from panprivacy.cluster.routing import Router
from panprivacy.errors import PlanError
from panprivacy.ground.files import read_at_most, replace_file
from panprivacy.service.outgoing.records import Published, SketchRow

_MOST_BYTES: Final = 1 << 26
_VERSION: Final = 2


class Cut(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A release in progress.

    Args:
        window: start of the counting of the window, in seconds since 1970.
        ends: end of the window.
        until: end of the counting that is released.
        number: number of the release within its window, from 1.
        last: whether the window ends with it.
        next_start: start of the next window, if `last`.
        complete: whether the window was counted from its start to its end, as far as is known.
        made: time at which it was recorded.
        payer: identifies the payer of its line in the ledger.
        through: for each shard, the creation time of its queue and the number of the last message
            that belongs to the release; empty until the queues have been marked.
        held: shards that may have a contribution to it that they have not forgotten.
        announced: number of intrusions announced to the window before the release, if others were
            announced since; else None.
        answers: the answers to publish, from the drawing of the noise until the release is over.
        tables: the tables to publish beside them.
        over: whether it was published, or is lost.
    """

    window: float
    ends: float
    until: float
    number: int
    last: bool
    next_start: float
    complete: bool
    made: float
    payer: str
    held: list[int]
    through: list[tuple[int, int]] = []
    announced: int | None = None
    answers: list[Published] | None = None
    tables: list[SketchRow] = []
    over: bool = False

    @property
    def name(self) -> tuple[float, int]:
        """Identifier of the release, unique within the stream."""
        return self.window, self.number

    def position(self, shard: int) -> Position:
        """Return the position of the cut in the queue of a shard."""
        return Position(*self.through[shard])


class StreamRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Record of one stream.

    Args:
        window: start of the counting of the current window.
        ends: end of the current window.
        number: number of its next release.
        last_release: time of the last release, or of the start.
        cuts: releases in progress, the oldest first.
        paid: the packed `Payment`, in hexadecimal digits.
    """

    window: float
    ends: float
    number: int = 1
    last_release: float
    cuts: list[Cut] = []
    paid: str = ""


class ClusterRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Record of the cluster.

    Args:
        shards: number of shards.
        key: the key of the routing, in hexadecimal digits.
        streams: the records of the streams, by name.
        names: sealed names of the batches counted before the number of shards changed, by stream;
            empty once the current shards have them in their states.
        version: version of this format.
    """

    shards: int
    key: str
    streams: dict[str, StreamRecord]
    names: dict[str, bytes] = {}
    version: int = _VERSION

    def router(self, *, numbered: bool) -> Router:
        """Return the router of a stream; `numbered` says whether its ids number users."""
        return Router(self.shards, bytes.fromhex(self.key), numbered=numbered)


class RecordFile:
    """A record stored on the disk; thread-safe.

    Args:
        path: path of the file.
        record: the record to store from now on.
    """

    def __init__(self, path: Path, record: ClusterRecord) -> None:
        self._path, self.record = path, record
        self._lock, self._written = RLock(), False

    @classmethod
    def load(cls, path: Path) -> RecordFile | None:
        """Load the record of a file; None if there is no file.

        Raises:
            PlanError: the file is damaged, or of another version.
        """
        try:
            record = msgspec.json.decode(read_at_most(path, _MOST_BYTES), type=ClusterRecord)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            record = None
        if record is None or record.version != _VERSION:
            message = f"{path.name} is damaged, or of another version: put it back as it was, or "
            message += "begin anew with panprivacy cluster --fresh"
            raise PlanError(message)
        return cls(path, record)

    @contextmanager
    def changing(self) -> Iterator[ClusterRecord]:
        """Change the record, and write it to the disk when the block ends.

        Raises:
            OSError: it cannot be written. The record in memory has changed: write it again.
        """
        with self._lock:
            self._written = False
            yield self.record
            self.write()

    @contextmanager
    def reading(self) -> Iterator[ClusterRecord]:
        """Hold the record unchanged during the block."""
        with self._lock:
            yield self.record

    def write(self) -> None:
        """Write the record to the disk, unless it is there.

        Raises:
            OSError: it cannot be written.
        """
        with self._lock:
            if not self._written:
                replace_file(self._path, msgspec.json.format(msgspec.json.encode(self.record)))
                self._written = True


def utc(moment: float) -> datetime:
    """Return a time of the record as a UTC datetime."""
    return datetime.fromtimestamp(moment, UTC)
