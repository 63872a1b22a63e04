"""Counts the bodies of requests: small ones where they arrive, large ones in other threads.

Small bodies that wait at the same time are counted in one pass, which costs less than one each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from panprivacy._kernels import wipe_stack
from panprivacy.errors import without_frames
from panprivacy.service.admission import overwrite
from panprivacy.service.stream import BusyError, Outcome, Sent, Stream
from panprivacy.sources import read_body

_SMALL = {"int64": 1 << 18, "arrow": 1 << 18}
_SMALL_TEXT = 1 << 14
"""Bytes that are read and counted faster than they are handed to another thread."""
_FEW_ROWS = 1 << 17
"""A small body can hold many more, if it is compressed."""
_TOGETHER = 16
"""Bodies counted in one pass; other requests wait for the thread meanwhile."""


@dataclass(eq=False, slots=True)
class _Body:
    """A body that waits.

    Args:
        kind: its format, for `read_body`.
        content: its bytes.
        batch_id: what its sender calls it.
        counted: is told when it is counted, or why it is not.
    """

    kind: str
    content: bytearray
    batch_id: bytes | None
    counted: asyncio.Future[None]

    def read(self, stream: Stream) -> Sent:
        """Its rows."""
        batches = read_body(self.kind, self.content, stream.columns.wanted())
        return Sent(batches, self.batch_id)

    def end(self, outcome: Outcome | BaseException | None) -> None:
        """Tell who waits, in the thread of the event loop."""
        if self.counted.done():  # who waited was cancelled
            return
        if isinstance(outcome, BaseException):
            self.counted.set_exception(without_frames(outcome))
        else:
            self.counted.set_result(None)


class BodyCounter:
    """Counts bodies for the coroutines of one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="panprivacy-counter")
        self._waiting: dict[Stream, list[_Body]] = {}

    async def count(
        self, stream: Stream, kind: str, content: bytearray, batch_id: bytes | None
    ) -> None:
        """Have a body counted, and overwritten then, whatever becomes of the caller.

        Raises:
            InputError: a row cannot be counted. Nothing was counted.
            StoreError: the window has ended and cannot be closed yet. Nothing was counted.
        """
        loop = asyncio.get_running_loop()
        body = _Body(kind, content, batch_id, loop.create_future())
        if len(content) > _SMALL.get(kind, _SMALL_TEXT):
            self._hand_over(stream, body)
        elif stream in self._waiting:
            self._waiting[stream].append(body)
        else:
            self._waiting[stream] = [body]
            loop.call_soon(self._count_waiting, stream, 0)
        await body.counted

    def _count_waiting(self, stream: Stream, seen: int) -> None:
        """Count the small bodies that wait, once a turn of the event loop has brought no others.

        Args:
            stream: that they are for.
            seen: how many waited one turn ago.
        """
        bodies = self._waiting.pop(stream)
        first, rest = bodies[:_TOGETHER], bodies[_TOGETHER:]
        if seen < len(bodies) < _TOGETHER:
            first, rest = [], bodies
        if rest:
            self._waiting[stream] = rest
            asyncio.get_running_loop().call_soon(self._count_waiting, stream, len(rest))
        if first:
            self._count_here(stream, first)

    def _count_here(self, stream: Stream, bodies: list[_Body]) -> None:
        """Count some small bodies, but for those that take a while."""
        few = [(body, sent) for body in bodies if (sent := self._read(stream, body))]
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = stream.take_together([sent for _, sent in few], wait=False)
        except BusyError:
            for body, _ in few:
                self._hand_over(stream, body)
            return
        except Exception as error:  # noqa: BLE001 - for those who wait
            outcomes = [error] * len(few)
        for (body, _), outcome in zip(few, outcomes, strict=True):
            overwrite(body.content)
            body.end(outcome)

    def _read(self, stream: Stream, body: _Body) -> Sent | None:
        """The rows of a small body; None if they are many, or cannot be read, and it is seen to."""
        try:
            sent = body.read(stream)
        except Exception as error:  # noqa: BLE001 - for who waits
            overwrite(body.content)
            body.end(error)
            return None
        if sent.rows > _FEW_ROWS:
            self._hand_over(stream, body)
            return None
        return sent

    def _hand_over(self, stream: Stream, body: _Body) -> None:
        """Have another thread count it, which may wait for the stream."""
        job = self._threads.submit(_count, stream, body)
        job.add_done_callback(partial(_tell, asyncio.get_running_loop(), body))


def _count(stream: Stream, body: _Body) -> Outcome:
    """Read and count a body in a thread of its own."""
    try:
        (outcome,) = stream.take_together([body.read(stream)])
        return outcome
    finally:
        overwrite(body.content)
        wipe_stack()  # that of this thread; the sweeper does the rest


def _tell(loop: asyncio.AbstractEventLoop, body: _Body, job: Future[Outcome]) -> None:
    """From the thread that has counted, which may outlive the loop."""
    with suppress(RuntimeError):  # it is closed, and nobody waits any more
        loop.call_soon_threadsafe(body.end, job.exception() or job.result())
