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
import resource
from collections.abc import Iterable
from functools import partial
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from panprivacy.service.incoming.problems import Problem
from panprivacy.service.web.answering import Answering, FastPath, answered
from panprivacy.service.web.connections import Flow, Uncounted
from panprivacy.service.web.fast_lane import FastLane
from panprivacy.service.web.heads import HeadGuard
from panprivacy.service.web.reader import Reader

_OTHER_FILES = 200
"""Descriptors that connections leave to everything else."""
_SILENT = logging.getLogger("panprivacy.service.uvicorn")
"""Logger that drops uvicorn's tracebacks, and its line for each bad request."""
_SILENT.setLevel(logging.CRITICAL + 1)


class GuardedProtocol(HttpToolsProtocol, asyncio.BufferedProtocol):
    """Protocol that limits the resources of a connection, and answers invalid requests.

    uvicorn waits without end for the rest of a head, or of a body that was refused.

    Args:
        direct: answers requests before the application, if it can.
        given: arguments of uvicorn's protocols.

    Attributes:
        head: the limits of a head.
        lane: the requests that are answered without the application.
        reader: reads requests from the data of the connection.
        is_known: whether the sender has shown a token with which it may send.
    """

    _active: RequestResponseCycle | None = None
    _next: Any = None
    """The application for a request that has not been started, as its body may be incomplete."""
    _used = -math.inf
    """Time of the last answer to a request with the same head, by the clock of the loop."""
    is_known = False

    server_state: Uncounted
    flow: Flow

    def __init__(self, *, direct: FastPath, **given: Any) -> None:
        super().__init__(**given)
        self.lane = FastLane(direct, self.tasks, self._answer)
        self.reader = Reader(self)

    @property
    def idle(self) -> bool:
        """Whether no request waits for its answer."""
        return self._active is None or self._active.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start a connection; with too many, close the oldest idle one."""
        self.logger = _SILENT
        super().connection_made(transport)
        limits, loop = self.server_state.limits, self.loop
        self.flow = Flow(transport, loop.time)
        self.head = HeadGuard(loop.call_later, limits.head_seconds, self.refuse, transport.close)
        transport.set_write_buffer_limits(high=0)  # an answer has been sent, or it has not
        self.head.expect()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if len(self.connections) > min(limits.connections, max(1, files - _OTHER_FILES)):
            connections: Iterable[Any] = self.connections
            oldest = next(one for one in connections if getattr(one, "idle", False))  # or this one
            oldest.flow.cut()
            self.connections.discard(oldest)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, and forget its data."""
        self.head.stop()
        self.reader.forget()
        # asyncio's transport refers to itself by this, so that the address of the other end would
        # stay until the garbage collector comes by: which is never, for an old object.
        vars(self.transport).pop("_read_ready_cb", None)
        super().connection_lost(exc)
        self.lane.forget_head()
        self.lane.let_go()
        if self.idle:
            if self.headers:
                self.headers.clear()
            # No cycle of references is left for the garbage collector, which would let the address
            # of the other end stay.
            del self.head, self.lane, self.reader
            self._active = self.cycle = None  # type: ignore[assignment]

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether the connection stays open: a sender may still wait for its last answer."""
        waits = not (self.idle or self.head.is_open or self.reader.deaf or self.cycle.more_body)
        if waits:
            self.cycle.keep_alive = False
        return waits

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - of any size
        """Return the buffer for new data."""
        return self.reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take in new data, and overwrite it."""
        self.reader.take(nbytes)

    def on_response_complete(self) -> None:
        """Continue with pipelined data."""
        super().on_response_complete()
        self.reader.go_on_soon()

    def resume_writing(self) -> None:
        """Continue: the answer has been sent."""
        super().resume_writing()
        self.reader.go_on_soon()

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        self.head.begin()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take in a part of the target."""
        self.head.measure(url, 414, self.headers)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header; one that comes after the body is ignored."""
        if self.head.is_open:
            self.head.measure(name + value, 431, self.headers)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Expect a body, whose time the application limits."""
        lengths = [value for name, value in self.headers if name == b"content-length"]
        self.reader.body_left = int(lengths[0]) if lengths else 0
        upgrades = self.parser.should_upgrade()
        self.head.end(self.parser, self.headers)
        super().on_headers_complete()
        if (
            upgrades and not self._should_upgrade()
        ):  # RFC 9110, 7.8: a server may ignore it; the parser reads on no further
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body."""
        if self.reader.body_left:
            self.reader.body_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Start a request that is complete."""
        super().on_message_complete()
        self.begin()

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the protocol of web sockets, if the server has one."""
        super().handle_websocket_upgrade()
        self.reader.deaf = True
        self.transport.set_write_buffer_limits()
        self.flow.release()

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore data after a request for another protocol."""
        self.reader.deaf = True

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        """Answer data that could not be parsed."""
        self.refuse(self.head.fault or Problem(400, "this is no sound request of HTTP/1.1"))

    def finish(self) -> None:
        """Close the connection; let a sender that is still sending read its answer first."""
        self.head.stop()
        if self.cycle is not None and not self.cycle.more_body and not self.reader.deaf:
            self.transport.close()
            return
        self.reader.deaf = True
        self.reader.forget()
        self.pipeline.clear()
        self.head.close_in(self.server_state.limits.rest_seconds)
        self.flow.release()
        self.transport.write_eof()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active, self._next = cycle, app
        if not cycle.more_body:  # it waited for the answer to another one
            self.begin()

    def begin(self) -> None:
        """Start the next request, with the data received so far."""
        cycle, app, self._next = self._active, self._next, None
        if app is None or cycle is None:
            return
        whole = not (cycle.more_body or cycle.waiting_for_100_continue or self.flow.write_paused)
        if app is self.app and (whole or not self.is_known):
            self.is_known |= self.lane.choose(cycle)
            if whole and self.lane.take(cycle, cycle.body):
                cycle.body = bytearray()  # the new owner of that one overwrites it
                return
        self._ask(cycle, app)

    def _answer(self, cycle: RequestResponseCycle, response: Response) -> None:
        """Answer a request of the fast path."""
        if self.lane.let_go() and self.headers:  # an Idempotency-Key names a batch
            self.headers.clear()
        if not cycle.keep_alive:
            self.transport.write(self.server_state.last_bytes(response))
            self.finish()
            cycle.on_response()
            return
        self.transport.write(self.server_state.response_bytes(response))
        if self.timeout_keep_alive_task is None:
            cycle.on_response()
        else:  # no more data has come since that was set
            self._used = self.loop.time()
            self.reader.go_on_soon()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless it was used since the timer was set."""
        now = self.loop.time()
        left = self.timeout_keep_alive - (now - self._used if self.idle else 0.0)
        if left <= 0:
            super().timeout_keep_alive_handler()
        else:
            again = self.loop.call_later(left, self.timeout_keep_alive_handler)
            self.timeout_keep_alive_task = again

    def _ask(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Pass the request to the application."""
        answering = Answering(self.transport, self.finish)
        cycle.transport = answering  # type: ignore[assignment]
        if cycle.scope["http_version"] == "1.0":  # a 100 is unknown there
            cycle.waiting_for_100_continue = False
        super()._start_asgi_task(cycle, partial(answered, cycle, app))

    def refuse(self, problem: Problem) -> None:
        """Answer an invalid request, or close once the current one has its answer."""
        self.reader.deaf = True
        active = self._active
        if active is not None and not self.idle:
            if self.head.is_open or active is not self.cycle or not active.more_body:
                active.keep_alive = False
                return
            active.disconnected = True  # its own body cannot be read any further
            active.message_event.set()
        self.transport.write(self.server_state.last_bytes(problem.response()))
        self.finish()
