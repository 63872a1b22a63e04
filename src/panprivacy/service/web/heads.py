"""Limits for the head of a request: of its time, its bytes and its headers."""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from typing import Any

from panprivacy.service.incoming.problems import Problem

_HEAD_BYTES = 1 << 14
UNPARSED_BYTES = _HEAD_BYTES + (1 << 12)
"""Bytes of a head that is incomplete: the parser joins the parts of a long header again and again,
so each of them takes time and memory as well."""
_MOST_HEADERS = 100


class HeadGuard:
    """Guard of the heads of one connection, one after the other.

    Args:
        later: calls a function after a number of seconds, like `call_later` of a loop.
        seconds: the maximum time for a head.
        refuse: answers an invalid request.
        close: closes the connection.

    Attributes:
        is_open: whether a part of a head has come, but not its end.
        fault: the error of the head, which has ended the parser.
    """

    __slots__ = (
        *("_bytes", "_close", "_later", "_refuse", "_seconds", "_timer", "_unparsed"),
        *("fault", "is_open"),
    )

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], TimerHandle],
        seconds: float,
        refuse: Callable[[Problem], None],
        close: Callable[[], None],
    ) -> None:
        self._later, self._seconds, self._refuse, self._close = later, seconds, refuse, close
        self._timer: TimerHandle | None = None
        self.fault: Problem | None = None
        self.is_open, self._bytes, self._unparsed = False, 0, 0

    def expect(self) -> None:
        """Allow the time for a head from now on, unless it is running."""
        if self._timer is None:
            self._timer = self._later(self._seconds, self._give_up)

    def stop(self) -> None:
        """Stop the time: no head is expected now."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def close_in(self, seconds: float) -> None:
        """Close the connection after that time: no head is expected any more."""
        self.stop()
        self._timer = self._later(seconds, self._close)

    def begin(self) -> None:
        """Start a head, or a trailer."""
        self.is_open, self._bytes, self._unparsed = True, 0, 0

    def measure(self, part: bytes, status: int, headers: Sequence[object]) -> None:
        """Count a parsed part of the head; raise `Problem` if the head is too long."""
        self._bytes += len(part)
        if self._bytes > _HEAD_BYTES or len(headers) >= _MOST_HEADERS:
            self._fail(_too_long(status))

    def check_unparsed(self, size: int) -> None:
        """Expect the rest of the head, given the size of its newest part; refuse too long heads."""
        self.expect()
        self._unparsed += size
        if self._unparsed > UNPARSED_BYTES:
            self._refuse(_too_long(431))

    def end(self, parser: Any, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """End the head.

        Args:
            parser: the parser that has read it.
            headers: its headers.

        Raises:
            Problem: it asks for a proxy, does not have one Host header, or has a
                Transfer-Encoding before HTTP/1.1 (RFC 9112, 6.1: a proxy may see another end of
                the chunks).
        """
        self.is_open = False
        self.stop()
        version = parser.get_http_version()
        if parser.should_upgrade() and parser.get_method() == b"CONNECT":
            self._fail(Problem(400, "this is no proxy: leave out CONNECT"))
        hosts = sum(name == b"host" for name, _ in headers)
        if hosts > 1 or (not hosts and version == "1.1"):
            self._fail(Problem(400, "a request must have one Host header"))
        if version != "1.1" and any(name == b"transfer-encoding" for name, _ in headers):
            self._fail(Problem(400, f"HTTP/{version} has no Transfer-Encoding: take HTTP/1.1"))

    def _fail(self, problem: Problem) -> None:
        """End the parser, which calls `send_400_response`."""
        self.fault = problem
        raise problem

    def _give_up(self) -> None:
        if self.is_open:
            seconds = f"{self._seconds:g}"
            self._refuse(Problem(408, f"the head did not arrive within {seconds} seconds"))
        else:
            self._close()


def _too_long(status: int) -> Problem:
    return Problem(status, f"a head may have {_HEAD_BYTES:,} bytes and {_MOST_HEADERS} headers")
