"""Data of all pages, kept up to date by one thread for all viewers."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from panprivacy.errors import PanPrivacyError
from panprivacy.service.config.config import Config
from panprivacy.service.config.following import FollowedTokens
from panprivacy.service.dashboard.cohorts import Cohorts
from panprivacy.service.dashboard.guard import Readers
from panprivacy.service.dashboard.history import History
from panprivacy.service.dashboard.promise import Spent, StreamPromise, Year
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.statistics.abilities import unit_of_answers

_PAUSE: Final = 5.0
"""Seconds between two readings of the ledger, unless something was released."""
_SHARE: Final = 20
"""The ledger of a year is read at most a 20th of the time."""


class Look:
    """Data about one stream.

    Args:
        reader: reads the release store.
        promise: the promise of the stream.

    Attributes:
        promise: the promise of the configuration.
        history: the released answers.
        cohorts: the return rates of its published tables.
        spent: the privacy loss of the current window; None until it is known.
        year: the privacy loss of a year of windows; None until it is known.
        version: number of changes of any of these.
    """

    def __init__(self, reader: ReleaseReader, promise: StreamPromise) -> None:
        self._reader, self.promise = reader, promise
        self.history = History(reader, promise.name)
        self.cohorts = Cohorts(reader, promise.name, promise.config)
        self.spent: Spent | None = None
        self.year: Year | None = None
        self.version = 0
        self._again = self._year_again = 0.0

    def unit(self, statistic: str, question: str) -> str:
        """Return the unit of the answers to a question, as currently planned."""
        plan = self.promise.plans.get(statistic)
        return unit_of_answers(plan, question) if plan else "users"

    def follow(self) -> None:
        """Read what is new.

        Raises:
            StoreError: the store cannot be read now.
        """
        changed, before = self.history.follow(), (self.spent, self.year)
        newest = self.history.known.newest
        if changed or time.monotonic() > self._again:
            number = newest[0].number if newest else 0
            self.spent = self.promise.spent(self._reader, datetime.now(UTC), number)
            self._again = time.monotonic() + _PAUSE
        if time.monotonic() > self._year_again:
            began = time.monotonic()
            self.year = self.promise.year(self._reader, datetime.now(UTC))
            took = time.monotonic() - began
            self._year_again = began + max(_PAUSE, _SHARE * took)
        changed |= self.cohorts.follow(released=changed)
        self.version += changed or before != (self.spent, self.year)


class Board:
    """Data about all streams of a configuration.

    Args:
        config: a configuration that was loaded.
        file: path of the configuration; its tokens are followed.

    Attributes:
        looks: the data about each stream, by name.
        readers: the streams that each token may read.
        trouble: why the release store cannot be read; None if it can.
        seen: time of the last reading.

    Raises:
        PlanError: the release store cannot be opened.
    """

    def __init__(self, config: Config, file: Path) -> None:
        self._reader = ReleaseReader(config.releases.store)
        self._tokens = FollowedTokens(file, config.tokens)
        self.readers = Readers(self._tokens, config.streams)
        self.looks = {
            name: Look(self._reader, StreamPromise(name, stream))
            for name, stream in config.streams.items()
        }
        self.trouble: str | None = None
        self.seen: datetime | None = None

    def follow(self) -> None:
        """Read what is new in the release store, and in the tokens."""
        self._tokens.look()
        try:
            for look in self.looks.values():
                look.follow()
        except PanPrivacyError as error:
            self.trouble = str(error)
        except Exception as error:  # noqa: BLE001 - of rows that no service wrote; go on
            self.trouble = f"a row of it is damaged ({type(error).__name__})"
        else:
            self.trouble, self.seen = None, datetime.now(UTC)

    def close(self) -> None:
        """Close the release store."""
        self._reader.close()
