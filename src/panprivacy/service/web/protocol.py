"""uvicorn's protocol, for a service that anybody may connect to and that counts no requests.

Most requests bring a small batch, whole at once. These are answered without ASGI and without a
task; what takes longer, or has anything wrong with its head, goes to the application.

A connection gives its sender so many seconds and bytes for a head, and for the rest of a body that
nobody reads. What is no sound request gets an answer as well, unless one before it is under way:
that one gets its own, and the connection is closed. What waited between them was not counted.
"""

from __future__ import annotations

import asyncio
import logging
import math
import resource
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from hmac import compare_digest
from typing import Any, Protocol

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from panprivacy.service.incoming.admission import overwrite
from panprivacy.service.incoming.problems import Problem

_HEAD_SECONDS = 10.0
_REST_SECONDS = 5.0
"""For the sender to read its answer before what it still sends meets a closed connection."""
_HEAD_BYTES = 1 << 16
_UNPARSED_BYTES = 1 << 19
"""More than asyncio reads at once, of which earlier requests may be a part."""
_MOST_HEADERS = 100
MOST_CONNECTIONS = 1_800
"""With more, the oldest idle one is closed."""
_OTHER_FILES = 200
"""Descriptors that connections leave to everything else."""
_SILENT = logging.getLogger("panprivacy.service.uvicorn")
"""uvicorn writes tracebacks, and a line for each bad request."""
_RECEIVED = memoryview(bytearray(1 << 18))
"""What has just come, of any connection: the parser copies what it keeps before others come."""
_ZEROS = memoryview(bytes(len(_RECEIVED)))
_EMPTY_LINE = b"\r\n\r\n"
_SILENT.setLevel(logging.CRITICAL + 1)


class _InOrder(dict[Any, None]):
    """A set, the oldest member first."""

    def add(self, one: Any) -> None:
        self[one] = None

    def discard(self, one: Any) -> None:
        self.pop(one, None)


