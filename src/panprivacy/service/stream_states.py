"""The states of a stream: what is in one, and what the ledger has had since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from panprivacy.service.batches import BatchIds
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.announcements import Announcements, Scope
from panprivacy.service.outgoing.pending import Pending
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.releases import Releases
from panprivacy.service.stream_state import FORMAT, OWN_BYTES, StreamState, packed
from panprivacy.statistics.containers import Container


class StreamStates:
    """Writer and reader of the states of one stream; for one thread at a time.

    Args:
        name: the name of the stream.
        config: the configuration of the stream.
        store: the store of releases and ledger.
        releases: its releases.
        announcements: its announced intrusions.
        batch_ids: the ids of its last batches.
        clock: seconds since 1970 in UTC.

    Attributes:
        missing: the interval in which events may be missing: from the restored state to the
            restart.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        store: ReleaseStore,
        releases: Releases,
        announcements: Announcements,
        batch_ids: BatchIds,
        clock: Callable[[], float],
    ) -> None:
        self._name, self._config, self._store, self._clock = name, config, store, clock
        self._releases, self._windowed = releases, releases.windowed
        self._announcements, self._batch_ids = announcements, batch_ids
        self._holds_until = int(clock())  # a state surely holds all that was counted until then
        self.missing = self._windowed.began, self._windowed.began

    @property
    def layout(self) -> Container:
        """The layout of a state."""
        public: dict[str, Any] = {
            "stream": self._name, "batch_ids": self._config.retries, "format": FORMAT
        }  # fmt: skip
        own_bytes = OWN_BYTES + self._releases.outbox.state_bytes + self._batch_ids.state_bytes
        return Container("Stream", public, own_bytes, [self._windowed])

    @property
    def state_bytes(self) -> int:
        """Size of a state."""
        return self.layout.state_bytes

    def packed(self) -> bytes:
        """Return the state."""
        seen = self._announcements.packed(self._windowed.current)
        paid, waiting = self._releases.payment.packed(), self._releases.outbox.packed()
        names = self._batch_ids.packed()
        return self.layout.packed(packed(self._holds_until, paid, seen, waiting, names))

    def mark_stored(self) -> None:
        """Record that the last state is on disk."""
        self._releases.outbox.mark_stored()
        self._holds_until = int(self._clock())

    def check(self, state: bytes, released: int, announced: int) -> None:
        """Raise the errors of `resume`, without changing anything."""
        parts = self.parts(state)
        self._waiting_in(parts)
        self._windowed.check_state(parts.inner, released=released, announced=announced)

    def resume(
        self, parts: StreamState, released: int, announced: int, scope: Callable[[], Scope]
    ) -> None:
        """Resume from the parts of an earlier state.

        Args:
            parts: a result of `parts`.
            released: the result of `released_in` for the state.
            announced: the result of `announced_in` for it.
            scope: returns the scope of announcements to a state that starts now.
        """
        waiting, own = self._waiting_in(parts), self._windowed.current
        self._windowed.resume(parts.inner, released=released, announced=announced)
        self._releases.payment.unpack(parts.paid)
        self._releases.outbox.go_on_from(waiting)
        if self._windowed.current is own:
            self._announcements.unpack(parts.seen)
        else:  # all its releases were made: a new window was initialised
            self._announcements.begin(scope(), self._windowed.current)
        self._batch_ids.unpack(parts.names)
        counts_since = self._releases.resume()
        self._holds_until = int(parts.holds_until.timestamp())
        self.missing = min(parts.holds_until, counts_since), counts_since

    def released_in(self, state: bytes) -> int:
        """Return the number of releases in the ledger of the window of an earlier state.

        Raises:
            InputError: it is no state of this stream, or the ledger has lost earlier payments.
            StoreError: the ledger cannot be read now.
        """
        parts = self.parts(state)
        self._releases.payment.check(parts.paid)
        began = self._windowed.began_in(parts.inner)
        if (
            self._windowed.current.internals.windows.lasting
        ):  # its releases are numbered from window to window
            return self._store.released_since(self._name, began)
        return self._store.released(self._name, began)

    def announced_in(self, state: bytes) -> int:
        """Return the total number of intrusions announced to an earlier state.

        Raises:
            InputError: it is no state of this stream, or the store has lost announcements.
            StoreError: the store cannot be read now.
        """
        return self._announcements.missing(self.parts(state).seen)

    def parts(self, state: bytes) -> StreamState:
        """Return the parts of a state.

        Raises:
            InputError: it is no state of this stream.
        """
        own, (inner,) = self.layout.parts(state)
        return StreamState.of(own, inner, self._releases.outbox.state_bytes)

    def _waiting_in(self, parts: StreamState) -> list[Pending]:
        """Return the releases that wait in a state; raise `InputError` if they are damaged."""
        return self._releases.outbox.unpacked(parts.waiting, self._windowed.current)
