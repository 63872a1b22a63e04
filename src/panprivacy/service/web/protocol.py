"""uvicorn's protocol, for a service open to anybody that counts no requests.

Most requests contain a small batch, complete at once. These are answered without ASGI and without a
task; a request that takes longer, or has an error in its head, goes to the application.

A connection allows its sender a number of seconds and bytes for a head, and for the rest of a body
that is not read. An invalid request gets an answer as well, and then the connection is closed.

Of pipelined requests, one is parsed once the previous one has its answer, and that answer has been
sent. Until then nothing is read: at most the data of one piece waits, which is small before the
sender has shown a token. A sender that reads nothing for some seconds is cut off.

Connections with large bodies take turns: one piece is read in each turn of the event loop, so that
a small request waits for one piece and not for one of every such connection. A body in chunks comes
in small pieces, as each of its bytes may be a chunk.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import resource
from collections.abc import Iterable
from functools import partial
from hmac import compare_digest
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from panprivacy.service.incoming.admission import overwrite
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.web.answering import (
    Answering,
    FastPath,
    Taker,
    Waiting,
    answered,
    join_response,
)
from panprivacy.service.web.connections import Flow, Uncounted

_HEAD_SECONDS = 10.0
_REST_SECONDS = 5.0
"""Seconds to read an answer before further data of the sender meets a closed connection."""
_HEAD_BYTES = 1 << 14
_UNPARSED_BYTES = _HEAD_BYTES + (1 << 12)
"""Bytes of a head that is incomplete: the parser joins the parts of a long header again and again,
so each of them takes time and memory as well."""
_LARGE_PIECE = 1 << 17
"""Bytes of a piece after which other connections have their turn."""
_MOST_HEADERS = 100
_UNREAD_SECONDS = 5.0
MOST_CONNECTIONS = 1_800
"""Maximum number of connections; beyond it, the oldest idle one is closed."""
_OTHER_FILES = 200
"""Descriptors that connections leave to everything else."""
_SILENT = logging.getLogger("panprivacy.service.uvicorn")
"""Logger that drops uvicorn's tracebacks, and its line for each bad request."""
_BUFFER = bytearray(1 << 18)
"""The newest data of any connection: the parser copies what it needs before more data comes."""
_RECEIVED = memoryview(_BUFFER)
_FIRST = _RECEIVED[: 1 << 12]
"""Buffer for heads of senders without a token so far: pipelined data waits in memory."""
_ZEROS = memoryview(bytes(len(_RECEIVED)))
_EMPTY_LINE = b"\r\n\r\n"
_KEY = re.compile(rb"^idempotency-key\s*:", re.IGNORECASE | re.MULTILINE)
_SILENT.setLevel(logging.CRITICAL + 1)


