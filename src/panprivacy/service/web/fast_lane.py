"""Requests that are complete at once, answered without ASGI and without a task."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from hmac import compare_digest
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from panprivacy.service.incoming.admission import overwrite
from panprivacy.service.web.answering import FastPath, Taker, Waiting

_EMPTY_LINE = b"\r\n\r\n"
_KEY = re.compile(rb"^idempotency-key\s*:", re.IGNORECASE | re.MULTILINE)


class FastLane:
    """The requests of one connection that the fast path takes, one at a time.

    Args:
        direct: answers requests before the application, if it can.
        tasks: the tasks of the server; a request that waits for its answer is one of them.
        answer: answers a request with a response.
    """

    __slots__ = ("_answer", "_direct", "_head", "_length", "_taker", "_tasks", "_waiting")

    def __init__(
        self,
        direct: FastPath,
        tasks: set[Any],
        answer: Callable[[RequestResponseCycle, Response], None],
    ) -> None:
        self._direct, self._tasks, self._answer = direct, tasks, answer
        self._waiting: Waiting | None = None  # the request that the taker has taken
        self._taker: Taker | None = None  # the handler of the last complete request
        self._head = b""  # the head of that one, if it came alone and nothing has come since
        self._length = 0  # the size of its body; with the head, once that is stored

    def choose(self, cycle: RequestResponseCycle) -> bool:
        """Choose the handler of a new request; return whether there is one."""
        self._taker, self._length = self._direct.taker(cycle.scope), len(cycle.body)
        return self._taker is not None

    def take(self, cycle: RequestResponseCycle, body: bytearray) -> bool:
        """Start a request with its handler; return False if it cannot be."""
        if self._taker is not None:
            self._waiting = self._taker.take(body, partial(self._answered, cycle))
        if self._waiting is None:
            return False
        self._tasks.add(self._waiting)  # can be cancelled as a task can
        return True

    def take_again(self, cycle: RequestResponseCycle | None, data: memoryview) -> bool:
        """Take a request that differs from the last one only in its body; else return False.

        The parser would read the same head in the same way. A head contains a token, so the
        comparison takes constant time.

        Args:
            cycle: the last request; None before the first.
            data: the request; nothing else has come with it.
        """
        size = len(self._head)
        if not size or len(data) != self._length or cycle is None or not cycle.response_complete:
            return False
        if cycle.flow.write_paused or not compare_digest(data[:size], self._head):
            return False
        body = bytearray(data[size:])
        if not self.take(cycle, body):
            overwrite(body)
            return False
        cycle.response_started = cycle.response_complete = False
        return True

    def remember(self, data: memoryview) -> None:
        """Store the head of a request that came complete and alone, if its handler has taken it.

        A head with an Idempotency-Key never comes twice. The end of its head shows that nothing
        follows its body: the head ends at its first empty line, if all its lines end correctly.
        """
        if self._waiting is None:
            return
        head = bytes(data[: len(data) - self._length])
        lines = head.count(b"\r\n")
        if _KEY.search(head):
            return
        if head.find(_EMPTY_LINE) == len(head) - len(_EMPTY_LINE) and head.count(b"\n") == lines:
            self._head, self._length = head, len(data)

    def forget_head(self) -> None:
        """Forget the head: something else has come."""
        self._head = b""

    def let_go(self) -> bool:
        """Forget the handler, unless the head is stored for the next request; return whether so."""
        if self._head:
            return False
        self._taker = None
        return True

    def _answered(self, cycle: RequestResponseCycle, response: Response) -> None:
        self._tasks.discard(self._waiting)
        self._waiting = None
        cycle.response_started = cycle.response_complete = True
        self._answer(cycle, response)
