"""What all connections of a server share: who they are, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from panprivacy.service.web.answering import join_response

_MOST_CUT = 20
_PAUSE = 0.001
"""Seconds between two turns, of which a request takes a fifth."""


class InOrder(OrderedDict[Any, None]):
    """A set, the oldest member first."""

    def add(self, one: Any) -> None:
        """Add a member behind the others, unless it is there."""
        self[one] = None

    def discard(self, one: Any) -> None:
        """Remove a member, if it is there."""
        self.pop(one, None)

    remove = discard


class Flow(FlowControl):
    """uvicorn's flow control, which an application cannot have read what must wait."""

    _held = False

    def hold(self) -> None:
        """Read nothing until `release`."""
        self._held = True
        self.pause_reading()

    def release(self) -> None:
        """Read on."""
        self._held = False
        self.resume_reading()

    def resume_reading(self) -> None:
        """Read on, unless something waits."""
        if not self._held:
            super().resume_reading()


class Turns:
    """A queue of connections with requests that were sent ahead: one goes on in a millisecond.

    So who waits for answers does not wait for those who send many requests at once, however many
    of them there are: those have a small part of the time.

    Args:
        later: calls a function after so many seconds, as `call_later` of a loop.
    """

    def __init__(self, later: Callable[[float, Callable[[], None]], object] | None = None) -> None:
        self._later = later or _call_later
        self._waiting = InOrder()

    def add(self, go_on: Callable[[], None]) -> None:
        """Have a connection go on when it is its turn; twice is once."""
        if not self._waiting:
            self._later(_PAUSE, self._next)
        self._waiting.add(go_on)

    def _next(self) -> None:
        go_on, _ = self._waiting.popitem(last=False)
        if self._waiting:
            self._later(_PAUSE, self._next)
        go_on()


class Uncounted(ServerState):
    """uvicorn's state without the number of requests: where a request is an event, it counts.

    Attributes:
        turns: of connections whose sender does not wait for answers.
    """

    total_requests = property(lambda _: 0, lambda _, __: None)

    def __init__(self) -> None:
        super().__init__()
        self.connections = InOrder()  # type: ignore[assignment]
        self.turns = Turns()
        self._joined: tuple[object, Response, bytes] | None = None

    def sent(self, response: Response) -> bytes:
        """A response on a connection that stays open; one without a body is joined once a second.

        uvicorn makes new headers each second, for the date.
        """
        joined, headers = self._joined, self.default_headers
        if joined is not None and joined[0] is headers and joined[1] is response:
            return joined[2]
        found = join_response(response, headers, b"")
        if not response.body:
            self._joined = headers, response, found
        return found

    def check_readers(self) -> None:
        """Cut some of the connections off whose senders have read nothing for a while.

        Not all of them at once: those who come in their place take time as well.
        """
        checks = [getattr(one, "cut_if_unread", None) for one in self.connections]
        found = (check() for check in checks if check is not None)  # a web socket has pings
        next(islice(filter(None, found), _MOST_CUT - 1, None), None)


def _call_later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)
