"""One stream in one shard: its slice of the table, and its position in its queue.

The queue is a log. The state has the position through which all of it is counted: so a shard that
resumes from its state reads on from there, and each message is counted once, whatever crashes.

Windows begin and end as the coordinator requests. The output at the end of one, or at a release
within it, is a contribution: it is stored with the state until the coordinator has settled it, so
that repeated requests get the same contribution.
"""

from __future__ import annotations

import io
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from panprivacy.cluster.directory import COLUMNS, USER
from panprivacy.cluster.envelopes import PACKED_BYTES as KEYS_BYTES
from panprivacy.cluster.envelopes import ForgottenKeyError, Opener, Sealed
from panprivacy.cluster.marks import Message, WindowRelease, read_mark
from panprivacy.cluster.messages import read_message
from panprivacy.cluster.queues import END, START, Position, Queue
from panprivacy.cluster.routing import Router
from panprivacy.cluster.vault import ShardReport
from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError, without_frames
from panprivacy.intake.programs.counting import Counting, numbered
from panprivacy.privacy.noise import wipe
from panprivacy.service.batches import HalvedError, Reception, Submission
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.statistics.containers import Container
from panprivacy.statistics.header import read_header
from panprivacy.statistics.internals import Resumable
from panprivacy.tables.slices import Slice

_OWN: Final = struct.Struct("<16sdQQ?")
"""Layout in a state: position, start of the window, contributions, announcements, complete."""
_QUIET_SECONDS: Final = 60.0
"""Seconds after a journal line about a refused message in which no other one is written."""
_GROUP_BYTES: Final = 4 << 20
"""Maximum size of the messages that are counted in one pass, unless one message is longer."""
_ALIGNED: Final = 64
_DAMAGED: Final = "the state is damaged: no contributions are kept like this"


@dataclass(frozen=True, slots=True)
class _Earlier:
    """Decoded parts of a state.

    Args:
        own: the fields of `_OWN`.
        opener: the opener of envelopes.
        names: the packed `BatchIds`.
        pending: the contributions that are stored.
        inner: the state of the slice.
    """

    own: tuple[Any, ...]
    opener: Opener
    names: bytes
    pending: dict[WindowRelease, bytes]
    inner: bytes


