"""A clock that a test sets, and a store that fails where it says."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore

HOUR = 3_600
START = datetime(2026, 11, 16, 9, tzinfo=UTC).timestamp()


class Clock:
    """What time it is."""

    def __init__(self, now=START):
        self.now = now

    def __call__(self):
        return self.now


class Crash(BaseException):
    """The process ends here."""


class Store(ReleaseStore):
    """A store that fails where a test says, and knows in which order things were done."""

    def __init__(self, url):
        super().__init__(url)
        self.fails, self.error, self.log = {}, StoreError("the disk is full"), []

    def fail(self, place, times=1, error=None):
        """Fail the next times at a place, such as "before spend"."""
        self.fails[place] = times
        self.error = error or StoreError("the disk is full")

    def spend(self, entries, promise=None):
        self._called("spend", partial(super().spend, promise=promise), entries)

    def publish(self, answers):
        self._called("publish", super().publish, answers)

    def settle(self, entries, answers, promise=None, sketches=()):
        """Fails "before settle", or "before line" where answers follow in another call."""
        name = "settle" if answers else "line"
        self._due(f"before {name}")
        done = super().settle(entries, answers, promise, sketches)
        self.log.append((name, entries[-1].number))
        self._due(f"after {name}")
        return done

    def released(self, stream, start):
        self._due("before released")
        return super().released(stream, start)

    def _called(self, name, method, rows):
        self._due(f"before {name}")
        method(rows)
        self.log.append((name, max(row.number for row in rows)))
        self._due(f"after {name}")

    def _due(self, place):
        if self.fails.get(place, 0) > 0:
            self.fails[place] -= 1
            raise self.error
