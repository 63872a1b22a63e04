"""Counting of request bodies: small ones at once, others in threads of their stream.

Small bodies that wait at the same time are read as one and counted in one pass, which is cheaper
than one pass each.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from panprivacy.errors import InputError, without_frames
from panprivacy.ground.kernels import wipe_stack
from panprivacy.service.batches import BusyError, Outcome, Submission
from panprivacy.service.incoming.admission import overwrite
from panprivacy.service.incoming.fair_queue import FairQueue
from panprivacy.service.served import Later, Served

_SMALL = {"arrow": 0, "int64": 1 << 18}
"""Maximum bytes that are counted faster than passed to a thread; of Arrow, a few bytes can be
unpacked to very many.
"""
_SMALL_TEXT = 1 << 14
_TOGETHER = 32
"""Maximum number of bodies counted in one pass; other requests wait for the thread."""
_LARGEST = 16
"""Maximum number of the largest small bodies in one pass; of others, as many as take no longer."""
_THREADS = 2
_STOP_SECONDS = 10.0


OutcomeCallback = Callable[[Outcome | BaseException | None], None]
"""Callback for the outcome of a body, in the thread of the event loop."""


@dataclass(eq=False, slots=True)
class Body:
    """A body that waits.

    Args:
        kind: its format, for `BodyReader.read`.
        content: its bytes.
        batch_id: its id given by the sender.
        loop: the event loop of its request.
        told: callback for the outcome, called once.
        token: token of its sender; bodies of different tokens take turns.
        over: whether the callback was called.
    """

    kind: str
    content: bytearray
    batch_id: bytes | None
    loop: asyncio.AbstractEventLoop
    told: OutcomeCallback
    token: str = ""
    over: bool = False

    def read(self, stream: Served) -> Submission | Exception:
        """Return its rows, or why they cannot be read."""
        try:
            batches = stream.columns.body_reader.read(self.kind, self.content)
        except Exception as error:  # noqa: BLE001 - for who waits
            return without_frames(error)
        return Submission(batches, self.batch_id)

    def end(self, outcome: Outcome | None) -> None:
        """Overwrite the body, and report its outcome, from any thread."""
        overwrite(self.content)
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self.loop.call_soon_threadsafe(self.tell, outcome)

    def end_later(self, outcome: Later) -> None:
        """Report the outcome, once it is known."""
        error = outcome.exception()
        self.end(error if isinstance(error, Exception) else outcome.result())

    def tell(self, outcome: Outcome | BaseException | None) -> None:
        """Report the outcome, in the thread of the event loop."""
        if not self.over:  # else the request was cancelled
            self.over = True
            self.told(outcome)

    def cancel(self, msg: object = None) -> None:  # noqa: ARG002 - as tasks are cancelled
        """Stop waiting: it is not counted, unless that begins at once or has begun."""
        self.tell(asyncio.CancelledError())


class BodyCounter:
    """Counter of bodies for the coroutines of one event loop.

    Args:
        streams: all streams.
    """

    def __init__(self, streams: Iterable[Served]) -> None:
        self._threads = {stream: _StreamThreads(stream) for stream in streams}
        self._waiting: dict[Served, list[Body]] = {}

    def start(self) -> None:
        """Start the threads, all at once: their number then shows nothing."""
        for threads in self._threads.values():
            threads.start()

    def stop(self) -> None:
        """End the threads; bodies whose senders were told to come again are not counted."""
        until = time.monotonic() + _STOP_SECONDS
        for threads in self._threads.values():
            threads.stop()
        for threads in self._threads.values():
            threads.join(until)

    async def count(
        self,
        stream: Served,
        kind: str,
        content: bytearray,
        batch_id: bytes | None,
        token: str = "",
    ) -> None:
        """Count a body for a coroutine; see `put`. Raise the error if it fails."""
        counted = asyncio.get_running_loop().create_future()
        body = self.put(stream, kind, content, batch_id, partial(_set, counted), token)
        del content  # an error holds this frame and its references
        outcome = None
        try:
            outcome = await counted
            if isinstance(outcome, Exception):
                raise outcome
        except asyncio.CancelledError:
            body.cancel()
            raise
        finally:
            del outcome, counted, body

    def put(
        self,
        stream: Served,
        kind: str,
        content: bytearray,
        batch_id: bytes | None,
        told: OutcomeCallback,
        token: str = "",
    ) -> Body:
        """Schedule a body to be counted and then overwritten, even if the caller ends.

        Args:
            stream: the stream that counts it.
            kind: its format.
            content: its bytes.
            batch_id: its id given by the sender.
            told: callback for the outcome; an `InputError` if a row cannot be counted, and a
                `StoreError` if the window has ended and cannot be closed yet: then nothing was
                counted.
            token: token of its sender.
        """
        loop = asyncio.get_running_loop()
        body = Body(kind, content, batch_id, loop, told, token)
        is_small = len(content) <= _SMALL.get(kind, _SMALL_TEXT)
        if not is_small or stream.columns.group is not None:  # each group takes time
            self._threads[stream].put(body)
        elif stream in self._waiting:
            self._waiting[stream].append(body)
        else:
            self._waiting[stream] = [body]
            loop.call_soon(self._count_waiting, stream, 0)
        return body

    def _count_waiting(self, stream: Served, seen: int) -> None:
        """Count the waiting small bodies, once a turn of the event loop has brought no others.

        Args:
            stream: the stream of the bodies.
            seen: number of bodies that waited one turn ago.
        """
        bodies = self._waiting.pop(stream)
        end = _end_of_pass(bodies)
        if seen < len(bodies) == end < _TOGETHER:
            end = 0
        first, rest = bodies[:end], bodies[end:]
        if rest:
            self._waiting[stream] = rest
            asyncio.get_running_loop().call_soon(self._count_waiting, stream, len(rest))
        if not first:
            return
        for body, outcome in zip(first, _count(stream, first, wait=False), strict=True):
            if isinstance(outcome, BusyError):
                self._threads[stream].put(body)
            elif isinstance(outcome, Future):
                outcome.add_done_callback(body.end_later)
            else:
                overwrite(body.content)
                body.tell(outcome)


class _StreamThreads:
    """Threads that count slow bodies, or wait for their stream; no other stream waits for them.

    There are two, so that one body is read while another one is counted.

    Args:
        stream: the stream of the bodies.
    """

    def __init__(self, stream: Served) -> None:
        self._stream = stream
        self._queue = FairQueue[Body]()
        name = f"panprivacy-{stream.name}"
        self._threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for _ in range(_THREADS)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def put(self, body: Body) -> None:
        """Schedule a body to be counted after the earlier ones of its sender."""
        self._queue.put(body.token, body)

    def stop(self) -> None:
        """End the threads after the waiting bodies."""
        self._queue.close()

    def join(self, until: float) -> None:
        """Wait for their end, but not beyond a time of the monotonic clock."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while self._counted(self._queue.get()):
            pass

    def _counted(self, body: Body | None) -> bool:
        """Count the next body; return False if there will be none."""
        if body is None:
            return False
        outcome: Outcome | Later | None = None
        if not body.over:
            (outcome,) = _count(self._stream, [body], wait=True)
        if isinstance(outcome, Future):
            outcome.add_done_callback(body.end_later)
        else:
            body.end(outcome)
        wipe_stack()  # the stack of this thread; the sweeper wipes the rest
        return True