class ShardStream(Resumable):
    """Counter of the messages of a queue, each once, in order; thread-safe.

    Guarantee: that of the slice for its users in each window; the ids of the last batches, and the
    number of messages, are stored as well. [docs/guarantees/cluster.md]

    Args:
        queue: the queue of the messages, which are sealed for its subject.
        config: the configuration of the stream.
        part: the slice of the table, and its users.
        began: start of the first window, in seconds since 1970.

    Raises:
        PlanError: the statistic cannot be counted in slices.
    """

    def __init__(self, queue: Queue, config: StreamConfig, part: Slice, began: float) -> None:
        self.queue, self.part = queue, part
        self._config = config
        self._counting = config.make_counting(part)
        self._reception = Reception(
            config, self._counting, ids=IdKind.integers
        )  # of users, or hashes
        self._router = Router(part.shards, part.key, numbered=numbered(self._counting))
        self._opener = Opener()
        self._position = START
        self._window, self._released, self._announced = began, 0, 0
        self._whole = True
        self._pending: dict[WindowRelease, bytes] = {}
        self._told_refusal = -_QUIET_SECONDS
        self._room = bytearray()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the stream."""
        return self.queue.stream

    @property
    def position(self) -> Position:
        """Queue position after the last message that was counted or refused."""
        return self._position

    @property
    def due(self) -> WindowRelease:
        """Window and number of the next contribution."""
        with self._lock:
            return self._window, self._released + 1

    def report(self) -> ShardReport:
        """Return the public report about the state."""
        with self._lock:
            return self._report()

    def take(self, messages: Iterable[Message]) -> None:
        """Count messages that were not counted before; of each part, all rows or none.

        Rows that cannot be counted are refused with a line in the journal, and not read again.

        Args:
            messages: envelopes, in order, each with the position after it.
        """
        with self._lock:
            for group in _groups(messages):
                self._take(group)

    def go_on_at(self, last: Position) -> None:
        """Move to a queue that was created again, given its end; earlier messages are lost."""
        with self._lock:
            if last.born > self._position.born:
                start = Position(last.born, 0)
                self._note_gap(start)
                self._position = start

    def contribute(
        self,
        window: float,
        number: int,
        *,
        through: Position = END,
        last: bool,
        next_start: float = 0.0,
        announced: int = 0,
    ) -> None:
        """Make a contribution of the current window; repeated requests make no second one.

        If messages beyond the cut were counted, nobody knows to which of two windows their rows
        belong: both are incomplete.

        Args:
            window: start of the window.
            number: number of the release, from 1.
            through: the position of the cut.
            last: whether the window ends with it: its state is wiped.
            next_start: start of the next window, if `last`.
            announced: see `announce`, which is done first if necessary: so all shards contribute
                from one epoch.

        Raises:
            PlanError: it is not the next contribution of the current window.
            BudgetError: the contribution, or the number of intrusions, was not planned.
        """
        with self._lock:
            if (window, number) in self._pending:
                return
            if (window, number) != (self._window, self._released + 1):
                message = f"stream {self.name} in shard {self.part} is not where it is asked for a "
                message += f"contribution: its next one is number {self._released + 1}"
                raise PlanError(message)
            self._announce(announced)
            fresh = self._fresh() if last else None
            parted = not last or self._position <= through or not self._position.sequence
            self._whole = self._whole and parted
            self._pending[window, number] = self._contribution(last=last)
            self._released = number
            if fresh is not None:
                self._counting.forget()
                self._counting, self._whole = fresh, parted
                self._window, self._released, self._announced = next_start, 0, 0

    def contribution(self, window: float, number: int) -> bytes:
        """Return a stored contribution.

        Raises:
            PlanError: there is no such contribution.
        """
        with self._lock:
            try:
                return self._pending[window, number]
            except KeyError:
                message = f"stream {self.name} in shard {self.part} has no such contribution"
        raise PlanError(message)

    def settle(self, window: float, number: int) -> None:
        """Forget a contribution; repeating it changes nothing."""
        with self._lock:
            self._pending.pop((window, number), None)

    def announce(self, window: float, total: int) -> None:
        """Re-randomise the state until `total` intrusions have been announced to its window.

        A window that has ended needs none: its state is wiped.

        Args:
            window: start of the window.
            total: number of intrusions announced to it.

        Raises:
            BudgetError: that number was not planned. Nothing was changed.
        """
        with self._lock:
            if window == self._window:
                self._announce(total)

    def names(self) -> bytes:
        """Return the names of the last parts, for `know`."""
        with self._lock:
            return self._reception.batch_ids.packed()

    def know(self, names: bytes) -> None:
        """Set the names of parts counted under another number of shards, to count none again."""
        with self._lock:
            self._reception.batch_ids.unpack(names)

    def rotate(self) -> None:
        """Draw a new key for messages; see `Opener.rotate`."""
        with self._lock:
            self._opener.rotate()

    def snapshot(self) -> tuple[bytes, ShardReport]:
        """Return the state, and the public report about it."""
        with self._lock:
            return self._state(), self._report()

    def state(self) -> bytes:
        """Return position, keys, batch ids, stored contributions, and the state of the slice."""
        with self._lock:
            return self._state()

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise the errors that `resume` would raise, without changing anything."""
        inner = self._earlier(state).inner
        self._counting.internals.memory.check_state(inner, released=released, announced=announced)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume from an earlier state of the same slice.

        Args:
            state: the result of `state()`.
            released: see `Statistic.resume`; the state knows its own contributions.
            announced: see `Statistic.resume`.

        Raises:
            InputError: it is damaged, or of another slice or stream. Nothing was changed.
        """
        earlier = self._earlier(state)
        with self._lock:
            self._counting.resume(earlier.inner, released=released, announced=announced)
            self._opener, self._pending = earlier.opener, earlier.pending
            position, *window, self._whole = earlier.own
            self._position = Position.unpack(position)
            self._window, self._released, self._announced = window
            self._reception.batch_ids.unpack(earlier.names)

    def _take(self, group: Sequence[Message]) -> None:
        """Count several messages in one pass; whatever fails, they are not counted again."""
        room = self._room_for(sum(_stride(sealed) for _, sealed in group))
        several: list[Submission] = []
        at, before = 0, self._position
        try:
            for position, sealed in group:
                if position > self._position:
                    self._note_gap(position)
                    self._position = position
                    if read_mark(sealed) is None:
                        self._read(sealed, room[at:], several)
                        at += _stride(sealed)
            for outcome in self._reception.take(self._counting, several):
                if isinstance(outcome, Exception):
                    self._refuse(outcome)
        except MemoryError:  # nothing was counted: the broker has it until there is room
            self._position = before
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
            plain = self._opener.open(sealed, self.queue.subject, room)
            for one in read_message(plain, len(self._reception.columns.wanted())):
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
                self._router.check(batch, COLUMNS.index(USER), self.part.shard)
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
            self._whole = False
        if not expected:
            reason = f"failed with {type(error).__name__}"
        now = time.monotonic()
        if now - self._told_refusal >= _QUIET_SECONDS:
            self._told_refusal = now
            JOURNAL.error(Event.refused_message, stream=self.name, reason=reason)

    def _note_gap(self, position: Position) -> None:
        """Mark the window incomplete if messages were lost, for example by a broker that died."""
        before = self._position
        if before == START:
            return
        anew = position.born != before.born
        if anew or position.sequence != before.sequence + 1:
            self._whole = False
            JOURNAL.error(Event.lost_messages, stream=self.name)

    def _announce(self, total: int) -> None:
        """Re-randomise the state until `total` intrusions have been announced."""
        counting = self._counting
        if total > counting.guarantee.intrusions - (counting.internals.releasing.planned - 1):
            message = f"stream {self.name} has no {total} announced intrusions planned"
            raise BudgetError(message)
        while self._announced < total:
            counting.announce_intrusion()
            self._announced += 1

    def _contribution(self, *, last: bool) -> bytes:
        """Return the current contribution, packed.

        Raises:
            BudgetError: it would wipe the state, though the window continues.
        """
        counting = self._counting
        if not last and counting.internals.memory.announced >= counting.guarantee.intrusions:
            message = f"stream {self.name} has no release left but that of the end of the window"
            raise BudgetError(message)
        parts = counting.internals.contributions.parts("sums")
        return b"".join(part.under(complete=self._whole).packed() for part in parts)

    def _fresh(self) -> Counting:
        """Return new statistics for the next window."""
        return self._config.make_counting(self.part)

    def _report(self) -> ShardReport:
        return ShardReport(
            window=self._window,
            released=self._released,
            announced=self._announced,
            pending=list(self._pending),
            position=self._position,
            public=self._opener.public,
            whole=self._whole,
        )

    def _state(self) -> bytes:
        own = _OWN.pack(
            self._position.packed(),
            self._window,
            self._released,
            self._announced,
            self._whole,
        )
        names = self._reception.batch_ids.packed()
        kept = b"".join(self._pending.values())
        return self._layout.packed(own + self._opener.packed() + names + kept)

    def _earlier(self, state: bytes) -> _Earlier:
        """Return the decoded parts of a state.

        Raises:
            InputError: it is no state of this stream and slice.
        """
        kept = _contributions_in(read_header(io.BytesIO(state)).public())
        own, (inner,) = self._layout_of(kept).parts(state)
        stream = io.BytesIO(own)
        fields = _OWN.unpack(stream.read(_OWN.size))
        opener = Opener.unpack(stream.read(KEYS_BYTES))
        names = stream.read(self._reception.batch_ids.state_bytes)
        pending = {key: stream.read(size) for key, size in kept.items()}
        return _Earlier(fields, opener, names, pending, inner)

    @property
    def _layout(self) -> Container:
        return self._layout_of({key: len(one) for key, one in self._pending.items()})

    def _layout_of(self, kept: Mapping[WindowRelease, int]) -> Container:
        """Return the layout of a state with contributions of these sizes."""
        public: dict[str, Any] = {
            "stream": self.name,
            "batch_ids": self._config.retries,
            "shard": self.part.shard,
            "shards": self.part.shards,
            "routing": self.part.key.hex(),
            "kept": [[float(window), number, size] for (window, number), size in kept.items()],
        }
        own_bytes = _OWN.size + KEYS_BYTES + self._reception.batch_ids.state_bytes
        own_bytes += sum(kept.values())
        return Container("ShardStream", public, own_bytes, [self._counting.internals.memory])


def _contributions_in(public: Mapping[str, Any]) -> dict[WindowRelease, int]:
    """Return the contributions in a state with their sizes; empty for states without any.

    Raises:
        InputError: the header is damaged.
    """
    listed = public.get("kept", [])
    try:
        found = {(float(window), int(number)): int(size) for window, number, size in listed}
    except (TypeError, ValueError):
        raise InputError(_DAMAGED) from None
    if any(size < 0 for size in found.values()):
        raise InputError(_DAMAGED)
    return found


def _groups(
    messages: Iterable[Message],
) -> Iterator[list[Message]]:
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
