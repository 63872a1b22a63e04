"""Takes in what is sent to a cluster: checks it, divides it by shard, and sends it in rounds.

What comes is checked whole before any of it leaves. Each tick, whether or not anything came, every
shard of a stream gets a message, all of one length: which rows go where does not show.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import pyarrow as pa

from panprivacy._kernels import wipe_stack
from panprivacy.cluster.broker import Broker, BrokerError, Position, Queue
from panprivacy.cluster.envelopes import seal
from panprivacy.cluster.messages import Round
from panprivacy.cluster.releaser import Releaser
from panprivacy.cluster.routing import Router
from panprivacy.errors import without_frames
from panprivacy.guarantee import Guarantee
from panprivacy.programs.intake import Columns, Nulls
from panprivacy.service.batches import BusyError, Outcome, Reception, Sent
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Announced, Later, Shown, described

_TICK: Final = 0.02
_AGAIN_SECONDS: Final = 10.0
"""For so long a round is sent again that the broker does not take."""
_PAUSE: Final = 0.2
_STOP_SECONDS: Final = 15.0
_NOT_TAKEN: Final = (
    "the broker does not take it, and the journal says why; some of it may be counted: come again "
    "with the same Idempotency-Key"
)
_STOPPED: Final = "the cluster stops: come again"
_LOOK: Final = "a look is at all processes of the cluster at one moment"


@dataclass(slots=True)
class _Body:
    """What goes with a round.

    Args:
        parts: of each shard, of each batch.
        name: of the sender.
        sent: is told what became of it.
    """

    parts: list[list[pa.RecordBatch | None]]
    name: bytes | None
    sent: Later = field(default_factory=Future)


class Rounds:
    """Sends what came to all shards of a stream, each tick.

    Args:
        broker: has the queues.
        queues: of the stream, by shard.
    """

    def __init__(self, broker: Broker, queues: Sequence[Queue]) -> None:
        self._broker, self._queues = broker, queues
        self.publics: dict[int, bytes] = {}
        self.sent: dict[int, Position] = {}
        self.troubles = Troubles()
        self._most = broker.most_message
        self._bodies: list[_Body] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        name = f"panprivacy-rounds-{queues[0].stream}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin, once all public keys are known."""
        self._thread.start()

    def stop(self) -> None:
        """Send what is there, and end."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def put(self, body: _Body) -> Later:
        """Have it go with the next round."""
        with self._lock:
            if not self._stopping.is_set():
                self._bodies.append(body)
                return body.sent
        raise StoreError(_STOPPED)

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            stopping = self._stopping.is_set()
            with self._lock:
                bodies, self._bodies = self._bodies, []
            self._send(bodies)
            if stopping and not bodies:
                return
            now = time.monotonic()
            due = max(due + _TICK, now)
            self._stopping.wait(due - now)

    def _send(self, bodies: list[_Body]) -> None:
        """One round, and the word to those whose rows are in it."""
        messages: list[tuple[Queue, bytes]] = []
        failed: Exception | None = None
        try:
            messages = self._packed(bodies)
            self._publish(messages)
        except BrokerError:
            failed = StoreError(_NOT_TAKEN)
        except Exception as error:  # noqa: BLE001 - its frames hold rows
            failed = without_frames(error)
        for body in bodies:
            if body.sent.done():
                continue
            if failed is None:
                body.sent.set_result(True)
            else:
                body.sent.set_exception(failed)
        if bodies:
            wipe_stack()

    def _packed(self, bodies: list[_Body]) -> list[tuple[Queue, bytes]]:
        """The sealed messages of a round."""
        one = Round(len(self._queues), self._most)
        for body in bodies:
            try:
                for number, parts in enumerate(body.parts):
                    one.add(parts, body.name and _numbered(body.name, number))
            except Exception as error:  # noqa: BLE001 - for its sender
                body.sent.set_exception(without_frames(error))
        return [
            (queue, seal(plain, self.publics[queue.shard], queue.subject))
            for message in one.pack()
            for queue, plain in zip(self._queues, message, strict=True)
        ]

    def _publish(self, messages: list[tuple[Queue, bytes]]) -> None:
        """Have the broker take a round; again for a while, as it knows what it has."""
        until = time.monotonic() + _AGAIN_SECONDS
        while True:
            try:
                positions = self._broker.publish(messages)
            except BrokerError as error:
                self.troubles.attempt("broker", _raiser(error))
                if self._stopping.is_set() or time.monotonic() > until:
                    raise
                self._stopping.wait(_PAUSE)
            else:
                break
        self.troubles.attempt("broker", _nothing)
        for (queue, _), position in zip(messages, positions, strict=True):
            self.sent[queue.shard] = position
