"""Tells a service that runs that somebody has seen its memory; needs nothing beyond Python."""

from __future__ import annotations

import json
import re
import socket
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from panprivacy.coins import SystemCoins
from panprivacy.errors import InputError, PlanError

_KEY_BYTES: Final = 16
_SECONDS: Final = 60.0
_TRIES: Final = 3
_LARGEST_ANSWER: Final = 1 << 16
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


class UnsureError(InputError):
    """It may have been announced, or not: ask again with the same key, which announces it once."""


def new_key() -> str:
    """A name that no other announcement has."""
    return SystemCoins().secret(_KEY_BYTES).hex()


def announced(service: str, stream: str, token: str, key: str) -> dict[str, Any]:
    """What a service says to an announced intrusion; it is asked again where no answer comes.

    Args:
        service: where it listens, `http://127.0.0.1:8642` or `unix:/run/http.sock`.
        stream: whose state was seen.
        token: one that may announce.
        key: what this look is called: one name is announced once, however often it is sent.

    Returns:
        `window_began`, the `number` of the look in that window, and how many are `left`.

    Raises:
        PlanError: the URL or the token can be none, or no service answers there.
        InputError: the service refuses it.
        UnsureError: it does not answer, or fails.
    """
    if not _TOKEN.fullmatch(token):
        message = "a token is one word, pp_... as it was shown, and nothing else"
        raise PlanError(message)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key, "Content-Length": "0"}
    for left in reversed(range(_TRIES)):
        with closing(_connection(service)) as connection:
            try:
                connection.request("POST", f"/v1/streams/{stream}/announce", headers=headers)
                answer = connection.getresponse()
                return _told(answer.status, answer.read(_LARGEST_ANSWER), stream)
            except (OSError, HTTPException):
                if left:
                    continue
    message = f"{service} does not answer, so nobody knows whether it was announced to {stream}"
    raise UnsureError(message)


def _told(status: int, body: bytes, stream: str) -> dict[str, Any]:
    """What an answer says; an error where it is none of a service that has announced."""
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        message = "this is no panprivacy service, or another program stands before it"
        raise PlanError(message)
    if status == 200:
        return told
    message = f"{stream}: {told.get('detail', f'HTTP status {status}')}"
    raise UnsureError(message) if status >= 500 else InputError(message)


def _connection(service: str) -> HTTPConnection:
    """A connection to be opened."""
    url = urlsplit(service)
    try:
        port = url.port
    except ValueError:
        port = -1
    if url.scheme == "unix" and url.path and not url.netloc:
        return _UnixConnection(url.path)
    kinds = {"http": HTTPConnection, "https": HTTPSConnection}
    rest = url.path.strip("/") or url.query or url.fragment or url.username
    if url.scheme not in kinds or not url.hostname or rest or port == -1:
        message = "URL must be http://HOST:PORT, https://HOST:PORT or unix:/PATH, as the service "
        message += "says where it listens"
        raise PlanError(message)
    return kinds[url.scheme](url.hostname, port, timeout=_SECONDS)


class _UnixConnection(HTTPConnection):
    """Over a Unix socket.

    Args:
        path: of the socket.
    """

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Open it."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)