def _end_of_pass(bodies: Sequence[Body]) -> int:
    """Return the number of small bodies that are counted in one pass."""
    full = 0.0
    for at, body in enumerate(bodies[:_TOGETHER]):
        full += len(body.content) / (_SMALL.get(body.kind, _SMALL_TEXT) or 1)
        if full > _LARGEST:
            return at
    return min(len(bodies), _TOGETHER)


def _set(told: asyncio.Future[Outcome | BaseException | None], outcome: object) -> None:
    """Set the outcome for a coroutine, unless it no longer waits."""
    if not told.done():
        told.set_result(outcome)  # type: ignore[arg-type]


def _count(stream: Served, bodies: Sequence[Body], *, wait: bool) -> list[Outcome | Later]:
    """Count some bodies; return the outcome of each, a `BusyError` if it would have to wait.

    Bodies of one format are read as one. If a row of them cannot be counted, each is read on its
    own.
    """
    kind = bodies[0].kind
    alike = [one for one in bodies if one.batch_id is None and one.kind == kind]
    read = None
    if len(alike) > 1:
        contents = [one.content for one in alike]
        with suppress(Exception):  # each error is then reported on its own
            read = stream.columns.body_reader.read_together(kind, contents)
    if read is None:
        return _count_each(stream, bodies, wait=wait)
    content, batches = read
    (outcome,) = _taken(stream, [Submission(batches)], wait=wait)
    if isinstance(outcome, Future):
        outcome.add_done_callback(lambda _: overwrite(content))
    else:
        overwrite(content)
    if isinstance(outcome, InputError):  # nothing was counted
        return _count_each(stream, bodies, wait=wait)
    if len(alike) == len(bodies):
        return [outcome] * len(bodies)
    together = {*alike}
    rest = iter(_count_each(stream, [one for one in bodies if one not in together], wait=wait))
    return [outcome if one in together else next(rest) for one in bodies]


def _count_each(stream: Served, bodies: Sequence[Body], *, wait: bool) -> list[Outcome | Later]:
    """Read bodies one after another, and count them in one pass."""
    read = [body.read(stream) for body in bodies]
    counted = iter(_taken(stream, [one for one in read if isinstance(one, Submission)], wait=wait))
    return [next(counted) if isinstance(one, Submission) else one for one in read]


def _taken(stream: Served, sent: Sequence[Submission], *, wait: bool) -> list[Outcome | Later]:
    """Count the readable bodies; return the outcome of each."""
    if not sent:
        return []
    try:
        return list(stream.take_together(sent, wait=wait))
    except Exception as error:  # noqa: BLE001 - for those who wait
        return [without_frames(error)] * len(sent)
