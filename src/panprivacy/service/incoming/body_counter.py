"""Counts the bodies of requests: small ones where they arrive, others in threads of their stream.

Small bodies that wait at the same time are read as one and counted in one pass, which costs less
than one each.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue

from panprivacy._kernels import wipe_stack
from panprivacy.errors import InputError, without_frames
from panprivacy.service.batches import BusyError, Outcome, Sent
from panprivacy.service.incoming.admission import overwrite
from panprivacy.service.served import Later, Served
from panprivacy.sources import read_body, read_together

_SMALL = {"arrow": 0, "int64": 1 << 18}
"""Bytes that are read and counted faster than they are handed to another thread; of Arrow, a few
can be unpacked to very many."""
_SMALL_TEXT = 1 << 14
_TOGETHER = 16
"""Bodies counted in one pass; other requests wait for the thread meanwhile."""
_THREADS = 2
_STOP_SECONDS = 10.0


@dataclass(eq=False, slots=True)
class _Body:
    """A body that waits.

    Args:
        kind: its format, for `read_body`.
        content: its bytes.
        batch_id: what its sender calls it.
        counted: is told what became of it.
    """

    kind: str
    content: bytearray
    batch_id: bytes | None
    counted: asyncio.Future[Outcome | None]

    def read(self, stream: Served) -> Sent | Exception:
        """Its rows, or why they cannot be read."""
        try:
            batches = read_body(self.kind, self.content, stream.columns.wanted())
        except Exception as error:  # noqa: BLE001 - for who waits
            return without_frames(error)
        return Sent(batches, self.batch_id)

    def end(self, outcome: Outcome | None) -> None:
        """Overwrite it, and answer who waits, in any thread."""
        overwrite(self.content)
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self.counted.get_loop().call_soon_threadsafe(self.tell, outcome)

    def end_later(self, outcome: Later) -> None:
        """The same once it is known what became of it."""
        error = outcome.exception()
        self.end(error if isinstance(error, Exception) else outcome.result())

    def tell(self, outcome: Outcome | None) -> None:
        """Answer who waits, in the thread of the event loop."""
        if not self.counted.done():  # else who waited was cancelled
            self.counted.set_result(outcome)


class BodyCounter:
    """Counts bodies for the coroutines of one event loop.

    Args:
        streams: all that there are.
    """

    def __init__(self, streams: Iterable[Served]) -> None:
        self._threads = {stream: _StreamThreads(stream) for stream in streams}
        self._waiting: dict[Served, list[_Body]] = {}

    def start(self) -> None:
        """Start the threads, all at once: which of them there are tells nothing then."""
        for threads in self._threads.values():
            threads.start()

    def stop(self) -> None:
        """End the threads; bodies whose senders have been told to come again are not counted."""
        until = time.monotonic() + _STOP_SECONDS
        for threads in self._threads.values():
            threads.stop()
        for threads in self._threads.values():
            threads.join(until)

    async def count(
        self, stream: Served, kind: str, content: bytearray, batch_id: bytes | None
    ) -> None:
        """The same as `put` for a coroutine, which it raises what went wrong in."""
        counted = self.put(stream, kind, content, batch_id)
        del content  # an error holds this frame, and what it refers to
        outcome = await counted
        try:
            if isinstance(outcome, Exception):
                raise outcome
        finally:
            del outcome, counted

    def put(
        self, stream: Served, kind: str, content: bytearray, batch_id: bytes | None
    ) -> asyncio.Future[Outcome | None]:
        """Have a body counted, and overwritten then, whatever becomes of the caller.

        Returns:
            What became of it; an `InputError` if a row cannot be counted, and a `StoreError` if the
            window has ended and cannot be closed yet: nothing was counted then.
        """
        loop = asyncio.get_running_loop()
        body = _Body(kind, content, batch_id, loop.create_future())
        is_small = len(content) <= _SMALL.get(kind, _SMALL_TEXT)
        if not is_small or stream.columns.group is not None:  # groups take time each
            self._threads[stream].put(body)
        elif stream in self._waiting:
            self._waiting[stream].append(body)
        else:
            self._waiting[stream] = [body]
            loop.call_soon(self._count_waiting, stream, 0)
        return body.counted

    def _count_waiting(self, stream: Served, seen: int) -> None:
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
        for body, outcome in zip(first, _count(stream, first, wait=False), strict=True):
            if isinstance(outcome, BusyError):
                self._threads[stream].put(body)
            elif isinstance(outcome, Future):
                outcome.add_done_callback(body.end_later)
            else:
                overwrite(body.content)
                body.tell(outcome)


class _StreamThreads:
    """Count what takes a while, or has to wait for its stream; no other stream waits for it.

    Two of them, so that one body is read while another one is counted.

    Args:
        stream: of the bodies.
    """

    def __init__(self, stream: Served) -> None:
        self._stream = stream
        self._queue: SimpleQueue[_Body | None] = SimpleQueue()
        name = f"panprivacy-{stream.name}"
        self._threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for _ in range(_THREADS)
        ]

    def start(self) -> None:
        """Begin to count."""
        for thread in self._threads:
            thread.start()

    def put(self, body: _Body) -> None:
        """Have a body counted after those that are there."""
        self._queue.put(body)

    def stop(self) -> None:
        """Have them end after the bodies that are there."""
        for _ in self._threads:
            self._queue.put(None)

    def join(self, until: float) -> None:
        """Wait for their end, but not beyond a time of the monotonic clock."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while self._counted(self._queue.get()):
            pass

    def _counted(self, body: _Body | None) -> bool:
        """Count the next body; False if there will be none."""
        if body is None:
            return False
        outcome: Outcome | Later | None = None
        if not body.counted.cancelled():
            (outcome,) = _count(self._stream, [body], wait=True)
        if isinstance(outcome, Future):
            outcome.add_done_callback(body.end_later)
        else:
            body.end(outcome)
        wipe_stack()  # that of this thread; the sweeper does the rest
        return True


