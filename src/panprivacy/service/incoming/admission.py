"""How much may be under way at once: what is more is told to come again, not dropped silently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import numpy as np
from starlette.requests import ClientDisconnect

from panprivacy.noise import wipe
from panprivacy.service.incoming.problems import Problem

_MOST_REQUESTS = 1_000
_FRESH_SECONDS = 1.0

T = TypeVar("T")


class Admission:
    """Bounds the bodies that are being received, each and all together.

    Args:
        most_body: bytes of one body.
        most_waiting: bytes of all bodies that are not counted yet.
        timeout: seconds in which a body has to arrive.
    """

    def __init__(self, most_body: int, most_waiting: int, timeout: float) -> None:
        self._most_body, self._most_waiting, self._timeout = most_body, most_waiting, timeout
        self._waiting = self._requests = 0

    @contextmanager
    def room(self, declared: int | None) -> Iterator[None]:
        """Hold room for a body while it is received and counted.

        Args:
            declared: its length, if the sender tells it; else it takes the room of the longest.

        Raises:
            Problem: it is too long, or too much is under way.
        """
        size = self._most_body if declared is None else declared
        self._check_length(size)
        crowded = self._waiting + size > self._most_waiting
        if crowded or self._requests >= _MOST_REQUESTS:
            raise Problem(429, "too much is under way; come again", retry_after=1)
        self._waiting += size
        self._requests += 1
        try:
            yield
        finally:
            self._waiting -= size
            self._requests -= 1

    async def receive(self, chunks: AsyncIterator[bytes]) -> bytearray:
        """The whole body, for the caller to overwrite.

        Raises:
            Problem: it is too long, too slow, or its sender has gone.
        """
        body = bytearray()
        try:
            async with asyncio.timeout(self._timeout):
                async for chunk in chunks:
                    self._check_length(len(body) + len(chunk))
                    body += chunk
        except BaseException as error:
            overwrite(body)
            if isinstance(error, TimeoutError):
                reason = f"the body did not arrive within {self._timeout:g} seconds"
                raise Problem(408, reason) from None
            if isinstance(error, ClientDisconnect):
                raise Problem(400, "the body ends too early") from None
            raise
        return body

    def _check_length(self, size: int) -> None:
        if size > self._most_body:
            raise Problem(413, f"a body may have {self._most_body:,} bytes; send it in parts")


class Shared(Generic[T]):
    """What anybody may ask for, and what costs something: done once a second, however many ask.

    Args:
        work: does it.
    """

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._task: asyncio.Future[T] | None = None
        self._since = 0.0

    async def get(self) -> T:
        """What came of it, which may be a second old."""
        now = asyncio.get_running_loop().time()
        if self._task is None or (self._task.done() and now >= self._since + _FRESH_SECONDS):
            self._task, self._since = asyncio.ensure_future(self._work()), now
        return await asyncio.shield(self._task)


def overwrite(body: bytearray) -> None:
    """Put zeros in place of a body, also while views of it are alive."""
    wipe(np.frombuffer(body, np.uint8))
