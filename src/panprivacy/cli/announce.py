"""`panprivacy announce`: tell a service that runs that somebody has seen its memory."""

from __future__ import annotations

import json
import re
import socket
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from panprivacy.coins import SystemCoins
from panprivacy.errors import InputError, PlanError

_KEY_BYTES = 16
_NAME = re.compile(r"[\x21-\x7e]{1,256}")
_SECONDS = 60.0
_TRIES = 3
_LARGEST_ANSWER = 1 << 16


def announce(
    service: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="Where it listens: http://127.0.0.1:8642, or unix:/run/http.sock."
        ),
    ],
    streams: Annotated[
        list[str], typer.Argument(metavar="STREAM...", help="Those whose state was seen.")
    ],
    token: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="One that may announce; /dev/stdin takes it from a pipe.",
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What this look is called, to ask again where it is not known whether it was "
            "announced; drawn unless given.",
        ),
    ] = None,
) -> None:
    """Tell a service that somebody has seen its memory: it may be seen once more then.

    Who sees the memory sees all streams: name each. Until this command ends well, the state may
    not be seen again.
    """
    name = SystemCoins().secret(_KEY_BYTES).hex() if key is None else key
    if not _NAME.fullmatch(name):
        message = "--key must be 1 to 256 visible ASCII characters"
        raise PlanError(message)
    bearer = _read(token)
    for stream in streams:
        told = _announced(service, stream, bearer, name)
        typer.echo(
            f"{stream}: announced, number {told['number']:,} of the window that began "
            f"{told['window_began']}; {told['left']:,} left."
        )


def _read(token: Path) -> str:
    """The token in a file."""
    try:
        text = token.read_text().strip()
    except UnicodeDecodeError:
        text = ""
    if not (text.isascii() and text.isprintable() and text):
        message = "--token must name a file with a token, pp_..., and nothing else"
        raise PlanError(message)
    return text


def _announced(service: str, stream: str, token: str, key: str) -> dict[str, Any]:
    """What the service says; it is asked again where no answer comes."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key, "Content-Length": "0"}
    for left in reversed(range(_TRIES)):
        with closing(_connection(service)) as connection:
            try:
                connection.request("POST", f"/v1/streams/{stream}/announce", headers=headers)
                answer = connection.getresponse()
                return _told(answer.status, answer.read(_LARGEST_ANSWER), stream, key)
            except (OSError, HTTPException):
                if left:
                    continue
    message = f"{service} does not answer, so nobody knows whether it was announced to {stream}: "
    message += _again(key)
    raise InputError(message)


def _told(status: int, body: bytes, stream: str, key: str) -> dict[str, Any]:
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
    if status >= 500:
        message += f"; {_again(key)}"
    raise InputError(message)


def _again(key: str) -> str:
    return f"repeat this with --key {key}, which announces it once"


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
