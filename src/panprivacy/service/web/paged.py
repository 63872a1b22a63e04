"""Answers to readers: made and sent a page at a time, within a common limit of memory.

A reader that does not read holds one page, for a limited time. Readers beyond the limit are told to
come again before anything is made for them, and other tokens still find room.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from panprivacy.service.incoming.admission import Room, Sender
from panprivacy.service.incoming.fair_queue import FairQueue
from panprivacy.service.outgoing.exports import Piece

_MOST_BYTES: Final = 64 << 20
"""Bytes of all answers that are being made or sent."""
_PAGE_BYTES: Final = 1 << 20
"""Bytes that are held for a page before its size is known."""
_PAGE_SECONDS: Final = 30.0
"""Seconds in which a reader takes a page, or each mebibyte of a longer one."""


class PagedAnswers:
    """Makes the pages of answers, in one thread, and limits the bytes of all of them.

    Tokens take turns: a reader waits for one page of each other token before each of its own.

    Args:
        most: bytes of all pages in memory; a token alone has a third of them for one stream.
    """

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._room = Room(most)
        self._maker = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-pages")
        self._turns = FairQueue[tuple[Iterator[Piece], Future[Piece]]]()

    async def answer(
        self,
        reader: Sender,
        pieces: AsyncGenerator[Piece, None],
        headers: Mapping[str, str],
    ) -> Response:
        """Return a response once its first piece is made; it makes the others when it is sent.

        Args:
            reader: the token that asks, and the stream that it names.
            pieces: makes the pieces; it is not started without room.
            headers: headers of the response.

        Raises:
            Problem: there is no room for another answer.
        """
        held = _Held(self._room, reader)
        try:
            first = await anext(pieces)
            held.resize(len(first.data))
        except BaseException:
            held.give_back()
            await pieces.aclose()
            raise
        return _PagedResponse(first, pieces, held, headers)

    async def made(self, token: str, pieces: Iterator[Piece]) -> AsyncGenerator[Piece, None]:
        """Yield pieces that the thread makes for a token, each when the one before was taken."""
        is_last = False
        while not is_last:
            made = Future[Piece]()
            self._turns.put(token, (pieces, made))
            self._maker.submit(self._make_next)
            piece = await asyncio.wrap_future(made)
            is_last = piece.is_last
            del made
            yield piece
            del piece  # while the next one is made

    def _make_next(self) -> None:
        """Make the piece whose turn it is."""
        turn = self._turns.get()
        if turn is None or not turn[1].set_running_or_notify_cancel():
            return
        try:
            turn[1].set_result(next(turn[0]))
        except BaseException as error:  # noqa: BLE001 - for who waits
            turn[1].set_exception(error)


class _Held:
    """The room of one answer.

    Args:
        room: the room of all of them.
        reader: the token that asks.

    Raises:
        Problem: there is no room.
    """

    __slots__ = ("_reader", "_room", "_size")

    def __init__(self, room: Room, reader: Sender) -> None:
        self._room, self._reader, self._size = room, reader, 0
        self.resize(_PAGE_BYTES)

    def resize(self, size: int) -> None:
        """Hold room for a piece; raise `Problem` if there is not enough."""
        more = max(size, _PAGE_BYTES) - self._size
        if more > 0:
            self._room.check(self._reader, more)
        self._room.hold(self._reader, more)
        self._size += more

    def give_back(self) -> None:
        """Release the room."""
        self._room.hold(self._reader, -self._size)
        self._size = 0


class _PagedResponse(Response):
    """Response that makes each piece after its reader took the one before it.

    Args:
        first: the first piece; if it is the only one, its length is announced.
        pieces: makes the other ones.
        held: its room, which it gives back.
        headers: its headers.
    """

    def __init__(
        self,
        first: Piece,
        pieces: AsyncGenerator[Piece, None],
        held: _Held,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(headers=headers)
        del self.headers["Content-Length"]
        if first.is_last:
            self.headers["Content-Length"] = str(len(first.data))
        self._first: Piece | None = first
        self._pieces, self._held = pieces, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send everything; end early if the reader is gone or too slow."""
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            async with aclosing(self._pieces):
                with suppress(ClientDisconnect, TimeoutError):
                    await send(head)
                    await self._send_pieces(send, only_head=scope["method"] == "HEAD")
        finally:
            self._held.give_back()

    async def _send_pieces(self, send: Send, *, only_head: bool) -> None:
        piece, self._first = self._first, None
        while piece is not None:
            data, is_last = (b"", True) if only_head else (piece.data, piece.is_last)
            async with asyncio.timeout(_PAGE_SECONDS * (1 + len(data) // _PAGE_BYTES)):
                await send({"type": "http.response.body", "body": data, "more_body": not is_last})
            piece, data = None, b""  # not two at a time
            if not is_last:
                piece = await anext(self._pieces)
                self._held.resize(len(piece.data))


async def single_page(made: Callable[[], Awaitable[bytes]]) -> AsyncGenerator[Piece, None]:
    """Yield an answer of one piece."""
    yield Piece(await made(), is_last=True)
