"""What all tables of a configuration share: addresses, durations, errors that name a table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from panprivacy._parse import parse_duration
from panprivacy.errors import PanPrivacyError, PlanError

Place = tuple[str | int, ...]
"""Keys, and positions in lists, that lead to a place in a configuration."""

DAY: Final = 86_400
"""Seconds."""

_LONGEST_SOCKET_PATH: Final = 107
_LAST_PORT: Final = 0xFFFF
_PLACE: Final = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*)):(\d{1,5})", re.ASCII)


class ConfigError(PlanError):
    """Something is wrong in one table of a configuration.

    Args:
        table: the table.
        reason: what is wrong there and what to do.
        key: of the table, if one is to blame.
    """

    def __init__(self, table: Place, reason: str, key: str | None = None) -> None:
        super().__init__(reason)
        self.table, self.reason, self.key = table, reason, key


@contextmanager
def in_table(*table: str | int) -> Iterator[None]:
    """Say in which table it is that something is wrong."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError((*table, *error.table), error.reason, error.key) from None
    except PanPrivacyError as error:
        raise ConfigError(table, str(error)) from None
    except MemoryError:
        raise ConfigError(table, "this takes more memory than there is") from None


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a port of an IP address, or the path of a Unix socket.

    Args:
        host: the IP address; empty for a Unix socket.
        port: 0 for any free one.
        path: of the socket; empty for an IP address.
    """

    host: str = ""
    port: int = 0
    path: str = ""


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


def address(text: str, forms: str) -> Address:
    """Read where to listen; the same place is always the same address."""
    message = f"listen must be {forms}"
    kind, _, path = text.partition(":")
    if kind == "unix":
        return Address(path=_socket_path(path))
    found = _PLACE.fullmatch(text)
    try:
        host = ip_address((found[1] or found[2]) if found else "")
    except ValueError:
        raise PlanError(message) from None
    if found is None or (host.version == 6) != bool(found[1]) or int(found[3]) > _LAST_PORT:
        raise PlanError(message)
    return Address(str(host), int(found[3]))


def _socket_path(path: str) -> str:
    if not path.startswith("/") or "\0" in path or path.endswith("/"):
        message = "listen must name a Unix socket by its whole path: unix:/run/panprivacy/a.sock"
        raise PlanError(message)
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        message = f"listen must name a path of at most {_LONGEST_SOCKET_PATH} bytes"
        raise PlanError(message)
    return os.path.normpath(path)