class Uncounted(ServerState):
    """uvicorn's state without the number of requests: where a request is an event, it counts."""

    total_requests = property(lambda _: 0, lambda _, __: None)

    def __init__(self) -> None:
        super().__init__()
        self.connections = _InOrder()  # type: ignore[assignment]
        self._joined: tuple[object, Response, bytes] | None = None

    def sent(self, response: Response) -> bytes:
        """A response on a connection that stays open; one without a body is joined once a second.

        uvicorn makes new headers each second, for the date.
        """
        joined, headers = self._joined, self.default_headers
        if joined is not None and joined[0] is headers and joined[1] is response:
            return joined[2]
        found = _joined(response, headers, b"")
        if not response.body:
            self._joined = headers, response, found
        return found


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
        self._expect_head()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if len(self.connections) > min(MOST_CONNECTIONS, max(1, files - _OTHER_FILES)):
            connections: Iterable[Any] = self.connections
            oldest = next(one for one in connections if one.idle)  # at least this one
            oldest.transport.close()
            self.connections.discard(oldest)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._stop_timer()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """A sender that has sent its last request may still wait for the answer."""
        waits = not (self.idle or self._in_head or self._deaf or self.cycle.more_body)
        if waits:
            self.cycle.keep_alive = False
        return waits

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - of any size
        """Where to put what comes."""
        return _RECEIVED

    def buffer_updated(self, nbytes: int) -> None:
        """Take in what came, and overwrite it."""
        with _RECEIVED[:nbytes] as data:
            try:
                self.data_received(data)  # type: ignore[arg-type]  # the parser takes any buffer
            finally:
                data[:] = _ZEROS[:nbytes]

    def data_received(self, data: bytes) -> None:
        """Take in what came, until a head has become too long."""
        if self._deaf or self._is_taken_again(data):
            return
        self._head, between = b"", self._is_between
        super().data_received(data)
        self._begin()
        if between and self._waiting is not None:
            self._remember(data)
        if self._in_head:
            self._expect_head()
            self._unparsed_bytes += len(data)
            if self._unparsed_bytes > _UNPARSED_BYTES:
                self._refuse(_too_long(431))
        elif self.idle and not self._deaf:  # empty lines before a head
            self._expect_head()

    @property
    def _is_between(self) -> bool:
        """Whether the parser has read one request to its end, and nothing of the next one."""
        return self.idle and not self._in_head and not (self.cycle and self.cycle.more_body)

    def _remember(self, data: bytes) -> None:
        """Keep the head of a request that came whole and alone, until something else comes.

        That nothing follows its body is known from where its head ends: at its first empty line,
        where all lines end as they should.
        """
        head = bytes(data[: len(data) - self._length])
        lines = head.count(b"\r\n")
        if head.find(_EMPTY_LINE) == len(head) - len(_EMPTY_LINE) and head.count(b"\n") == lines:
            self._head, self._length = head, len(data)

    def _is_taken_again(self, data: bytes) -> bool:
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
        upgrades = self.parser.should_upgrade()
        if upgrades and self.parser.get_method() == b"CONNECT":
            self._fail(Problem(400, "this is no proxy: leave out CONNECT"))
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._fail(Problem(400, "a request must have one Host header"))
        self._check_coding()
        super().on_headers_complete()
        if upgrades:  # RFC 9110, 7.8: a server may ignore it; the parser reads on no further
            self.cycle.keep_alive = False

    def _check_coding(self) -> None:
        """Refuse chunks before HTTP/1.1 (RFC 9112, 6.1): a proxy may see another end of them."""
        version = self.parser.get_http_version()
        if version != "1.1" and any(name == b"transfer-encoding" for name, _ in self.headers):
            self._fail(Problem(400, f"HTTP/{version} has no Transfer-Encoding: take HTTP/1.1"))

    def on_message_complete(self) -> None:
        """Begin with a request that is there whole."""
        super().on_message_complete()
        self._begin()

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
        self.pipeline.clear()
        self._timer = self.loop.call_later(_REST_SECONDS, self.transport.close)
        self.flow.resume_reading()
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
        if whole and app is self.app:
            self._taker, self._length = self._direct.taker(cycle.scope), len(cycle.body)
            if self._take(cycle, cycle.body):
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
        if not cycle.keep_alive:
            self._write(response)
            self.finish()
            cycle.on_response()
            return
        self.transport.write(self.server_state.sent(response))  # type: ignore[attr-defined]
        if self.timeout_keep_alive_task is None:
            cycle.on_response()
        else:  # nothing else has come since that was set
            self._used = self.loop.time()

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
        self.transport.write(_joined(response, self.server_state.default_headers, end))

    def _ask(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Have the application answer."""
        cycle.transport = _Answering(self)  # type: ignore[assignment]
        if cycle.scope["http_version"] == "1.0":  # does not know what to do with a 100
            cycle.waiting_for_100_continue = False
        super()._start_asgi_task(cycle, partial(_answered, cycle, app))

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


class _Answering:
    """What an application answers through."""

    def __init__(self, protocol: GuardedProtocol) -> None:
        self._protocol = protocol
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing
        self.close = protocol.finish


async def _answered(
    cycle: RequestResponseCycle,
    app: Callable[..., Awaitable[None]],
    scope: Any,
    receive: Any,
    send: Callable[[Any], Awaitable[None]],
) -> None:
    """Answer a request; say that the connection ends if its body has not been read to the end."""

    async def tell(message: Any) -> None:
        if cycle.more_body:
            cycle.keep_alive = False
        await send(message)

    try:
        await app(scope, receive, tell)
    finally:
        cycle.body = bytearray()  # a part of what was refused; uvicorn keeps it


def _joined(response: Response, headers: Iterable[tuple[bytes, bytes]], end: bytes) -> bytes:
    """A response as it is sent, with further headers, and so much at the end of them."""
    lines = [b"%s: %s\r\n" % pair for pair in (*headers, *response.raw_headers)]
    start = STATUS_LINE[response.status_code]
    return b"".join((start, *lines, end, b"\r\n", bytes(response.body)))


def _too_long(status: int) -> Problem:
    return Problem(status, f"a head may have {_HEAD_BYTES:,} bytes and {_MOST_HEADERS} headers")
