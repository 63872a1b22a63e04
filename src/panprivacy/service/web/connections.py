"""Shared state of all connections of a server: the set of them, and their turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from panprivacy.service.web.answering import join_response

MOST_CONNECTIONS = 1_800
"""Maximum number of connections; beyond it, the oldest idle one is closed."""
_MOST_CUT = 20
_PAUSE = 0.001
"""Seconds between two turns, of which a request takes a fifth."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a connection.

    Args:
        head_seconds: for a head.
        rest_seconds: to read an answer before further data of the sender meets a closed connection.
        unread_seconds: after which a sender that reads nothing is cut off.
        piece_bytes: of a piece after which other connections have their turn.
        connections: the maximum number of them.
    """

    head_seconds: float = 10.0
    rest_seconds: float = 5.0
    unread_seconds: float = 5.0
    piece_bytes: int = 1 << 17
    connections: int = MOST_CONNECTIONS


class InOrder(OrderedDict[Any, None]):
    """Set ordered by insertion, the oldest member first."""

    def add(self, one: Any) -> None:
        """Add a member at the end, unless it exists."""
        self[one] = None

    def discard(self, one: Any) -> None:
        """Remove a member, if it exists."""
        self.pop(one, None)

    remove = discard


class Flow(FlowControl):
    """uvicorn's flow control, in which the protocol can stop reading as well.

    Data is read while the application wants it, no earlier request has to be answered first, and it
    is this connection's turn.

    Args:
        transport: the transport of the connection.
        clock: seconds since any moment.
    """

    def __init__(self, transport: asyncio.Transport, clock: Callable[[], float]) -> None:
        super().__init__(transport)
        self._clock = clock
        self._unread, self._unread_since = 0, 0.0  # bytes that waited to be sent at the last check
        self._is_wanted, self._is_held, self._is_waiting = True, False, False

    def pause_reading(self) -> None:
        """Stop reading until `resume_reading`."""
        self._is_wanted = False
        self._change()

    def resume_reading(self) -> None:
        """Resume reading, unless it is held or waits for its turn."""
        self._is_wanted = True
        self._change()

    def hold(self) -> None:
        """Stop reading until `release`."""
        self._is_held = True
        self._change()

    def release(self) -> None:
        """Resume reading, unless it waits for its turn."""
        self._is_held, self._is_wanted = False, True
        self._change()

    def await_turn(self) -> None:
        """Stop reading until `take_turn`."""
        self._is_waiting = True
        self._change()

    def take_turn(self) -> None:
        """Resume reading, unless it is held or not wanted."""
        self._is_waiting = False
        self._change()

    def resume_writing(self) -> None:
        """Continue: all data has been sent."""
        super().resume_writing()
        self._unread = 0

    def cut(self) -> None:
        """Close the connection at once, without waiting for data to be sent."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def cut_if_unread(self, seconds: float) -> bool:
        """Cut the connection off if no waiting data was sent for that long; return whether so."""
        waits, now = self._transport.get_write_buffer_size(), self._clock()
        if waits != self._unread or not waits:
            self._unread, self._unread_since = waits, now
        elif now >= self._unread_since + seconds:
            self._transport.abort()
            return True
        return False

    def _change(self) -> None:
        if self._is_wanted and not self._is_held and not self._is_waiting:
            super().resume_reading()
        else:
            super().pause_reading()


class Turns:
    """Queue of connections: one continues after each pause.

    So senders of little do not wait for those who send much at once, for any number of those.

    Args:
        pause: seconds between two turns; 0 for one in each turn of the event loop.
        later: calls a function after a number of seconds, like `call_later` of a loop.
    """

    def __init__(
        self,
        pause: float,
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._pause, self._later = pause, later or _call_later
        self._waiting = InOrder()

    def add(self, go_on: Callable[[], None]) -> None:
        """Schedule a connection to continue at its turn; adding it twice has no effect."""
        if not self._waiting:
            self._later(self._pause, self._next)
        self._waiting.add(go_on)

    def _next(self) -> None:
        go_on, _ = self._waiting.popitem(last=False)
        if self._waiting:
            self._later(self._pause, self._next)
        go_on()


class Uncounted(ServerState):
    """uvicorn's state without the number of requests: if a request is an event, that is a count.

    Attributes:
        limits: the limits of each connection.
        turns: the queue of connections whose sender does not wait for answers.
        pieces: the queue of connections with large bodies: each reads one piece at its turn.
    """

    total_requests = property(lambda _: 0, lambda _, __: None)

    def __init__(self) -> None:
        super().__init__()
        self.limits = Limits()
        self.connections = InOrder()  # type: ignore[assignment]
        self.turns, self.pieces = Turns(_PAUSE), Turns(0.0)
        self._joined: tuple[object, Response, bytes] | None = None

    def response_bytes(self, response: Response) -> bytes:
        """Return a response on an open connection; one without a body is joined once a second.

        uvicorn makes new headers each second, for the date.
        """
        joined, headers = self._joined, self.default_headers
        if joined is not None and joined[0] is headers and joined[1] is response:
            return joined[2]
        found = join_response(response, headers, b"")
        if not response.body:
            self._joined = headers, response, found
        return found

    def last_bytes(self, response: Response) -> bytes:
        """Return the last response of a connection."""
        return join_response(response, self.default_headers, b"connection: close\r\n")

    def check_readers(self) -> None:
        """Close some of the connections whose senders have read nothing for a while.

        Not all at once: the connections that replace them take time as well.
        """
        flows = [getattr(one, "flow", None) for one in self.connections]
        seconds = self.limits.unread_seconds
        found = (flow.cut_if_unread(seconds) for flow in flows if flow)  # a web socket has pings
        next(islice(filter(None, found), _MOST_CUT - 1, None), None)


def _call_later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)
