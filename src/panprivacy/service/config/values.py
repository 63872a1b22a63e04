"""Shared parts of all tables of a configuration: durations, and errors that name a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.ground.parsing import parse_duration
from panprivacy.intake.sources.columns import show
from panprivacy.service.client import ROOT_PATH

KeyPath = tuple[str | int, ...]
"""Keys, and positions in lists, that identify a place in a configuration."""

_SETTING: Final = re.compile(r'\b([a-z_]+)=(True\b|False\b|\d[\d_.]*\b|"[^"]*")')
_ARGUMENT: Final = re.compile(r"\b([a-z_]+)=(?=\W|$)")

_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?\.?")

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


def in_toml(reason: str) -> str:
    """Return an error of the library in the words of a configuration.

    The library names arguments and values in Python's syntax; a configuration has TOML's.

    >>> in_toml("declare all groups=, or say ignore_others=True")
    'declare all groups, or say ignore_others = true'
    """
    reason = reason.replace("True or False", "true or false")
    reason = reason.replace("a pair (lowest, highest)", "a list [lowest, highest]")
    reason = _SETTING.sub(lambda found: f"{found[1]} = {_value(found[2])}", reason)
    return _ARGUMENT.sub(r"\1", reason)


def _value(text: str) -> str:
    return text.lower() if text in {"True", "False"} else text


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


def _is_ipv6(host: str) -> bool:
    """Return whether this is an address of IPv6 as browsers write it."""
    try:
        return str(IPv6Address(host)) == host
    except ValueError:
        return False


def parse_origin(text: str, what: str = "origin") -> tuple[str, str]:
    """Return an origin as browsers write it, and the path after it.

    Args:
        text: an origin, with a path or without.
        what: the setting that has it, for the error.

    Raises:
        PlanError: it is no origin.
    """
    message = f"{what} must be like https://numbers.example, not {show(text)}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise PlanError(message) from None
    rest = parts.query, parts.fragment, parts.username, parts.password
    path = parts.path.rstrip("/")
    host = parts.hostname or ""
    if parts.scheme not in _PORTS or any(rest) or not ROOT_PATH.fullmatch(path) or port == 0:
        raise PlanError(message)
    if not (_is_ipv6(host) if ":" in host else _HOST.fullmatch(host)):
        message += ": write the host as browsers send it, such as xn--bcher-kva.example"
        raise PlanError(message)
    host = f"[{host}]" if ":" in host else host
    shown = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}", path
