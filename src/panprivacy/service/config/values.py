"""Shared parts of all tables of a configuration: durations, and errors that name a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.ground.parsing import parse_duration

KeyPath = tuple[str | int, ...]
"""Keys, and positions in lists, that identify a place in a configuration."""

DAY: Final = 86_400
"""A day in seconds."""


class ConfigError(PlanError):
    """An error in one table of a configuration.

    Args:
        table: the table.
        reason: what is wrong there and what to do.
        key: the key of the table that causes it, if any.
    """

    def __init__(self, table: KeyPath, reason: str, key: str | None = None) -> None:
        super().__init__(reason)
        self.table, self.reason, self.key = table, reason, key


@contextmanager
def in_table(*table: str | int) -> Iterator[None]:
    """Add the table to errors raised in the block."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError((*table, *error.table), error.reason, error.key) from None
    except PanPrivacyError as error:
        raise ConfigError(table, str(error)) from None
    except MemoryError:
        raise ConfigError(table, "this takes more memory than there is") from None


def seconds(most: int, **named: str) -> int:
    """Read a length of time."""
    ((name, text),) = named.items()
    try:
        length = int(parse_duration(text))
    except (ValueError, OverflowError):
        message = f"{name} must be a length of time, such as 30s, 15m, 12h, 1d or 1w"
        raise PlanError(message) from None
    if length > most:
        message = f"{name} must be at most {most // DAY:,}d"
        raise PlanError(message)
    return length
