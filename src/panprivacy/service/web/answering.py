"""Who answers requests: what can do without ASGI, and the application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

_PIECE = 1 << 14
"""Bytes of an answer that may wait to be sent; the rest waits for them."""


class Waiting(Protocol):
    """A request that waits for its answer."""

    def cancel(self, msg: object = None) -> None:
        """Have it answered now."""


class Taker(Protocol):
    """Answers requests that all have one head, without ASGI."""

    def take(self, body: bytearray, tell: Callable[[Response], None]) -> Waiting | None:
        """Begin with a request whose body is there, and tell its answer later.

        None for one that the application answers.
        """


class Direct(Protocol):
    """Says what can do without ASGI."""

    def taker(self, scope: Any) -> Taker | None:
        """What answers requests with this head; None if the application does."""


class Answering:
    """The transport of an application, which closes a connection in good order.

    Args:
        transport: of the connection.
        finish: closes it.
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
    """Answer a request, in pieces of which each waits until the one before has left.

    An answer says that the connection ends if the body of its request has not been read to the end.
    """

    async def tell(message: Any) -> None:
        if cycle.more_body:
            cycle.keep_alive = False
        body = message.get("body", b"")
        if len(body) <= _PIECE:
            await send(message)
            return
        last = (len(body) - 1) // _PIECE * _PIECE
        for at in range(0, last, _PIECE):
            await send({**message, "body": body[at : at + _PIECE], "more_body": True})
        await send({**message, "body": body[last:]})

    try:
        await app(scope, receive, tell)
    finally:
        cycle.body = bytearray()  # a part of what was refused; uvicorn keeps it
        scope["headers"].clear()  # uvicorn keeps them as long as the connection


def join_response(response: Response, headers: Iterable[tuple[bytes, bytes]], end: bytes) -> bytes:
    """Return a response as it is sent, with further headers, and `end` after the last of them."""
    lines = [b"%s: %s\r\n" % pair for pair in (*headers, *response.raw_headers)]
    start = STATUS_LINE[response.status_code]
    return b"".join((start, *lines, end, b"\r\n", bytes(response.body)))
