"""Reading of one connection: one request at a time, in pieces that take turns with others."""

from __future__ import annotations

import asyncio
from typing import Protocol

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from panprivacy.service.web.connections import Flow, Uncounted
from panprivacy.service.web.fast_lane import FastLane
from panprivacy.service.web.heads import HeadGuard

_BUFFER = bytearray(1 << 18)
"""The newest data of any connection: the parser copies what it needs before more data comes."""
_RECEIVED = memoryview(_BUFFER)
_FIRST = _RECEIVED[: 1 << 12]
"""Buffer for heads of senders without a token so far: pipelined data waits in memory."""
_ZEROS = memoryview(bytes(len(_RECEIVED)))
_EMPTY_LINE = b"\r\n\r\n"


class ReadConnection(Protocol):
    """A connection, as its `Reader` sees it.

    Attributes:
        cycle: the newest request; None before the first.
        flow: stops and resumes reading.
        head: the limits of the head.
        lane: the requests that are answered at once.
        is_known: whether the sender has shown a token with which it may send.
        timeout_keep_alive_task: the timer of an idle connection.
    """

    cycle: RequestResponseCycle
    flow: Flow
    head: HeadGuard
    lane: FastLane
    is_known: bool
    loop: asyncio.AbstractEventLoop
    server_state: Uncounted
    transport: asyncio.Transport
    timeout_keep_alive_task: asyncio.TimerHandle | None

    @property
    def idle(self) -> bool:
        """Whether no request waits for its answer."""

    def data_received(self, data: bytes) -> None:
        """Parse data."""

    def begin(self) -> None:
        """Start the next request, with the data received so far."""


class Reader:
    """Reader of one connection.

    Of pipelined requests, one is parsed once the previous one has its answer, and that answer has
    been sent. Until then nothing is read, and at most the data of one piece waits.

    Args:
        connection: the connection.

    Attributes:
        deaf: whether further data is ignored.
        body_left: the number of missing bytes of a body of known length.
    """

    __slots__ = ("_ahead", "_at", "_connection", "_large_piece", "body_left", "deaf")

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self._large_piece = connection.server_state.limits.piece_bytes
        self.deaf, self.body_left = False, 0
        self._ahead = bytearray()  # pipelined data after a request that has no answer yet
        self._at = 0  # the start of the next request in it

    @property
    def ahead(self) -> int:
        """Size of the data that waits, in bytes."""
        return len(self._ahead)

    @property
    def is_between(self) -> bool:
        """Whether the parser has read one request to its end, and nothing of the next one."""
        one = self._connection
        return one.idle and not one.head.is_open and not (one.cycle and one.cycle.more_body)

    @property
    def _is_in_chunks(self) -> bool:
        """Whether a body in chunks comes: parsing takes time for each chunk, however short."""
        one = self._connection
        if one.cycle is None or not one.cycle.more_body:
            return False
        return not (one.head.is_open or self.body_left)

    @property
    def _must_answer(self) -> bool:
        """Whether there is a complete request without an answer, or with one that is not sent."""
        one = self._connection
        if one.cycle is None or one.head.is_open or one.cycle.more_body:
            return False
        return one.flow.write_paused or not one.idle

    def buffer(self) -> memoryview:
        """Return the buffer for new data."""
        if self.deaf or not (self._connection.is_known or self.body_left) or self._is_in_chunks:
            return _FIRST
        return _RECEIVED

    def take(self, size: int) -> None:
        """Take in new data of the buffer, and overwrite it."""
        one = self._connection
        with _RECEIVED[:size] as data:
            try:
                if not self.deaf and not one.lane.take_again(one.cycle, data):
                    self._received(data)
            finally:
                data[:] = _ZEROS[:size]
        if size >= self._large_piece or (size == len(_FIRST) and self._is_in_chunks):
            one.flow.await_turn()
            one.server_state.pieces.add(one.flow.take_turn)

    def _received(self, data: memoryview) -> None:
        """Take in data, up to a request that has to wait for an answer, or for its turn."""
        size = len(data)
        end = 0 if self._must_take_turns(size) else self._take_in(_BUFFER, 0, size)
        if end < size:
            self._ahead, self._at = bytearray(data[end:]), 0
            self._connection.flow.hold()
            self.go_on_soon()

    def _must_take_turns(self, size: int) -> bool:
        """Return whether a sender without a token so far sends several requests at once."""
        one = self._connection
        if one.is_known or (one.cycle is not None and one.cycle.more_body):
            return False
        return _BUFFER.count(_EMPTY_LINE, 0, size) > 1

    def _take_in(self, source: bytearray, at: int, end: int) -> int:
        """Parse requests until one has to be answered first; return the start of the next one."""
        one = self._connection
        one.lane.forget_head()
        between, start, newest = self.is_between, at, at
        while at < end and not self.deaf:
            if self._must_answer:
                return at
            if self._is_in_chunks and at > start:  # the rest waits for its turn
                one.begin()
                return at
            piece = self._end_of_piece(source, at, end)
            with memoryview(source)[at:piece] as data:
                one.data_received(data)  # type: ignore[arg-type]  # the parser takes any buffer
            newest, at = at, piece
        one.begin()
        if between:
            with memoryview(source)[start:at] as data:
                one.lane.remember(data)
        self._check_head(at - newest)
        return end

    def _end_of_piece(self, source: bytearray, at: int, end: int) -> int:
        """Return the end of the piece to parse, so that two requests are not parsed at once.

        Of a body in chunks it is small. All heads, and all such bodies, end with an empty line.
        """
        if self.body_left:
            return min(at + self.body_left, end)
        if self._is_in_chunks:
            end = min(at + len(_FIRST), end)
        found = source.find(_EMPTY_LINE, at, end)
        return end if found < 0 else found + len(_EMPTY_LINE)

    def _check_head(self, size: int) -> None:
        """Expect the rest of a head, given the size of its newest part."""
        one = self._connection
        if one.head.is_open:
            one.head.check_unparsed(size)
        elif one.idle and not self.deaf:  # empty lines before a head
            one.head.expect()

    def go_on(self) -> None:
        """Take in pipelined data, as far as possible."""
        if self.deaf or self._connection.transport.is_closing() or self._must_answer:
            return
        self._at = self._take_in(self._ahead, self._at, len(self._ahead))
        if self._at == len(self._ahead):
            self.forget()
            self._connection.flow.release()
        elif self._is_in_chunks:
            self.go_on_soon()

    def go_on_soon(self) -> None:
        """Schedule data that waits: requests of a sender with a token need not wait their turn."""
        if not self._ahead:
            return
        one = self._connection
        if one.timeout_keep_alive_task is not None:
            one.timeout_keep_alive_task.cancel()
            one.timeout_keep_alive_task = None
        one.head.stop()
        if self._is_in_chunks:
            one.server_state.pieces.add(self.go_on)
        elif one.is_known:
            one.loop.call_soon(self.go_on)
        else:
            one.server_state.turns.add(self.go_on)

    def forget(self) -> None:
        """Overwrite and drop pipelined data."""
        self._ahead[:] = bytes(len(self._ahead))
        self._ahead, self._at = bytearray(), 0
