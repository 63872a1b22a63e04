"""Client that announces an intrusion to a running service; needs nothing beyond Python."""

from __future__ import annotations

import json
import re
import socket
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from panprivacy.errors import InputError, PlanError
from panprivacy.privacy.coins import SystemCoins

_KEY_BYTES: Final = 16
_SECONDS: Final = 60.0
_TRIES: Final = 3
_LARGEST_ANSWER: Final = 1 << 16
ROOT_PATH: Final = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")
"""Path below which a proxy serves a service or a dashboard, without a slash at its end."""
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


class UnsureError(InputError):
    """It may have been announced or not: repeat with the same key, which announces it once."""


def new_key() -> str:
    """Return a name that no other announcement has."""
    return SystemCoins().secret(_KEY_BYTES).hex()


def announced(service: str, stream: str, token: str, key: str) -> dict[str, Any]:
    """Announce an intrusion, and return the answer of the service; retry if there is none.

    Args:
        service: its address, `http://127.0.0.1:8642` or `unix:/run/http.sock`, or its URL behind
            a proxy, `https://example.org/pp`.
        stream: the stream whose state was seen.
        token: a token that may announce.
        key: the name of this look: one name is announced once, however often it is sent.

    Returns:
        `window_began`, the `number` of the look in that window, and the number `left`.

    Raises:
        PlanError: the URL or the token is invalid, or no service answers there.
        InputError: the service refuses it.
        UnsureError: it does not answer, or fails.
    """
    check_token(token)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key, "Content-Length": "0"}
    for left in reversed(range(_TRIES)):
        connection, root = connection_to(service)
        with closing(connection):
            try:
                connection.request("POST", f"{root}/v1/streams/{stream}/announce", headers=headers)
                answer = connection.getresponse()
                return _answer(answer.status, answer.read(_LARGEST_ANSWER), stream)
            except (OSError, HTTPException):
                if left:
                    continue
    message = f"{service} does not answer, so nobody knows whether it was announced to {stream}"
    raise UnsureError(message)


def check_token(token: str) -> None:
    """Check that a token can stand in a request.

    Raises:
        PlanError: it cannot.
    """
    if not _TOKEN.fullmatch(token):
        message = "a token is one word, pp_... as it was shown, and nothing else"
        raise PlanError(message)


def _answer(status: int, body: bytes, stream: str) -> dict[str, Any]:
    """Return the body of an answer; raise an error unless the intrusion was announced."""
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


def connection_to(service: str) -> tuple[HTTPConnection, str]:
    """Return an unopened connection, and the path at which a proxy serves the service.

    Raises:
        PlanError: the URL is invalid.
    """
    url = urlsplit(service)
    try:
        port = url.port
    except ValueError:
        port = -1
    if url.scheme == "unix" and url.path and not url.netloc:
        return _UnixConnection(url.path), ""
    kinds = {"http": HTTPConnection, "https": HTTPSConnection}
    rest, root = url.query or url.fragment or url.username, url.path.rstrip("/")
    is_path = ROOT_PATH.fullmatch(root)
    if url.scheme not in kinds or not url.hostname or rest or port == -1 or not is_path:
        message = "URL must be http://HOST:PORT, https://HOST:PORT or unix:/PATH, as the service "
        message += "says where it listens"
        raise PlanError(message)
    return kinds[url.scheme](url.hostname, port, timeout=_SECONDS), root


class _UnixConnection(HTTPConnection):
    """An HTTP connection over a Unix socket.

    Args:
        path: the path of the socket.
    """

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Open the connection."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)
