"""What the coordinator must not forget: windows, and releases that are under way.

All of it is public, so it lies beside the sealed states as JSON. A release is written down before
any shard is asked to contribute to it, and is in the file until all of them have forgotten what
they contributed: so whoever goes on from the file asks for the same again, and loses nothing.
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
from panprivacy.files import read_at_most, replace_file
from panprivacy.service.outgoing.records import Published

_MOST_BYTES: Final = 1 << 26
_VERSION: Final = 2


class Cut(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A release that is under way.

    Args:
        window: when the window began to be counted, in seconds since 1970.
        ends: when the window ends.
        until: when the counting ended that is released.
        number: of the release within its window, from 1.
        last: whether the window ends with it.
        next_start: when the window begins that follows then.
        complete: whether the window was counted from its start to its end, as far as is known.
        made: when it was written down.
        payer: by whom its line in the ledger is known.
        through: of each shard, the birth of its queue and the last message that belongs to it; none
            until the queues have been marked.
        held: which shards may have a contribution to it that they have not forgotten.
        announced: how many intrusions were announced to the window before it, where others were
            since; None if none was.
        answers: what is to be published, from when noise was drawn until it is over.
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
    over: bool = False

    @property
    def name(self) -> tuple[float, int]:
        """What no other release of the stream is called."""
        return self.window, self.number

    def position(self, shard: int) -> Position:
        """How far the queue of a shard was."""
        return Position(*self.through[shard])


class StreamRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of one stream.

    Args:
        window: when the current window began to be counted.
        ends: when it ends.
        number: of its next release.
        last_release: when it released last, or began.
        cuts: releases that are under way, the oldest first.
        paid: of `Payment`, in hexadecimal digits.
    """

    window: float
    ends: float
    number: int = 1
    last_release: float
    cuts: list[Cut] = []
    paid: str = ""


class ClusterRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of the cluster.

    Args:
        shards: how many there are.
        key: of the routing, in hexadecimal digits.
        streams: by name.
        names: of the batches that shards of another number have counted, sealed, by stream; none
            once the shards of now have them in their states.
        version: of this format.
    """

    shards: int
    key: str
    streams: dict[str, StreamRecord]
    names: dict[str, bytes] = {}
    version: int = _VERSION

    def router(self, *, numbered: bool) -> Router:
        """Of a stream whose ids number users, or do not."""
        return Router(self.shards, bytes.fromhex(self.key), numbered=numbered)


class RecordFile:
    """A record that is on the disk; safe for several threads.

    Args:
        path: of the file.
        record: what it holds from now on.
    """

    def __init__(self, path: Path, record: ClusterRecord) -> None:
        self._path, self.record = path, record
        self._lock, self._written = RLock(), False

    @classmethod
    def load(cls, path: Path) -> RecordFile | None:
        """The record of a file; None if there is no file.

        Raises:
            PlanError: it is damaged, or of another version.
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
        """Change it, and have that on the disk when the block ends.

        Raises:
            OSError: it cannot be written. The record in memory has changed: write it again.
        """
        with self._lock:
            self._written = False
            yield self.record
            self.write()

    @contextmanager
    def reading(self) -> Iterator[ClusterRecord]:
        """Keep it as it is."""
        with self._lock:
            yield self.record

    def write(self) -> None:
        """Have it on the disk, unless it is.

        Raises:
            OSError: it cannot be written.
        """
        with self._lock:
            if not self._written:
                replace_file(self._path, msgspec.json.format(msgspec.json.encode(self.record)))
                self._written = True


def utc(moment: float) -> datetime:
    """A time of the record."""
    return datetime.fromtimestamp(moment, UTC)
