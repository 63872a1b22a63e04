"""The messages of the queue of one shard: opened, checked, and counted once each, in order."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from panprivacy.cluster.directory import COLUMNS, USER
from panprivacy.cluster.envelopes import ForgottenKeyError, Opener, Sealed
from panprivacy.cluster.marks import Message, read_mark
from panprivacy.cluster.messages import read_message
from panprivacy.cluster.queues import START, Position, Queue
from panprivacy.cluster.routing import Router
from panprivacy.errors import InputError, PanPrivacyError, without_frames
from panprivacy.intake.programs.counting import Counting, numbered
from panprivacy.privacy.noise import wipe
from panprivacy.service.batches import HalvedError, Reception, Submission
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.tables.slices import Slice

_QUIET_SECONDS: Final = 60.0
"""Seconds after a journal line about a refused message in which no other one is written."""
_GROUP_BYTES: Final = 4 << 20
"""Maximum size of the messages that are counted in one pass, unless one message is longer."""
_ALIGNED: Final = 64


class MessageReader:
    """Reads the messages of a queue, each once and in order; for one thread at a time.

    Args:
        queue: the queue of the messages, which are sealed for its subject.
        config: the configuration of the stream.
        part: the slice of the table, and its users.
        counting: a counting of the stream, which says which columns it reads.

    Attributes:
        position: the position after the last message that was counted or refused.
        whole: whether no row of the window was lost, as far as is known.
        opener: the opener of envelopes.
        reception: counts parts once each by their names.
    """

    def __init__(self, queue: Queue, config: StreamConfig, part: Slice, counting: Counting) -> None:
        self._queue, self._part = queue, part
        self.reception = Reception(config, counting, ids=IdKind.integers)  # of users, or hashes
        self._router = Router(part.shards, part.key, numbered=numbered(counting))
        self.opener = Opener()
        self.position = START
        self.whole = True
        self._told_refusal = -_QUIET_SECONDS
        self._room = bytearray()

    def take(self, counting: Counting, messages: Iterable[Message]) -> None:
        """Count messages that were not counted before; of each part, all rows or none.

        Rows that cannot be counted are refused with a line in the journal, and not read again.

        Args:
            counting: counts the rows.
            messages: envelopes, in order, each with the position after it.
        """
        for group in _groups(messages):
            self._take(counting, group)

    def go_on_at(self, last: Position) -> None:
        """Move to a queue that was created again, given its end; earlier messages are lost."""
        if last.born > self.position.born:
            start = Position(last.born, 0)
            self._note_gap(start)
            self.position = start

    def _take(self, counting: Counting, group: Sequence[Message]) -> None:
        """Count several messages in one pass; whatever fails, they are not counted again."""
        room = self._room_for(sum(_stride(sealed) for _, sealed in group))
        several: list[Submission] = []
        at, before = 0, self.position
        try:
            for position, sealed in group:
                if position > self.position:
                    self._note_gap(position)
                    self.position = position
                    if read_mark(sealed) is None:
                        self._read(sealed, room[at:], several)
                        at += _stride(sealed)
            for outcome in self.reception.take(counting, several):
                if isinstance(outcome, Exception):
                    self._refuse(outcome)
        except MemoryError:  # nothing was counted: the broker has it until there is room
            self.position = before
            raise
        except Exception as error:  # noqa: BLE001 - the shard goes on, and its words may show rows
            self._refuse(without_frames(error))
        finally:
            wipe(np.frombuffer(room, np.uint8))

    def _room_for(self, size: int) -> memoryview:
        """Return memory for opened messages: always the same, as new memory has page faults."""
        if len(self._room) < size:
            self._room = bytearray(size)
        return memoryview(self._room)[:size]

    def _read(self, sealed: Sealed, room: memoryview, several: list[Submission]) -> None:
        """Open a message, and add its parts to those to be counted."""
        try:
            plain = self.opener.open(sealed, self._queue.subject, room)
            for one in read_message(plain, len(self.reception.columns.wanted())):
                if isinstance(one, InputError):
                    self._refuse(one)
                else:
                    self._accept(Submission(one.batches, one.name), several)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - others are counted, and its words may show rows
            self._refuse(without_frames(error))

    def _accept(self, sent: Submission, several: list[Submission]) -> None:
        """Add a part to those to be counted, unless a row of it belongs to another shard."""
        try:
            for batch in sent.batches:
                self._router.check(batch, COLUMNS.index(USER), self._part.shard)
        except InputError as error:
            self._refuse(without_frames(error))
        else:
            several.append(sent)

    def _refuse(self, error: Exception) -> None:
        """Report a refused message, at most once a minute: forgers cannot fill the journal."""
        reason = str(error)
        expected = isinstance(error, PanPrivacyError)
        # it should have been counted
        if not expected or isinstance(error, ForgottenKeyError | HalvedError):
            self.whole = False
        if not expected:
            reason = f"failed with {type(error).__name__}"
        now = time.monotonic()
        if now - self._told_refusal >= _QUIET_SECONDS:
            self._told_refusal = now
            JOURNAL.error(Event.refused_message, stream=self._queue.stream, reason=reason)

    def _note_gap(self, position: Position) -> None:
        """Mark the window incomplete if messages were lost, for example by a broker that died."""
        before = self.position
        if before == START:
            return
        anew = position.born != before.born
        if anew or position.sequence != before.sequence + 1:
            self.whole = False
            JOURNAL.error(Event.lost_messages, stream=self._queue.stream)


def _groups(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Yield messages that are opened together."""
    group: list[Message] = []
    size = 0
    for one in messages:
        if group and size + _stride(one[1]) > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += _stride(one[1])
    if group:
        yield group


def _stride(sealed: Sealed) -> int:
    """Return the size reserved for a message: columns of the next message are aligned."""
    return -(-len(sealed) // _ALIGNED) * _ALIGNED
