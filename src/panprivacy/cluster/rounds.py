"""Sends what came to all shards of a stream, each tick, whether or not anything came.

So when messages are sent, and how many, depends on nothing but the clock and on how much came.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from panprivacy._kernels import wipe_stack
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import seal
from panprivacy.cluster.messages import Round
from panprivacy.cluster.queues import BrokerError, LostError, Position, Queue
from panprivacy.cluster.routing import Router
from panprivacy.errors import without_frames

TICK: Final = 0.02
"""Seconds from one round to the next."""

_AGAIN_SECONDS: Final = 10.0
"""For so long a round is sent again that the broker does not take; less than it remembers them."""
_PAUSE: Final = 0.2
_STOP_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class _Body:
    """What goes with a round.

    Args:
        batches: its rows, checked.
        name: what its sender calls it.
        sent: is told what became of it.
    """

    batches: Sequence[pa.RecordBatch]
    name: bytes | None
    sent: Future[None] = field(default_factory=Future)


class Rounds:
    """The rounds of one stream, in a thread of their own.

    Args:
        broker: has the queues.
        queues: of the stream, by shard.
        router: says which shard counts a row.
        column: place of the ids.
        publics: the public keys of all shards, asked for before each round; it may raise.
        hear: is called with where the broker has each round, or why it does not.
    """

    def __init__(
        self,
        broker: Broker,
        queues: Sequence[Queue],
        router: Router,
        column: int,
        publics: Callable[[], Sequence[bytes]],
        hear: Callable[[Sequence[Position] | BrokerError], None] = lambda _: None,
    ) -> None:
        self._broker, self._queues, self._router = broker, queues, router
        self._column, self._publics, self._hear = column, publics, hear
        self._most = broker.most_message
        self._bodies: list[_Body] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        name = f"panprivacy-rounds-{queues[0].stream}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Send what is there, and end."""
        with self._lock:
            self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def put(self, batches: Sequence[pa.RecordBatch], name: bytes | None) -> Future[None]:
        """Have rows go with the next round.

        Args:
            batches: checked; they must stay as they are until it is told what became of them.
            name: what its sender calls it, the same when it is sent again.

        Returns:
            Is told when the broker has all of them; an `InputError` if a row cannot be sent, then
            none was; a `BrokerError` if some may be there.

        Raises:
            BrokerError: it has stopped.
        """
        body = _Body(batches, name)
        with self._lock:
            if self._stopping.is_set():
                message = "this has stopped sending"
                raise BrokerError(message)
            self._bodies.append(body)
        return body.sent

    def _run(self) -> None:
        stopping = False
        while not stopping:
            with self._lock:
                stopping = self._stopping.is_set()
                bodies, self._bodies = self._bodies, []
            self._send(bodies)
            del bodies
            self._stopping.wait(TICK)

    def _send(self, bodies: Sequence[_Body]) -> None:
        """One round, and the word to those whose rows are in it."""
        failed: Exception | None = None
        try:
            self._publish(self._packed(bodies))
        except Exception as error:  # noqa: BLE001 - its frames hold rows
            failed = without_frames(error)
        for body in bodies:
            if body.sent.done():
                continue
            if failed is None:
                body.sent.set_result(None)
            else:
                body.sent.set_exception(failed)
        wipe_stack()

    def _packed(self, bodies: Sequence[_Body]) -> list[tuple[Queue, bytes]]:
        """The sealed messages of a round."""
        publics = self._publics()
        one = Round(self._router, self._column, self._most)
        for body in bodies:
            try:
                one.add(body.batches, body.name)
            except Exception as error:  # noqa: BLE001 - for its sender
                body.sent.set_exception(without_frames(error))
        return [
            (queue, seal(plain, public, queue.subject))
            for message in one.pack()
            for queue, plain, public in zip(self._queues, message, publics, strict=True)
        ]

    def _publish(self, messages: Sequence[tuple[Queue, bytes]]) -> None:
        """Have the broker take a round; again for a while, as it knows what it has."""
        until = time.monotonic() + _AGAIN_SECONDS
        while True:
            try:
                positions = self._broker.publish(messages)
            except BrokerError as error:
                self._hear(error)
                hopeless = isinstance(error, LostError) or self._stopping.is_set()
                if hopeless or time.monotonic() > until:
                    raise
                self._stopping.wait(_PAUSE)
            else:
                self._hear(positions)
                return
