"""What a stream has released and nobody can see yet: it waits for a disk, or for the store.

A release leaves once a checkpoint on the disk has it. So whoever goes on from that checkpoint
publishes the same release, and what was seen is never made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from panprivacy.errors import PanPrivacyError
from panprivacy.programs.counting import Counting
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.contributions import Contributions
from panprivacy.service.outgoing.payment import Payment
from panprivacy.service.outgoing.pending import Pending, Room
from panprivacy.service.outgoing.records import Entry, Published, StoreError
from panprivacy.service.outgoing.store import ReleaseStore

PLACES: Final = 4
"""Releases that may wait at the same time."""
_FULL: Final = (
    f"{PLACES} answers wait for a checkpoint or the release store, and there is no room for more"
)


class Outbox:
    """Has what was released published, one release after another.

    Args:
        store: where answers and ledger are.
        payment: pays for releases.
        room: the place of a release in the state.
        contributions: where contributions go; None if answers stand in their place.
        durable: whether a release waits for the checkpoint that has it.
        now: when it is, in UTC.
    """

    def __init__(
        self,
        store: ReleaseStore,
        payment: Payment,
        room: Room,
        contributions: Contributions | None,
        now: Callable[[], datetime],
        settled: Callable[[bool], None],
        *,
        durable: bool,
    ) -> None:
        self._store, self._payment, self._room = store, payment, room
        self._contributions, self._now, self._settled = contributions, now, settled
        self._durable = durable
        self._waiting: list[Pending] = []
        self._handed: list[Pending] = []

    @property
    def state_bytes(self) -> int:
        """The size of `packed()`, however many wait."""
        return PLACES * self._room.size

    @property
    def waits(self) -> bool:
        """Whether a release waits."""
        return bool(self._waiting)

    @property
    def unkept(self) -> bool:
        """Whether a release waits for a checkpoint that has it."""
        return self.unkept_since is not None

    @property
    def unkept_since(self) -> datetime | None:
        """When the first release was made of those that no checkpoint has; None without any."""
        made = [one.rows[0].released for one in self._waiting if self._durable and not one.kept]
        return min(made, default=None)

    @property
    def full(self) -> bool:
        """Whether there is no place for one more."""
        return len(self._waiting) >= PLACES

    def make_room(self) -> None:
        """Have a place for one more release.

        Raises:
            StoreError: there is none now.
        """
        if self.full:
            self.send()
        if self.full:
            raise StoreError(_FULL)

    def put(self, one: Pending) -> None:
        """Have a release wait.

        Raises:
            PanPrivacyError: it does not fit its place; it is lost.
        """
        self._room.check(one)
        self._waiting.append(one)

    def send(self) -> None:
        """Publish what may leave, or raise `StoreError`: then the rest still waits."""
        while self._waiting and (self._waiting[0].kept or not self._durable):
            one = self._waiting[0]
            one.outcome = self._published(one)
            del self._waiting[0]
            self._settled(one.outcome)

    def packed(self) -> bytes:
        """All that wait, in places of one size."""
        self._handed = list(self._waiting)
        places = [*self._waiting, *(PLACES - len(self._waiting)) * [None]]
        return b"".join(map(self._room.packed, places))

    def kept(self) -> None:
        """Know that what `packed` gave last is on the disk."""
        for one in self._handed:
            one.kept = True

    def unpacked(self, packed: bytes, counting: Counting) -> list[Pending]:
        """The releases that `packed` gave.

        Raises:
            InputError: it is damaged.
        """
        size = self._room.size
        places = [packed[at : at + size] for at in range(0, len(packed), size)]
        found = [self._room.unpacked(place, counting) for place in places]
        return [one for one in found if one is not None]

    def go_on_from(self, waiting: Sequence[Pending]) -> None:
        """Have the releases wait that an earlier state has."""
        self._waiting, self._handed = list(waiting), []

    def _published(self, one: Pending) -> bool:
        """Publish one; False if it is lost."""
        rows = [replace(row, released=self._now()) for row in one.rows]
        if one.sealed is not None and self._contributions is not None:
            if not self._payment.settle(one.lines, ()):
                return False
            line = one.line
            if self._store.has_answers(line.stream, line.start, line.number):
                return True
            self._contributions.write(line.start, one.sealed)
        return settled(self._payment, one.lines, rows)


def settled(payment: Payment, lines: Sequence[Entry], rows: Sequence[Published]) -> bool:
    """Have a release paid for and published, unless it is; False if another has its line.

    Raises:
        StoreError: the store cannot be used now; nothing is there, or all of it.
    """
    try:
        return payment.settle(lines, rows)
    except StoreError:
        raise
    except PanPrivacyError as error:
        JOURNAL.error(Event.not_published, stream=lines[-1].stream, reason=str(error))
        return True
