"""How much may be under way at once: what is more is told to come again, not dropped silently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from starlette.requests import ClientDisconnect

from panprivacy.noise import wipe
from panprivacy.service.incoming.problems import Problem

_MOST_REQUESTS = 1_000
_FRESH_SECONDS = 1.0

T = TypeVar("T")


class Sender(NamedTuple):
    """Who sends.

    Args:
        token: its name.
        stream: that it sends to.
    """

    token: str
    stream: str


class Room:
    """So much of something, of which there is always a part left for who comes next.

    A token may hold as much as it leaves free, and half of that for one stream. So a token alone
    has half of the room at most, and a third for one stream; the rest is for others in the same
    way. Only what is held at the moment is known.

    Args:
        most: there is.
    """

    __slots__ = ("_free", "_held")

    def __init__(self, most: int) -> None:
        self._free = most
        self._held: dict[str | Sender, int] = {}

    def check(self, sender: Sender, size: int) -> None:
        """Raise `Problem` if there is no room for so much more of a sender."""
        free, held = self._free - size, self._held
        most = held.get(sender.token, 0) + size, 2 * (held.get(sender, 0) + size)
        if max(most) > free:
            raise Problem(429, "too much is under way; come again", retry_after=1)

    def hold(self, sender: Sender, size: int) -> None:
        """Hold so much more, or less; of who holds nothing, nothing is known."""
        self._free -= size
        for holder in (sender, sender.token):
            held = self._held.pop(holder, 0) + size
            if held:
                self._held[holder] = held


class Admission:
    """Bounds the requests that are under way, and their bodies, each and all together.

    Args:
        most_body: bytes of one body.
        most_waiting: bytes that have come of all bodies that are not counted yet; of less than
            three times `most_body`, the longest one does not fit into the share of its sender.
        timeout: seconds in which a body has to arrive.
    """

    def __init__(self, most_body: int, most_waiting: int, timeout: float) -> None:
        self._most_body, self._timeout = most_body, timeout
        self._bytes, self._requests = Room(most_waiting), Room(_MOST_REQUESTS)

    @contextmanager
    def request(self, sender: Sender) -> Iterator[None]:
        """Let a request in, until it is answered.

        Raises:
            Problem: too many are under way.
        """
        self._requests.check(sender, 1)
        self._requests.hold(sender, 1)
        try:
            yield
        finally:
            self._requests.hold(sender, -1)

    def hold_whole(self, sender: Sender, size: int) -> None:
        """Let a request in whose body is there already, until `give_back`.

        Raises:
            Problem: it is too long, or too much is under way.
        """
        self._check_length(size)
        self._requests.check(sender, 1)
        self._bytes.check(sender, size)
        self._requests.hold(sender, 1)
        self._bytes.hold(sender, size)

    def give_back(self, sender: Sender, size: int) -> None:
        """Give the room of such a request back."""
        self._requests.hold(sender, -1)
        self._bytes.hold(sender, -size)

    @asynccontextmanager
    async def body(
        self, sender: Sender, declared: int | None, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytearray]:
        """The whole body, for the caller to count and overwrite.

        Room is held for what has come, and not for what may: who sends slowly holds little.

        Args:
            sender: of the body.
            declared: its length, if the sender tells it.
            chunks: what comes.

        Raises:
            Problem: it is too long or too slow, too much is under way, or its sender has gone.
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
