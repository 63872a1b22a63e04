"""What a stream has released and nobody can see yet: it waits for a disk, or for the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from panprivacy.errors import PanPrivacyError
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.contributions import Contributions
from panprivacy.service.outgoing.records import Published, StoreError
from panprivacy.service.outgoing.store import ReleaseStore


class Outbox:
    """Has what was released published, one release after another.

    Args:
        stream: name of the stream.
        store: where answers go.
        contributions: where contributions go; None if answers stand in their place.
    """

    def __init__(
        self, stream: str, store: ReleaseStore, contributions: Contributions | None
    ) -> None:
        self._stream, self._store, self._contributions = stream, store, contributions
        self._answers: list[Sequence[Published]] = []
        self._sealed: list[tuple[datetime, bytes]] = []

    def put(self, answers: Sequence[Published]) -> None:
        """Have the answers of a release wait."""
        self._answers.append(answers)

    def put_sealed(self, began: datetime, sealed: bytes) -> None:
        """Have the contribution of a window wait, which began to be counted then."""
        self._sealed.append((began, sealed))

    def send(self) -> None:
        """Publish all that waits, or raise `StoreError`: then the rest still waits."""
        while self._contributions and self._sealed:
            self._contributions.write(*self._sealed[0])
            del self._sealed[0]
        while self._answers:
            publish(self._store, self._stream, self._answers[0])
            del self._answers[0]


def publish(store: ReleaseStore, stream: str, answers: Sequence[Published]) -> None:
    """Have the store show the answers of a release, which may be there already.

    Raises:
        StoreError: the store cannot be written to; nothing is there, or all of it.
    """
    try:
        store.publish(answers)
    except StoreError:
        raise
    except PanPrivacyError as error:  # they are there: before a crash, or the commit was
        JOURNAL.warning(Event.not_published, stream=stream, reason=str(error))
