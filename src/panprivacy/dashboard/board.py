"""All that the pages show, kept up to date by one thread for all who look."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from panprivacy.dashboard.guard import Readers
from panprivacy.dashboard.history import History
from panprivacy.dashboard.promise import Spent, StreamPromise, Year
from panprivacy.errors import PanPrivacyError
from panprivacy.service.config.config import Config
from panprivacy.service.config.following import FollowedTokens
from panprivacy.service.outgoing.reader import ReleaseReader

_PAUSE: Final = 5.0
"""Seconds between two looks at the ledger, but for when something was released."""
_SHARE: Final = 20
"""A year of a large ledger is looked at in a 20th of the time."""


class Look:
    """What is known of one stream.

    Args:
        reader: of the release store.
        promise: of the stream.

    Attributes:
        promise: what the configuration promises.
        history: what was released.
        spent: what the current window has spent; None until it is known.
        year: what a year of windows cost; None until it is known.
        version: counts how often any of these changed.
    """

    def __init__(self, reader: ReleaseReader, promise: StreamPromise) -> None:
        self._reader, self.promise = reader, promise
        self.history = History(reader, promise.name)
        self.spent: Spent | None = None
        self.year: Year | None = None
        self.version = 0
        self._again = self._year_again = 0.0

    def unit(self, statistic: str) -> str:
        """What answers of a statistic count, as it is planned now."""
        plan = self.promise.plans.get(statistic)
        return plan.unit if plan else "users"

    def follow(self) -> None:
        """Take over what is new.

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
        self.version += changed or before != (self.spent, self.year)


class Board:
    """All streams of a configuration.

    Args:
        config: a configuration that was loaded.
        file: where it is; its tokens are followed.

    Attributes:
        looks: what is known of each stream, by its name.
        readers: who may read what.
        trouble: why the release store cannot be read; None if it can.
        seen: when it was read last.

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
        """Take over what is new in the release store, and in the tokens."""
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