class GuardedProtocol(HttpToolsProtocol, asyncio.BufferedProtocol):
    """Protocol that limits the resources of a connection, and answers invalid requests.

    uvicorn waits without end for the rest of a head, or of a body that was refused.

    Args:
        direct: answers requests before the application, if it can.
        given: arguments of uvicorn's protocols.
    """

    _timer: asyncio.TimerHandle | None = None
    _active: RequestResponseCycle | None = None
    _next: Any = None
    """The application for a request that has not been started, as its body may be incomplete."""
    _fault: Problem | None = None
    _waiting: Waiting | None = None
    """The request that `_taker` has taken."""
    _taker: Taker | None = None
    """The handler of the last complete request."""
    _head = b""
    """The head of that one, if it came alone and nothing has come since."""
    _length = 0
    """Size of the complete request."""
    _used = -math.inf
    """Time of the last answer to a request with that head, by the clock of the loop."""
    _in_head = False
    _deaf = False
    _head_bytes = 0
    _unparsed_bytes = 0
    """Unparsed bytes of the current head, or of a trailer."""
    _body_left = 0
    """Missing bytes of a body of known length."""
    _ahead = bytearray()
    """Pipelined data after a request that has no answer yet."""
    _at = 0
    """Start of the next request in it."""
    _is_known = False
    """Whether the sender has shown a token with which it may send."""
    _unread = 0
    """Number of bytes that waited to be sent at the last check."""
    _unread_since = 0.0

    server_state: Uncounted
    flow: Flow

    def __init__(self, *, direct: FastPath, **given: Any) -> None:
        super().__init__(**given)
        self._direct = direct

    @property
    def idle(self) -> bool:
        """Whether no request waits for its answer."""
        return self._active is None or self._active.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start a connection; with too many, close the oldest idle one."""
        self.logger = _SILENT
        super().connection_made(transport)
        self.flow = Flow(transport)
        transport.set_write_buffer_limits(high=0)  # an answer has been sent, or it has not
        self._expect_head()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if len(self.connections) > min(MOST_CONNECTIONS, max(1, files - _OTHER_FILES)):
            connections: Iterable[Any] = self.connections
            oldest = next(one for one in connections if getattr(one, "idle", False))  # or this one
            oldest.cut()
            self.connections.discard(oldest)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, and forget its data."""
        self._stop_timer()
        self._forget_ahead()
        super().connection_lost(exc)
        self._head, self._taker = b"", None
        if self.idle:
            self._forget_headers()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether the connection stays open: a sender may still wait for its last answer."""
        waits = not (self.idle or self._in_head or self._deaf or self.cycle.more_body)
        if waits:
            self.cycle.keep_alive = False
        return waits

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - of any size
        """Return the buffer for new data."""
        is_large = not self._deaf and (self._is_known or self._body_left) and not self._is_in_chunks
        return _RECEIVED if is_large else _FIRST

    @property
    def _is_in_chunks(self) -> bool:
        """Whether a body in chunks comes: parsing takes time for each chunk, however short."""
        cycle = self.cycle
        return bool(cycle and cycle.more_body and not self._in_head and not self._body_left)

    def buffer_updated(self, nbytes: int) -> None:
        """Take in new data, and overwrite it."""
        with _RECEIVED[:nbytes] as data:
            try:
                if not self._deaf and not self._is_taken_again(data):
                    self._received(data)
            finally:
                data[:] = _ZEROS[:nbytes]
        if nbytes >= _LARGE_PIECE or (nbytes == len(_FIRST) and self._is_in_chunks):
            self.flow.await_turn()
            self.server_state.pieces.add(self.flow.take_turn)

    def _received(self, data: memoryview) -> None:
        """Take in data, up to a request that has to wait for an answer, or for its turn."""
        size = len(data)
        end = 0 if self._must_take_turns(size) else self._take_in(_BUFFER, 0, size)
        if end < size:
            self._ahead, self._at = bytearray(data[end:]), 0
            self.flow.hold()
            self._go_on_soon()

    def _must_take_turns(self, size: int) -> bool:
        """Return whether a sender without a token so far sends several requests at once."""
        if self._is_known or (self.cycle is not None and self.cycle.more_body):
            return False
        return _BUFFER.count(_EMPTY_LINE, 0, size) > 1

    def _take_in(self, source: bytearray, at: int, end: int) -> int:
        """Parse requests until one has to be answered first; return the start of the next one."""
        self._head, between, start, newest = b"", self._is_between, at, at
        while at < end and not self._deaf:
            if self._must_answer:
                return at
            if self._is_in_chunks and at > start:  # the rest waits for its turn
                self._begin()
                return at
            piece = self._end_of_piece(source, at, end)
            with memoryview(source)[at:piece] as data:
                self.data_received(data)  # type: ignore[arg-type]  # the parser takes any buffer
            newest, at = at, piece
        self._begin()
        with memoryview(source)[start:at] as data:
            if between and self._waiting is not None:
                self._remember(data)
        self._check_head(at - newest)
        return end

    @property
    def _must_answer(self) -> bool:
        """Whether there is a complete request without an answer, or with one that is not sent."""
        cycle = self.cycle
        if cycle is None or self._in_head or cycle.more_body:
            return False
        return self.flow.write_paused or not self.idle

    def _end_of_piece(self, source: bytearray, at: int, end: int) -> int:
        """Return the end of the piece to parse, so that two requests are not parsed at once.

        Of a body in chunks it is small. All heads, and all such bodies, end with an empty line.
        """
        if self._body_left:
            return min(at + self._body_left, end)
        if self._is_in_chunks:
            end = min(at + len(_FIRST), end)
        found = source.find(_EMPTY_LINE, at, end)
        return end if found < 0 else found + len(_EMPTY_LINE)

    def _check_head(self, size: int) -> None:
        """Expect the rest of a head, given the size of its newest part; refuse too long heads."""
        if self._in_head:
            self._expect_head()
            self._unparsed_bytes += size
            if self._unparsed_bytes > _UNPARSED_BYTES:
                self._refuse(_too_long(431))
        elif self.idle and not self._deaf:  # empty lines before a head
            self._expect_head()

    def go_on(self) -> None:
        """Take in pipelined data, as far as possible."""
        if self._deaf or self.transport.is_closing() or self._must_answer:
            return
        self._at = self._take_in(self._ahead, self._at, len(self._ahead))
        if self._at == len(self._ahead):
            self._forget_ahead()
            self.flow.release()
        elif self._is_in_chunks:
            self._go_on_soon()

    def _forget_ahead(self) -> None:
        """Overwrite and drop pipelined data."""
        self._ahead[:] = bytes(len(self._ahead))
        self._ahead, self._at = bytearray(), 0

    def _go_on_soon(self) -> None:
        """Schedule data that waits: requests of a sender with a token need not wait their turn."""
        if not self._ahead:
            return
        self._unset_keepalive_if_required()
        self._stop_timer()
        if self._is_in_chunks:
            self.server_state.pieces.add(self.go_on)
        elif self._is_known:
            self.loop.call_soon(self.go_on)
        else:
            self.server_state.turns.add(self.go_on)

    def on_response_complete(self) -> None:
        """Continue with pipelined data."""
        super().on_response_complete()
        self._go_on_soon()

    def resume_writing(self) -> None:
        """Continue: the answer has been sent."""
        super().resume_writing()
        self._unread = 0
        self._go_on_soon()

    def cut(self) -> None:
        """Close the connection at once, without waiting for data to be sent."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def cut_if_unread(self) -> bool:
        """Cut the connection off if no waiting data was sent for a while; return whether so."""
        waits, now = self.transport.get_write_buffer_size(), self.loop.time()
        if waits != self._unread or not waits:
            self._unread, self._unread_since = waits, now
        elif now >= self._unread_since + _UNREAD_SECONDS:
            self.transport.abort()
            return True
        return False

    @property
    def _is_between(self) -> bool:
        """Whether the parser has read one request to its end, and nothing of the next one."""
        return self.idle and not self._in_head and not (self.cycle and self.cycle.more_body)

    def _remember(self, data: memoryview) -> None:
        """Store the head of a request that came complete and alone, until something else comes.

        A head with an Idempotency-Key never comes twice. The end of its head shows that nothing
        follows its
        body: the head ends at its first empty line, if all its lines end correctly.
        """
        head = bytes(data[: len(data) - self._length])
        lines = head.count(b"\r\n")
        if _KEY.search(head):
            return
        if head.find(_EMPTY_LINE) == len(head) - len(_EMPTY_LINE) and head.count(b"\n") == lines:
            self._head, self._length = head, len(data)

    def _forget_headers(self) -> None:
        """Forget all headers of an answered request: an Idempotency-Key names a batch."""
        if not self._head:
            self._taker = None
            if self.headers:  # None before the first request
                self.headers.clear()

    def _is_taken_again(self, data: memoryview) -> bool:
        """Take a request that differs from the last one only in its body; else return False.

        The parser would read the same head in the same way. A head contains a token, so the
        comparison takes constant time.
        """
        cycle, size = self._active, len(self._head)
        if not size or len(data) != self._length or cycle is None or not cycle.response_complete:
            return False
        if self.flow.write_paused or not compare_digest(data[:size], self._head):
            return False
        body = bytearray(data[size:])
        if not self._take(cycle, body):
            overwrite(body)
            return False
        cycle.response_started = cycle.response_complete = False
        return True

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        self._in_head, self._head_bytes, self._unparsed_bytes = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take in a part of the target."""
        self._measure(url, 414)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header; one that comes after the body is ignored."""
        if self._in_head:
            self._measure(name + value, 431)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Expect a body, whose time the application limits."""
        self._in_head = False
        self._stop_timer()
        lengths = [value for name, value in self.headers if name == b"content-length"]
        self._body_left = int(lengths[0]) if lengths else 0
        upgrades = self.parser.should_upgrade()
        if upgrades and self.parser.get_method() == b"CONNECT":
            self._fail(Problem(400, "this is no proxy: leave out CONNECT"))
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._fail(Problem(400, "a request must have one Host header"))
        self._check_coding()
        super().on_headers_complete()
        if (
            upgrades and not self._should_upgrade()
        ):  # RFC 9110, 7.8: a server may ignore it; the parser reads on no further
            self.cycle.keep_alive = False

    def _check_coding(self) -> None:
        """Refuse chunks before HTTP/1.1 (RFC 9112, 6.1): a proxy may see another end of them."""
        version = self.parser.get_http_version()
        if version != "1.1" and any(name == b"transfer-encoding" for name, _ in self.headers):
            self._fail(Problem(400, f"HTTP/{version} has no Transfer-Encoding: take HTTP/1.1"))

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body."""
        if self._body_left:
            self._body_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Start a request that is complete."""
        super().on_message_complete()
        self._begin()

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the protocol of web sockets, if the server has one."""
        super().handle_websocket_upgrade()
        self._deaf = True
        self.transport.set_write_buffer_limits()
        self.flow.release()

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore data after a request for another protocol."""
        self._deaf = True

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        """Answer data that could not be parsed."""
        self._refuse(self._fault or Problem(400, "this is no sound request of HTTP/1.1"))

    def finish(self) -> None:
        """Close the connection; let a sender that is still sending read its answer first."""
        self._stop_timer()
        if self.cycle is not None and not self.cycle.more_body and not self._deaf:
            self.transport.close()
            return
        self._deaf = True
        self._forget_ahead()
        self.pipeline.clear()
        self._timer = self.loop.call_later(_REST_SECONDS, self.transport.close)
        self.flow.release()
        self.transport.write_eof()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active, self._next = cycle, app
        if not cycle.more_body:  # it waited for the answer to another one
            self._begin()

    def _begin(self) -> None:
        """Start the next request, with the data received so far."""
        cycle, app, self._next = self._active, self._next, None
        if app is None or cycle is None:
            return
        whole = not (cycle.more_body or cycle.waiting_for_100_continue or self.flow.write_paused)
        if app is self.app and (whole or not self._is_known):
            self._taker, self._length = self._direct.taker(cycle.scope), len(cycle.body)
            self._is_known |= self._taker is not None
            if whole and self._take(cycle, cycle.body):
                cycle.body = bytearray()  # the new owner of that one overwrites it
                return
        self._ask(cycle, app)

    def _take(self, cycle: RequestResponseCycle, body: bytearray) -> bool:
        """Start a request on the fast path; return False if it cannot be."""
        if self._taker is not None:
            self._waiting = self._taker.take(body, partial(self._answer, cycle))
        if self._waiting is None:
            return False
        self.tasks.add(self._waiting)  # type: ignore[arg-type]  # can be cancelled as a task can
        return True

    def _answer(self, cycle: RequestResponseCycle, response: Response) -> None:
        """Answer a request of the fast path."""
        self.tasks.discard(self._waiting)
        self._waiting = None
        cycle.response_started = cycle.response_complete = True
        self._forget_headers()
        if not cycle.keep_alive:
            self._write(response)
            self.finish()
            cycle.on_response()
            return
        self.transport.write(self.server_state.response_bytes(response))
        if self.timeout_keep_alive_task is None:
            cycle.on_response()
        else:  # no more data has come since that was set
            self._used = self.loop.time()
            self._go_on_soon()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless it was used since the timer was set."""
        now = self.loop.time()
        left = self.timeout_keep_alive - (now - self._used if self.idle else 0.0)
        if left <= 0:
            super().timeout_keep_alive_handler()
        else:
            again = self.loop.call_later(left, self.timeout_keep_alive_handler)
            self.timeout_keep_alive_task = again

    def _write(self, response: Response) -> None:
        """Write the last response of a connection."""
        end = b"connection: close\r\n"
        self.transport.write(join_response(response, self.server_state.default_headers, end))

    def _ask(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Pass the request to the application."""
        answering = Answering(self.transport, self.finish)
        cycle.transport = answering  # type: ignore[assignment]
        if cycle.scope["http_version"] == "1.0":  # a 100 is unknown there
            cycle.waiting_for_100_continue = False
        super()._start_asgi_task(cycle, partial(answered, cycle, app))

    def _measure(self, part: bytes, status: int) -> None:
        self._head_bytes += len(part)
        if self._head_bytes > _HEAD_BYTES or len(self.headers) >= _MOST_HEADERS:
            self._fail(_too_long(status))

    def _fail(self, problem: Problem) -> None:
        """End the parser, which calls `send_400_response`."""
        self._fault = problem
        raise problem

    def _refuse(self, problem: Problem) -> None:
        """Answer an invalid request, or close once the current one has its answer."""
        self._deaf = True
        active = self._active
        if active is not None and not self.idle:
            if self._in_head or active is not self.cycle or not active.more_body:
                active.keep_alive = False
                return
            active.disconnected = True  # its own body cannot be read any further
            active.message_event.set()
        self._write(problem.response())
        self.finish()

    def _expect_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _give_up(self) -> None:
        if self._in_head:
            self._refuse(Problem(408, f"the head did not arrive within {_HEAD_SECONDS:g} seconds"))
        else:
            self.transport.close()


def _too_long(status: int) -> Problem:
    return Problem(status, f"a head may have {_HEAD_BYTES:,} bytes and {_MOST_HEADERS} headers")
