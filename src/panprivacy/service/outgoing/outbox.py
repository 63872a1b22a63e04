"""Outbox: releases of a stream that nobody can see yet, because they wait for a disk or the store.

A release is published once a checkpoint on the disk contains it. So a service that resumes from
that checkpoint publishes the same release, and no published release is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from panprivacy.errors import PanPrivacyError
from panprivacy.intake.programs.counting import Counting
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.contributions import StreamContributions
from panprivacy.service.outgoing.payment import Payment
from panprivacy.service.outgoing.pending import Pending, PendingSlot
from panprivacy.service.outgoing.records import Entry, Published, SketchRow, StoreError
from panprivacy.service.outgoing.store import ReleaseStore

PLACES: Final = 4
"""Maximum number of releases that may wait at the same time."""
_FULL: Final = (
    f"{PLACES} answers wait for a checkpoint or the release store, and there is no room for more"
)


class Outbox:
    """Outbox that publishes the releases of a stream, one after another.

    Args:
        store: the store of answers and ledger.
        payment: pays for releases.
        room: the place of a release in the state.
        contributions: the files of contributions; None if answers are published instead.
        durable: whether a release waits for a checkpoint that contains it.
        now: returns the time, in UTC.
        kept_for: how long published tables are kept; None for ever.
    """

    def __init__(
        self,
        store: ReleaseStore,
        payment: Payment,
        room: PendingSlot,
        contributions: StreamContributions | None,
        now: Callable[[], datetime],
        settled: Callable[[bool], None],
        *,
        durable: bool,
        kept_for: timedelta | None = None,
    ) -> None:
        self._kept_for = kept_for
        self._store, self._payment, self._room = store, payment, room
        self._contributions, self._now, self._settled = contributions, now, settled
        self._durable = durable
        self._waiting: list[Pending] = []
        self._handed: list[Pending] = []

    @property
    def state_bytes(self) -> int:
        """Size of `packed()`, for any number of waiting releases."""
        return PLACES * self._room.size

    @property
    def waits(self) -> bool:
        """Whether a release waits."""
        return bool(self._waiting)

    @property
    def unkept(self) -> bool:
        """Whether a release waits for a checkpoint that contains it."""
        return self.unkept_since is not None

    @property
    def unkept_since(self) -> datetime | None:
        """Time of the first release that no checkpoint contains; None without any."""
        made = [one.rows[0].released for one in self._waiting if self._durable and not one.kept]
        return min(made, default=None)

    @property
    def full(self) -> bool:
        """Whether there is no place for one more."""
        return len(self._waiting) >= PLACES

    def make_room(self) -> None:
        """Make room for one more release.

        Raises:
            StoreError: there is no room now.
        """
        if self.full:
            self.send()
        if self.full:
            raise StoreError(_FULL)

    def put(self, one: Pending) -> None:
        """Add a release to the waiting ones.

        Raises:
            PanPrivacyError: it does not fit its place; it is lost.
        """
        self._room.check(one)
        self._waiting.append(one)

    def send(self) -> None:
        """Publish the releases that are ready, or raise `StoreError`: then the rest still waits."""
        while self._waiting and (self._waiting[0].kept or not self._durable):
            one = self._waiting[0]
            one.outcome = self._published(one)
            del self._waiting[0]
            self._settled(one.outcome)

    def packed(self) -> bytes:
        """Return all waiting releases, in places of one size."""
        self._handed = list(self._waiting)
        places = [*self._waiting, *(PLACES - len(self._waiting)) * [None]]
        return b"".join(map(self._room.packed, places))

    def mark_stored(self) -> None:
        """Record that the last result of `packed` is on the disk."""
        for one in self._handed:
            one.kept = True

    def unpacked(self, packed: bytes, counting: Counting) -> list[Pending]:
        """Return the releases of a result of `packed`.

        Raises:
            InputError: it is damaged.
        """
        size = self._room.size
        places = [packed[at : at + size] for at in range(0, len(packed), size)]
        found = [self._room.unpacked(place, counting) for place in places]
        return [one for one in found if one is not None]

    def go_on_from(self, waiting: Sequence[Pending]) -> None:
        """Restore the waiting releases of an earlier state."""
        self._waiting, self._handed = list(waiting), []

    def _published(self, one: Pending) -> bool:
        """Publish one release; return False if it is lost."""
        now = self._now()  # one moment: by it readers tell which rows are of one release
        rows = [replace(row, released=now) for row in one.rows]
        if one.sealed is not None and self._contributions is not None:
            if not self._payment.settle(one.lines, ()):
                return False
            line = one.line
            if self._store.has_answers(line.stream, line.start, line.number):
                return True
            self._contributions.write(line.start, one.sealed)
        tables = [replace(table, released=now) for table in one.tables]
        paid = settled(self._payment, one.lines, rows, tables)
        if self._kept_for is not None:
            self._store.discard_sketches(one.line.stream, now - self._kept_for)
        return paid


def settled(
    payment: Payment,
    lines: Sequence[Entry],
    rows: Sequence[Published],
    tables: Sequence[SketchRow] = (),
) -> bool:
    """Pay for a release and publish it, unless it is; return False if another payer has its line.

    Raises:
        StoreError: the store cannot be used now; nothing is there, or all of it.
    """
    try:
        return payment.settle(lines, rows, tables)
    except StoreError:
        raise
    except PanPrivacyError as error:
        JOURNAL.error(Event.not_published, stream=lines[-1].stream, reason=str(error))
        return True
