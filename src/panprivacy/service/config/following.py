"""Tokens that follow the configuration of a running service."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from panprivacy.errors import PlanError
from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import Token, Tokens
from panprivacy.service.journal import JOURNAL, Event


class FollowedTokens(Tokens):
    """The tokens of a configuration file, in its current version.

    A file that cannot be loaded changes nothing, and is reported once.

    Args:
        file: the configuration.
        configured: its tokens when it was loaded.
    """

    __slots__ = ("_configured", "_file", "_seen")

    def __init__(self, file: Path, configured: Sequence[Token]) -> None:
        super().__init__(configured)
        self._file, self._configured = file, tuple(configured)
        self._seen: tuple[int, ...] | None = None

    def look(self) -> None:
        """Load the tokens if the file has changed."""
        found = self._stamp()
        if found == self._seen:
            return
        self._seen = found
        try:
            configured = load(self._file).tokens
        except PlanError as error:
            JOURNAL.error(Event.no_new_tokens, reason=str(error))
            return
        if configured != self._configured:
            self._configured = configured
            self.take_over(configured)
            JOURNAL.warning(Event.new_tokens)

    def _stamp(self) -> tuple[int, ...]:
        """Return values that change with the file."""
        try:
            status = self._file.stat()
        except OSError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