def _count(stream: Served, bodies: Sequence[_Body], *, wait: bool) -> list[Outcome | Later]:
    """Count some bodies; what becomes of each, a `BusyError` if it would have to wait.

    Those of one format are read as one. If a row of them cannot be counted, each is by itself.
    """
    alike = [one for one in bodies if one.batch_id is None and one.kind == bodies[0].kind]
    read = None
    if len(alike) > 1:
        contents = [one.content for one in alike]
        with suppress(Exception):  # whatever went wrong, each is told by itself
            read = read_together(alike[0].kind, contents, stream.columns.wanted())
    if read is None:
        return _count_each(stream, bodies, wait=wait)
    content, batches = read
    (outcome,) = _taken(stream, [Sent(batches)], wait=wait)
    if isinstance(outcome, Future):
        outcome.add_done_callback(lambda _: overwrite(content))
    else:
        overwrite(content)
    if isinstance(outcome, InputError):  # nothing was counted
        return _count_each(stream, bodies, wait=wait)
    others = iter(_count_each(stream, [one for one in bodies if one not in alike], wait=wait))
    return [outcome if one in alike else next(others) for one in bodies]


def _count_each(stream: Served, bodies: Sequence[_Body], *, wait: bool) -> list[Outcome | Later]:
    """Read bodies one after another, and count them in one pass."""
    read = [body.read(stream) for body in bodies]
    counted = iter(_taken(stream, [one for one in read if isinstance(one, Sent)], wait=wait))
    return [next(counted) if isinstance(one, Sent) else one for one in read]


def _taken(stream: Served, sent: Sequence[Sent], *, wait: bool) -> list[Outcome | Later]:
    """Count what could be read; what becomes of each."""
    if not sent:
        return []
    try:
        return list(stream.take_together(sent, wait=wait))
    except Exception as error:  # noqa: BLE001 - for those who wait
        return [without_frames(error)] * len(sent)
