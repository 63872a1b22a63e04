"""Admission: limits of concurrent requests; a request beyond them is told to come again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from starlette.requests import ClientDisconnect

from panprivacy.privacy.noise import wipe
from panprivacy.service.incoming.problems import Problem

_MOST_REQUESTS = 1_000
_FRESH_SECONDS = 1.0

T = TypeVar("T")


class Sender(NamedTuple):
    """Sender of a request.

    Args:
        token: name of its token.
        stream: the stream that it sends to.
    """

    token: str
    stream: str


class Room:
    """Limited resource, of which a part is always left for the next holder.

    A token may hold as much as it leaves free, and half of that for one stream. So one token alone
    has at most half of the resource, and a third for one stream; the rest is for others in the same
    way. Only the amounts held at the moment are known.

    Args:
        most: total amount.
    """

    __slots__ = ("_free", "_held")

    def __init__(self, most: int) -> None:
        self._free = most
        self._held: dict[str | Sender, int] = {}

    def check(self, sender: Sender, size: int) -> None:
        """Raise `Problem` if there is no room for this additional amount of a sender."""
        free, held = self._free - size, self._held
        most = held.get(sender.token, 0) + size, 2 * (held.get(sender, 0) + size)
        if max(most) > free:
            raise Problem(429, "too much is under way; come again", retry_after=1)

    def hold(self, sender: Sender, size: int) -> None:
        """Change the amount that a sender holds; senders that hold nothing are not recorded."""
        self._free -= size
        for holder in (sender, sender.token):
            held = self._held.pop(holder, 0) + size
            if held:
                self._held[holder] = held


class Admission:
    """Limits of the requests in progress, and of their bodies, each and all together.

    Args:
        most_body: maximum size of one body in bytes.
        most_waiting: maximum received bytes of all bodies that are not counted yet; if it is less
            than three times `most_body`, the longest body does not fit into its sender's share.
        timeout: seconds in which a body has to arrive.
    """

    def __init__(self, most_body: int, most_waiting: int, timeout: float) -> None:
        self._most_body, self._timeout = most_body, timeout
        self._bytes, self._requests = Room(most_waiting), Room(_MOST_REQUESTS)

    @contextmanager
    def request(self, sender: Sender) -> Iterator[None]:
        """Admit a request, until it is answered.

        Raises:
            Problem: too many requests are in progress.
        """
        self._requests.check(sender, 1)
        self._requests.hold(sender, 1)
        try:
            yield
        finally:
            self._requests.hold(sender, -1)

    def hold_complete(self, sender: Sender, size: int) -> None:
        """Admit a request whose body is already complete, until `give_back`.

        Raises:
            Problem: it is too long, or too much is in progress.
        """
        self._check_length(size)
        self._requests.check(sender, 1)
        self._bytes.check(sender, size)
        self._requests.hold(sender, 1)
        self._bytes.hold(sender, size)

    def give_back(self, sender: Sender, size: int) -> None:
        """Release the room of such a request."""
        self._requests.hold(sender, -1)
        self._bytes.hold(sender, -size)

    @asynccontextmanager
    async def body(
        self, sender: Sender, declared: int | None, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytearray]:
        """Receive a complete body, for the caller to count and overwrite.

        Room is held for received bytes, not for declared ones: a slow sender holds little.

        Args:
            sender: sender of the body.
            declared: its length, if the sender declares it.
            chunks: the received data.

        Raises:
            Problem: it is too long or too slow, too much is in progress, or its sender has gone.
        """
        self._check_length(declared or 0)
        self._bytes.check(sender, declared or 0)
        body = bytearray()
        try:
            await self._receive(sender, chunks, body)
            yield body
        finally:
            self._bytes.hold(sender, -len(body))

    async def _receive(self, sender: Sender, chunks: AsyncIterator[bytes], body: bytearray) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                async for chunk in chunks:
                    self._check_length(len(body) + len(chunk))
                    self._bytes.check(sender, len(chunk))
                    body += chunk
                    self._bytes.hold(sender, len(chunk))
        except BaseException as error:
            overwrite(body)
            if isinstance(error, TimeoutError):
                reason = f"the body did not arrive within {self._timeout:g} seconds"
                raise Problem(408, reason) from None
            if isinstance(error, ClientDisconnect):
                raise Problem(400, "the body ends too early") from None
            raise

    def _check_length(self, size: int) -> None:
        if size > self._most_body:
            raise Problem(413, f"a body may have {self._most_body:,} bytes; send it in parts")


class Shared(Generic[T]):
    """Result that is costly and open to anybody: computed at most once a second.

    Args:
        work: computes the result.
    """

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._task: asyncio.Future[T] | None = None
        self._since = 0.0

    async def get(self) -> T:
        """Return the result, which may be a second old."""
        now = asyncio.get_running_loop().time()
        if self._task is None or (self._task.done() and now >= self._since + _FRESH_SECONDS):
            self._task, self._since = asyncio.ensure_future(self._work()), now
        return await asyncio.shield(self._task)


def overwrite(body: bytearray) -> None:
    """Overwrite a body with zeros, even while views of it exist."""
    wipe(np.frombuffer(body, np.uint8))
