"""How much may be under way at once: what is more is told to come again, not dropped silently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect

from panprivacy.service.problems import Problem

_MOST_REQUESTS = 1_000


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
        if size > self._most_body:
            raise Problem(413, f"a body may have {self._most_body:,} bytes; send it in parts")
        crowded = self._waiting and self._waiting + size > self._most_waiting
        if crowded or self._requests >= _MOST_REQUESTS:
            raise Problem(429, "too much is under way; come again", retry_after=1)
        self._waiting += size
        self._requests += 1
        try:
            yield
        finally:
            self._waiting -= size
            self._requests -= 1

    async def receive(self, chunks: AsyncIterator[bytes]) -> bytes | bytearray:
        """The whole body.

        Raises:
            Problem: it is too long, too slow, or its sender has gone.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await self._joined(chunks)
        except TimeoutError:
            reason = f"the body did not arrive within {self._timeout:g} seconds"
            raise Problem(408, reason, close=True) from None
        except ClientDisconnect:
            raise Problem(400, "the body ends too early", close=True) from None

    async def _joined(self, chunks: AsyncIterator[bytes]) -> bytearray:
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if len(body) > self._most_body:
                reason = f"a body may have {self._most_body:,} bytes; send it in parts"
                raise Problem(413, reason, close=True)
        return body
