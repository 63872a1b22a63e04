"""Rounds: messages to all shards of a stream at each tick, even if nothing came.

So the times and the number of messages depend only on the clock and on the amount of data.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import seal
from panprivacy.cluster.messages import Round
from panprivacy.cluster.queues import BrokerError, LostError, Position, Queue
from panprivacy.cluster.routing import Router
from panprivacy.errors import without_frames
from panprivacy.ground.kernels import wipe_stack

TICK: Final = 0.02
"""Seconds from one round to the next."""

_AGAIN_SECONDS: Final = 10.0
"""Seconds for which a refused round is repeated; less than the broker remembers messages."""
_PAUSE: Final = 0.2
_STOP_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class _Body:
    """One request in a round.

    Args:
        batches: its rows, checked.
        name: its name given by the sender.
        sent: the future of its outcome.
    """

    batches: Sequence[pa.RecordBatch]
    name: bytes | None
    sent: Future[None] = field(default_factory=Future)


class Rounds:
    """The rounds of one stream, in a thread of their own.

    Args:
        broker: has the queues.
        queues: the queues of the stream, by shard.
        router: assigns rows to shards.
        column: index of the column of ids.
        publics: returns the public keys of all shards, called before each round; it may raise.
        hear: called with the positions of each round in the broker, or why the broker has it not.
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
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Send what is pending, and end."""
        with self._lock:
            self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def put(self, batches: Sequence[pa.RecordBatch], name: bytes | None) -> Future[None]:
        """Put rows into the next round.

        Args:
            batches: the rows, checked; they must not change until the future is done.
            name: their name given by the sender, the same if they are sent again.

        Returns:
            A future that completes when the broker has all rows. It fails with an `InputError` if a
            row cannot be sent, then none was; with a `BrokerError` if some rows may be there.

        Raises:
            BrokerError: the rounds have been stopped.
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
        """Send one round, and set the outcomes of its requests."""
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
        """Return the sealed messages of a round."""
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
        """Publish a round; retry for a while, as the broker recognises messages that it has."""
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
