"""Takes in what is sent to a cluster: checks it, divides it by shard, and sends it in rounds.

What comes is checked whole before any of it leaves. Each tick, whether or not anything came, every
shard of a stream gets a message, all of one length: which rows go where does not show.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
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
from panprivacy.programs.counting import Counting
from panprivacy.programs.intake import Columns, Nulls
from panprivacy.service.batches import BusyError, Outcome, Reception, Sent
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
        batches: its rows, checked.
        name: what its sender calls it.
        sent: is told what became of it.
    """

    batches: Sequence[pa.RecordBatch]
    name: bytes | None
    sent: Later = field(default_factory=Future)


class Rounds:
    """Sends what came to all shards of a stream, each tick.

    Args:
        broker: has the queues.
        queues: of the stream, by shard.
        router: says which shard counts a row.
        column: place of the ids; None if rows have none.
    """

    def __init__(
        self, broker: Broker, queues: Sequence[Queue], router: Router, column: int | None
    ) -> None:
        self._broker, self._queues, self._router = broker, queues, router
        self._column = column
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
        one = Round(self._router, self._column, self._most)
        for body in bodies:
            try:
                one.add(body.batches, body.name)
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


class Gateway:
    """Sends what comes to all streams of a cluster, in rounds.

    Args:
        broker: has the queues.
        name: of the cluster.
        streams: what checks the rows of each, by name.
        routers: of each.
    """

    def __init__(
        self,
        broker: Broker,
        name: str,
        streams: Mapping[str, Reception],
        routers: Mapping[str, Router],
    ) -> None:
        self.shards = next(iter(routers.values())).shards
        self._rounds = {
            stream: Rounds(
                broker,
                [Queue(name, stream, self.shards, shard) for shard in range(self.shards)],
                routers[stream],
                None if one.columns.user is None else 0,
            )
            for stream, one in streams.items()
        }

    @property
    def troubles(self) -> dict[str, str]:
        """What does not work at the moment, by what it is."""
        return {
            what: why for one in self._rounds.values() for what, why in one.troubles.known.items()
        }

    def know(self, stream: str, shard: int, public: bytes) -> None:
        """Seal what goes to a shard to this key from now on."""
        if stream in self._rounds:
            self._rounds[stream].publics[shard] = public

    def sent(self) -> dict[tuple[str, int], Position]:
        """How far each queue is, by what was sent from here."""
        return {
            (stream, shard): position
            for stream, one in self._rounds.items()
            for shard, position in list(one.sent.items())
        }

    def put(self, stream: str, batches: Sequence[pa.RecordBatch], name: bytes | None) -> Later:
        """Have batches that were checked go with the next round of a stream.

        Returns:
            Is told when the broker has them, or why it has not.

        Raises:
            StoreError: the cluster stops.
        """
        return self._rounds[stream].put(_Body(batches, name))

    def start(self) -> None:
        """Begin to send."""
        for one in self._rounds.values():
            one.start()

    def stop(self) -> None:
        """Send what is there, and end."""
        for one in self._rounds.values():
            one.stop()


class ClusterStream:
    """A stream of a cluster, as `Stream` is one of a process: for those who send to it and ask it.

    Args:
        reception: checks what comes, as the shards do.
        counting: statistics like those of the shards, with which nothing is counted.
        gateway: sends it.
        releaser: makes releases.
        store: where releases are.
    """

    def __init__(
        self,
        reception: Reception,
        counting: Counting,
        gateway: Gateway,
        releaser: Releaser,
        store: ReleaseStore,
    ) -> None:
        self.name, self.config = releaser.name, releaser.config
        self._reception, self._counting = reception, counting
        self._gateway, self._releaser, self._store = gateway, releaser, store
        self._announced = 0
        self._lock = threading.Lock()

    @property
    def columns(self) -> Columns:
        """What is read of each row."""
        return self._reception.columns

    @property
    def ends(self) -> datetime:
        """When the current window ends."""
        return self._releaser.ends

    @property
    def looks_left(self) -> int:
        """How many intrusions may still be announced to the current window."""
        if not self.config.intrusions:
            return 0
        with suppress(StoreError):  # what was known last holds till then
            self._announced = self._releaser.announced()
        return self.config.intrusions - self._announced

    def begin(self) -> None:
        """Nothing to do: the coordinator begins."""

    def begun(self) -> int:
        """How many windows that end with the current one the ledger has, without it."""
        return len(self._store.starts(self.name, self.ends) - {self._releaser.began})

    def described(self) -> dict[str, object]:
        """What is counted and promised, for people and programs."""
        shown = Shown(
            began=self._releaser.began,
            ends=self.ends,
            releases=self._releaser.made,
            announced=self.config.intrusions - self.looks_left,
            state_bytes=self._gateway.shards * self._counting.state_bytes,
        )
        promise = self._counting.guarantee
        promise = replace(
            promise,
            intrusions=self.config.intrusions,
            conditions=(*promise.conditions, _LOOK),
        )
        return described(self.name, self.config, self._counting, shown, promise)

    def take(
        self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None, *, wait: bool = True
    ) -> bool:
        """Send all rows of one `Sent`, or none; when it returns, the broker has them.

        Raises:
            InputError: a row cannot be counted. Nothing was sent.
            StoreError: the broker does not take it.
        """
        (outcome,) = self.take_together([Sent(batches, batch_id)], wait=wait)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, bool) else outcome.result()

    def take_together(
        self, several: Sequence[Sent], *, wait: bool = True
    ) -> Sequence[Outcome | Later]:
        """Check what came at the same time, and have it go with the next round.

        Args:
            several: in any order; they must stay as they are until it is told what became of them.
            wait: for another thread.

        Returns:
            For each, what tells when the broker has it; or why it cannot be counted.

        Raises:
            BusyError: the caller does not wait, and would have to. Nothing was sent.
        """
        if not self._lock.acquire(blocking=wait):
            raise BusyError
        try:
            return [self._sent(one) for one in several]
        finally:
            self._lock.release()

    def release(self) -> None:
        """Make one release now; see `Releaser.release`."""
        self._releaser.release()

    def announce(self, key: bytes) -> Announced:
        """Announce an intrusion; see `Releaser.announce`."""
        return self._releaser.announce(key)

    def _sent(self, sent: Sent) -> Outcome | Later:
        try:
            self._reception.check(self._counting, sent.batches)
            batches = [self._without_nulls(batch) for batch in sent.batches]
            return self._gateway.put(self.name, batches, sent.batch_id)
        except Exception as error:  # noqa: BLE001 - for its sender
            return without_frames(error)

    def _without_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that have a user, where others are skipped."""
        skips = self.columns.user is not None and self.config.nulls is Nulls.skip
        if not skips or not batch.column(0).null_count:
            return batch
        return batch.filter(batch.column(0).is_valid())


def _raiser(error: Exception) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


def _nothing() -> None:
    pass
