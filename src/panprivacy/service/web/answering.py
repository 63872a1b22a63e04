"""Answering of requests: by a fast path without ASGI, or by the application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

_PIECE = 1 << 14
"""Maximum bytes of an answer that wait to be sent; the rest waits for them."""


class Waiting(Protocol):
    """A request that waits for its answer."""

    def cancel(self, msg: object = None) -> None:
        """Make the request be answered now."""


class Taker(Protocol):
    """Handler of requests that all have the same head, without ASGI."""

    def take(self, body: bytearray, tell: Callable[[Response], None]) -> Waiting | None:
        """Start a request whose body is complete, and pass its answer to `tell` later.

        Return None for a request that the application must answer.
        """


class FastPath(Protocol):
    """Fast path that selects requests to handle without ASGI."""

    def taker(self, scope: Any) -> Taker | None:
        """Return the handler of requests with this head; None if the application answers them."""


class Answering:
    """The transport of an application, which closes a connection properly.

    Args:
        transport: the transport of the connection.
        finish: closes the connection.
    """

    def __init__(self, transport: asyncio.Transport, finish: Callable[[], None]) -> None:
        self.write, self.is_closing, self.close = transport.write, transport.is_closing, finish


async def answered(
    cycle: RequestResponseCycle,
    app: Callable[..., Awaitable[None]],
    scope: Any,
    receive: Any,
    send: Callable[[Any], Awaitable[None]],
) -> None:
    """Answer a request in pieces, each of which waits until the previous one has been sent.

    An answer announces the end of the connection if the body of its request was not read
    completely.
    """
    is_endless = False

    async def tell(message: Any) -> None:
        nonlocal is_endless
        # So no more is made of a long answer; uvicorn drops others, as many errors would take long.
        if cycle.disconnected and message.get("more_body"):
            raise ClientDisconnect
        if cycle.more_body:
            cycle.keep_alive = False
        if message["type"] == "http.response.start" and scope["http_version"] == "1.0":
            is_endless = all(name != b"content-length" for name, _ in message["headers"])
        if is_endless:  # before HTTP/1.1 there are no chunks: the end of the connection ends it
            cycle.keep_alive, cycle.chunked_encoding = False, False
        body = message.get("body", b"")
        if len(body) <= _PIECE:
            await give(message)
            return
        last = (len(body) - 1) // _PIECE * _PIECE
        for at in range(0, last, _PIECE):
            await give({**message, "body": body[at : at + _PIECE], "more_body": True})
        await give({**message, "body": body[last:]})

    async def give(message: Any) -> None:
        if is_endless:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    try:
        await app(scope, receive, tell)
    finally:
        cycle.body = bytearray()  # a part of the refused body; uvicorn stores it
        scope["headers"].clear()  # uvicorn stores them as long as the connection


def join_response(response: Response, headers: Iterable[tuple[bytes, bytes]], end: bytes) -> bytes:
    """Return a response as it is sent, with additional headers, and `end` after the last one."""
    lines = [b"%s: %s\r\n" % pair for pair in (*headers, *response.raw_headers)]
    start = STATUS_LINE[response.status_code]
    return b"".join((start, *lines, end, b"\r\n", bytes(response.body)))
