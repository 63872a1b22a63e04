"""uvicorn's protocol, for a service that anybody may connect to and that counts no requests.

Most requests bring a small batch, whole at once. These are answered without ASGI and without a
task; what takes longer, or has anything wrong with its head, goes to the application.

A connection gives its sender so many seconds and bytes for a head, and for the rest of a body that
nobody reads. What is no sound request gets an answer as well, and the connection is closed then.

Of requests that are sent ahead, one is parsed when the one before has its answer, and that answer
has left. Until then nothing is read: at most what came in one piece waits, which is small before
the sender has shown a token. Who reads nothing for some seconds is cut off.
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
    Direct,
    Taker,
    Waiting,
    answered,
    join_response,
)
from panprivacy.service.web.connections import Flow, Uncounted

_HEAD_SECONDS = 10.0
_REST_SECONDS = 5.0
"""For the sender to read its answer before what it still sends meets a closed connection."""
_HEAD_BYTES = 1 << 14
_UNPARSED_BYTES = 1 << 19
"""More than comes at once, of which earlier requests may be a part."""
_MOST_HEADERS = 100
_UNREAD_SECONDS = 5.0
MOST_CONNECTIONS = 1_800
"""With more, the oldest idle one is closed."""
_OTHER_FILES = 200
"""Descriptors that connections leave to everything else."""
_SILENT = logging.getLogger("panprivacy.service.uvicorn")
"""uvicorn writes tracebacks, and a line for each bad request."""
_BUFFER = bytearray(1 << 18)
"""What has just come, of any connection: the parser copies what it keeps before others come."""
_RECEIVED = memoryview(_BUFFER)
_FIRST = _RECEIVED[: 1 << 12]
"""Where heads come whose sender has shown no token yet: what is sent ahead waits in memory."""
_ZEROS = memoryview(bytes(len(_RECEIVED)))
_EMPTY_LINE = b"\r\n\r\n"
_KEY = re.compile(rb"^idempotency-key\s*:", re.IGNORECASE | re.MULTILINE)
_SILENT.setLevel(logging.CRITICAL + 1)


class GuardedProtocol(HttpToolsProtocol, asyncio.BufferedProtocol):
    """Bounds what a connection may take, and answers what is no request.

    uvicorn waits for ever for the rest of a head, or of a body that was refused.

    Args:
        direct: answers what it can before the application is asked.
        given: what uvicorn's protocols take.
    """

    _timer: asyncio.TimerHandle | None = None
    _active: RequestResponseCycle | None = None
    _next: Any = None
    """The application for a request that has not been begun, because its body may still come."""
    _fault: Problem | None = None
    _waiting: Waiting | None = None
    """What `_taker` has taken."""
    _taker: Taker | None = None
    """What has taken the last request that came whole."""
    _head = b""
    """The head of that one, if it came alone and nothing has come since."""
    _length = 0
    """Of the whole request."""
    _used = -math.inf
    """When a request with that head was answered last, by the clock of the loop."""
    _in_head = False
    _deaf = False
    _head_bytes = 0
    _unparsed_bytes = 0
    """Of the head that is under way, or of a trailer."""
    _body_left = 0
    """Bytes of a body that have not come, where its length is known."""
    _ahead = bytearray()
    """What came behind a request that has no answer yet."""
    _at = 0
    """Where the next request begins in it."""
    _is_known = False
    """Whether the sender has shown a token with which it may send."""
    _unread = 0
    """Bytes that waited to be sent when that was looked at last."""
    _unread_since = 0.0

    server_state: Uncounted
    flow: Flow

    def __init__(self, *, direct: Direct, **given: Any) -> None:
        super().__init__(**given)
        self._direct = direct

    @property
    def idle(self) -> bool:
        """Whether no request waits for its answer."""
        return self._active is None or self._active.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head; if there are too many connections, in place of the oldest idle one."""
        self.logger = _SILENT
        super().connection_made(transport)
        self.flow = Flow(transport)
        transport.set_write_buffer_limits(high=0)  # an answer has left, or it has not
        self._expect_head()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if len(self.connections) > min(MOST_CONNECTIONS, max(1, files - _OTHER_FILES)):
            connections: Iterable[Any] = self.connections
            oldest = next(one for one in connections if getattr(one, "idle", False))  # or this one
            oldest.cut()
            self.connections.discard(oldest)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._stop_timer()
        self._forget_ahead()
        super().connection_lost(exc)
        self._head, self._taker = b"", None
        if self.idle:
            self._forget_headers()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A sender that has sent its last request may still wait for the answer."""
        waits = not (self.idle or self._in_head or self._deaf or self.cycle.more_body)
        if waits:
            self.cycle.keep_alive = False
        return waits

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - of any size
        """Where to put what comes."""
        is_large = not self._deaf and (self._is_known or self._body_left)
        return _RECEIVED if is_large else _FIRST

    def buffer_updated(self, nbytes: int) -> None:
        """Take in what came, and overwrite it."""
        with _RECEIVED[:nbytes] as data:
            try:
                if not self._deaf and not self._is_taken_again(data):
                    self._received(data)
            finally:
                data[:] = _ZEROS[:nbytes]

    def _received(self, data: memoryview) -> None:
        """Take in what came, up to a request that has to wait for an answer, or for its turn."""
        size = len(data)
        end = 0 if self._must_take_turns(size) else self._take_in(_BUFFER, 0, size)
        if end < size:
            self._ahead, self._at = bytearray(data[end:]), 0
            self.flow.hold()
            self._go_on_soon()

    def _must_take_turns(self, size: int) -> bool:
        """Whether somebody who has shown no token sends several requests at once."""
        if self._is_known or (self.cycle is not None and self.cycle.more_body):
            return False
        return _BUFFER.count(_EMPTY_LINE, 0, size) > 1

    def _take_in(self, source: bytearray, at: int, end: int) -> int:
        """Parse requests until one has to be answered first; return where the next one begins."""
        self._head, between, start = b"", self._is_between, at
        while at < end and not self._deaf:
            if self._must_answer:
                return at
            piece = self._end_of_piece(source, at, end)
            with memoryview(source)[at:piece] as data:
                self.data_received(data)  # type: ignore[arg-type]  # the parser takes any buffer
            at = piece
        self._begin()
        with memoryview(source)[start:at] as data:
            if between and self._waiting is not None:
                self._remember(data)
            self._check_head(len(data))
        return end

    @property
    def _must_answer(self) -> bool:
        """Whether a request came whole that has no answer, or one that has not left."""
        cycle = self.cycle
        if cycle is None or self._in_head or cycle.more_body:
            return False
        return self.flow.write_paused or not self.idle

    def _end_of_piece(self, source: bytearray, at: int, end: int) -> int:
        """Where to stop parsing, so that two requests do not come at once.

        All heads, and all bodies in chunks, end with an empty line.
        """
        if self._body_left:
            return min(at + self._body_left, end)
        found = source.find(_EMPTY_LINE, at, end)
        return end if found < 0 else found + len(_EMPTY_LINE)

    def _check_head(self, size: int) -> None:
        """Expect the rest of a head, of which so much came last; refuse one that is too long."""
        if self._in_head:
            self._expect_head()
            self._unparsed_bytes += size
            if self._unparsed_bytes > _UNPARSED_BYTES:
                self._refuse(_too_long(431))
        elif self.idle and not self._deaf:  # empty lines before a head
            self._expect_head()

    def go_on(self) -> None:
        """Take in what was sent ahead, as far as that goes."""
        if self._deaf or self.transport.is_closing() or self._must_answer:
            return
        self._at = self._take_in(self._ahead, self._at, len(self._ahead))
        if self._at == len(self._ahead):
            self._forget_ahead()
            self.flow.release()

    def _forget_ahead(self) -> None:
        """Overwrite what was sent ahead; it is done with."""
        self._ahead[:] = bytes(len(self._ahead))
        self._ahead, self._at = bytearray(), 0

    def _go_on_soon(self) -> None:
        """Go on with what was sent ahead: a sender who has shown a token need not wait its turn."""
        if not self._ahead:
            return
        self._unset_keepalive_if_required()
        self._stop_timer()
        if self._is_known:
            self.loop.call_soon(self.go_on)
        else:
            self.server_state.turns.add(self.go_on)

    def on_response_complete(self) -> None:
        """Go on with what was sent ahead."""
        super().on_response_complete()
        self._go_on_soon()

    def resume_writing(self) -> None:
        """Go on: the answer has left."""
        super().resume_writing()
        self._unread = 0
        self._go_on_soon()

    def cut(self) -> None:
        """Close the connection at once; what has not left is not waited for."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def cut_if_unread(self) -> bool:
        """Cut the connection off if nothing of what waits has left for a while; whether it was."""
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
        """Keep the head of a request that came whole and alone, until something else comes.

        A head with an Idempotency-Key never comes twice.
        That nothing follows its body is known from where its head ends: at its first empty line,
        where all lines end as they should.
        """
        head = bytes(data[: len(data) - self._length])
        lines = head.count(b"\r\n")
        if _KEY.search(head):
            return
        if head.find(_EMPTY_LINE) == len(head) - len(_EMPTY_LINE) and head.count(b"\n") == lines:
            self._head, self._length = head, len(data)

    def _forget_headers(self) -> None:
        """Leave nothing of a request that has its answer: an Idempotency-Key names a batch."""
        if not self._head:
            self._taker = None
            if self.headers:  # None before the first request
                self.headers.clear()

    def _is_taken_again(self, data: memoryview) -> bool:
        """Take a request that differs from the last one in its body alone; False if this is none.

        The parser would read the same head in the same way. A head has a token in it, so that the
        comparison takes as long wherever they differ.
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
        """Take in a header; one that comes after the body is left out."""
        if self._in_head:
            self._measure(name + value, 431)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Expect a body, which the application times."""
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
        """Begin with a request that is there whole."""
        super().on_message_complete()
        self._begin()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the protocol of web sockets, where the server has one."""
        super().handle_websocket_upgrade()
        self._deaf = True
        self.transport.set_write_buffer_limits()
        self.flow.release()

    def _unsupported_upgrade_warning(self) -> None:
        """Leave out what follows a request that asked for another protocol."""
        self._deaf = True

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        """Answer what could not be parsed."""
        self._refuse(self._fault or Problem(400, "this is no sound request of HTTP/1.1"))

    def finish(self) -> None:
        """Close the connection; an answer to a request that is still being sent is read first."""
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
        """Begin with the request that is next, with as much of it as there is."""
        cycle, app, self._next = self._active, self._next, None
        if app is None or cycle is None:
            return
        whole = not (cycle.more_body or cycle.waiting_for_100_continue or self.flow.write_paused)
        if app is self.app and (whole or not self._is_known):
            self._taker, self._length = self._direct.taker(cycle.scope), len(cycle.body)
            self._is_known |= self._taker is not None
            if whole and self._take(cycle, cycle.body):
                cycle.body = bytearray()  # that one is overwritten by who counts it
                return
        self._ask(cycle, app)

    def _take(self, cycle: RequestResponseCycle, body: bytearray) -> bool:
        """Begin with a request that can do without ASGI; False if it cannot."""
        if self._taker is not None:
            self._waiting = self._taker.take(body, partial(self._answer, cycle))
        if self._waiting is None:
            return False
        self.tasks.add(self._waiting)  # type: ignore[arg-type]  # can be cancelled as a task can
        return True

    def _answer(self, cycle: RequestResponseCycle, response: Response) -> None:
        """Answer a request that was begun here."""
        self.tasks.discard(self._waiting)
        self._waiting = None
        cycle.response_started = cycle.response_complete = True
        self._forget_headers()
        if not cycle.keep_alive:
            self._write(response)
            self.finish()
            cycle.on_response()
            return
        self.transport.write(self.server_state.sent(response))
        if self.timeout_keep_alive_task is None:
            cycle.on_response()
        else:  # nothing else has come since that was set
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
        """The last response of a connection."""
        end = b"connection: close\r\n"
        self.transport.write(join_response(response, self.server_state.default_headers, end))

    def _ask(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Have the application answer."""
        answering = Answering(self.transport, self.finish)
        cycle.transport = answering  # type: ignore[assignment]
        if cycle.scope["http_version"] == "1.0":  # does not know what to do with a 100
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
        """Answer what is no request, or close once the one under way has its answer."""
        self._deaf = True
        active = self._active
        if active is not None and not self.idle:
            if self._in_head or active is not self.cycle or not active.more_body:
                active.keep_alive = False
                return
            active.disconnected = True  # it is its own body that cannot be read on
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
