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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from panprivacy.cluster.envelopes import PACKED_BYTES as KEYS_BYTES
from panprivacy.cluster.envelopes import Opener
from panprivacy.cluster.marks import Message, WindowRelease
from panprivacy.cluster.message_reader import MessageReader
from panprivacy.cluster.queues import END, Position, Queue
from panprivacy.cluster.vault import ShardReport
from panprivacy.errors import BudgetError, InputError, PlanError
from panprivacy.service.config.stream import StreamConfig
from panprivacy.statistics.containers import Container
from panprivacy.statistics.header import read_header
from panprivacy.statistics.internals import Resumable
from panprivacy.tables.slices import Slice

_OWN: Final = struct.Struct("<16sdQQ?")
"""Layout in a state: position, start of the window, contributions, announcements, complete."""
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
        self._new_counting = partial(config.make_counting, part, config.table_key(part.key))
        self._counting = self._new_counting()
        self._reader = MessageReader(queue, config, part, self._counting)
        self._window, self._released, self._announced = began, 0, 0
        self._pending: dict[WindowRelease, bytes] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the stream."""
        return self.queue.stream

    @property
    def position(self) -> Position:
        """Queue position after the last message that was counted or refused."""
        return self._reader.position

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
            self._reader.take(self._counting, messages)

    def go_on_at(self, last: Position) -> None:
        """Move to a queue that was created again, given its end; earlier messages are lost."""
        with self._lock:
            self._reader.go_on_at(last)

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
            fresh = self._new_counting() if last else None
            position = self._reader.position
            parted = not last or position <= through or not position.sequence
            self._reader.whole = self._reader.whole and parted
            self._pending[window, number] = self._contribution(last=last)
            self._released = number
            if fresh is not None:
                self._counting.forget()
                self._counting, self._reader.whole = fresh, parted
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
            return self._reader.reception.batch_ids.packed()

    def know(self, names: bytes) -> None:
        """Set the names of parts counted under another number of shards, to count none again."""
        with self._lock:
            self._reader.reception.batch_ids.unpack(names)

    def rotate(self) -> None:
        """Draw a new key for messages; see `Opener.rotate`."""
        with self._lock:
            self._reader.opener.rotate()

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
            reader, self._pending = self._reader, earlier.pending
            position, *window, reader.whole = earlier.own
            reader.opener, reader.position = earlier.opener, Position.unpack(position)
            self._window, self._released, self._announced = window
            reader.reception.batch_ids.unpack(earlier.names)

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
        return b"".join(part.under(complete=self._reader.whole).packed() for part in parts)

    def _report(self) -> ShardReport:
        return ShardReport(
            window=self._window,
            released=self._released,
            announced=self._announced,
            pending=list(self._pending),
            position=self._reader.position,
            public=self._reader.opener.public,
            whole=self._reader.whole,
        )

    def _state(self) -> bytes:
        own = _OWN.pack(
            self._reader.position.packed(),
            self._window,
            self._released,
            self._announced,
            self._reader.whole,
        )
        names = self._reader.reception.batch_ids.packed()
        kept = b"".join(self._pending.values())
        return self._layout.packed(own + self._reader.opener.packed() + names + kept)

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
        names = stream.read(self._reader.reception.batch_ids.state_bytes)
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
        own_bytes = _OWN.size + KEYS_BYTES + self._reader.reception.batch_ids.state_bytes
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
