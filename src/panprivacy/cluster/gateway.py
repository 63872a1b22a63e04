"""Gateway of a cluster: checks incoming rows, divides them by shard, and sends them in rounds.

A request is checked completely before any part of it is sent. At each tick, even if nothing came,
every shard of a stream gets a message, all of one length: the traffic does not show which rows go
where.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

import pyarrow as pa

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.directory import COLUMNS, USER, Directory
from panprivacy.cluster.queues import BrokerError, Position, Queue
from panprivacy.cluster.releaser import Releaser
from panprivacy.cluster.rounds import Rounds
from panprivacy.cluster.routing import Router
from panprivacy.errors import without_frames
from panprivacy.intake.programs.counting import Counting
from panprivacy.intake.programs.intake import Columns, Nulls, with_users
from panprivacy.privacy.coins import SystemCoins
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.batches import ID_BYTES, BusyError, Outcome, Reception, Submission
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Announced, Later, WindowFacts, described

_NOT_TAKEN: Final = (
    "the broker does not take it, and the journal says why; some of it may be counted: come again "
    "with the same Idempotency-Key"
)
_LOOK: Final = "a look is at all processes of the cluster at one moment"
_EXPOSED: Final = (
    "who reads the private key in their environment and a sealed state has looked once more: "
    "identity_command keeps it out"
)


class _Sending:
    """State of the sending to one stream.

    Args:
        shards: number of shards.
    """

    def __init__(self, shards: int) -> None:
        self.publics: list[bytes] = [b""] * shards
        self.sent: dict[int, Position] = {}
        self.reborn = -math.inf
        self.troubles = Troubles()

    def hear(self, outcome: Sequence[Position] | BrokerError) -> None:
        """Record the positions of a round, or why the broker does not have it."""
        if isinstance(outcome, BrokerError):
            self.troubles.attempt("broker", _raiser(outcome))
            return
        self.troubles.attempt("broker", _nothing)
        shards = len(self.publics)
        for shard, position in enumerate(outcome[-shards:]):
            before = self.sent.get(shard, position)
            if position.born > before.born:
                self.reborn = time.monotonic()
            self.sent[shard] = max(position, before)


class Gateway:
    """Gateway that sends incoming rows to all streams of a cluster, in rounds.

    Args:
        broker: has the queues.
        name: the name of the cluster.
        streams: the receptions that check the rows of each stream, by name.
        routers: the router of each stream.
    """

    def __init__(
        self,
        broker: Broker,
        name: str,
        streams: Mapping[str, Reception],
        routers: Mapping[str, Router],
    ) -> None:
        self._broker, self._name, self._routers = broker, name, routers
        self._columns = {stream: one.columns for stream, one in streams.items()}
        self.shards = next(iter(routers.values())).shards
        self._sending = {stream: _Sending(self.shards) for stream in streams}
        self._rounds = {
            stream: Rounds(
                broker,
                [Queue(name, stream, self.shards, shard) for shard in range(self.shards)],
                routers[stream],
                COLUMNS.index(USER),
                lambda known=self._sending[stream]: known.publics,  # type: ignore[misc]
                self._sending[stream].hear,
            )
            for stream in streams
        }

    @property
    def troubles(self) -> dict[str, str]:
        """The current troubles, by name."""
        return {
            what: why for one in self._sending.values() for what, why in one.troubles.known.items()
        }

    def know(self, stream: str, shard: int, public: bytes) -> None:
        """Set the key to which messages to a shard are sealed from now on."""
        if stream in self._sending:
            self._sending[stream].publics[shard] = public

    def put_directory_up(self) -> None:
        """Publish the current keys to other publishers.

        Raises:
            BrokerError: the broker does not take it.
        """
        for stream, router in self._routers.items():
            columns = self._columns[stream]
            Directory(
                key=router.key,
                numbered=router.numbered,
                columns=_names(columns),
                publics=tuple(self._sending[stream].publics),
                addresses=columns.wanted()[COLUMNS.index(USER)].address,
            ).put_up(self._broker, self._name, stream)

    def last_positions(self) -> dict[tuple[str, int], Position]:
        """Return the latest position in each queue of the rounds sent from here."""
        return {
            (stream, shard): position
            for stream, one in self._sending.items()
            for shard, position in list(one.sent.items())
        }

    @property
    def reborn(self) -> float:
        """Time, by `time.monotonic`, at which a new creation of a queue was last detected."""
        return max(one.reborn for one in self._sending.values())

    def put(self, stream: str, batches: Sequence[pa.RecordBatch], name: bytes | None) -> Later:
        """Put batches that were checked into the next round of a stream.

        Returns:
            A future that completes when the broker has them, or fails with a `StoreError`.

        Raises:
            BrokerError: the cluster is stopping.
        """
        later: Later = Future()

        def tell(sent: Future[None]) -> None:
            error = sent.exception()
            if error is None:
                later.set_result(True)
            # its message names a host, which clients must not see
            elif isinstance(error, BrokerError):
                later.set_exception(StoreError(_NOT_TAKEN))
            else:
                later.set_exception(error)

        self._rounds[stream].put(batches, name).add_done_callback(tell)
        return later

    def start(self) -> None:
        """Start all rounds."""
        for one in self._rounds.values():
            one.start()

    def stop(self) -> None:
        """Send what is pending, and end."""
        for one in self._rounds.values():
            one.stop()


class ClusterStream:
    """Stream of a cluster, for senders and readers, as `Stream` is of a single process.

    Args:
        reception: checks incoming rows, as the shards do.
        counting: statistics like those of the shards, which count nothing.
        gateway: sends the rows.
        releaser: makes the releases.
        store: the store of the releases.
        exposed: whether the private key stays in the environment of the shards.
    """

    def __init__(
        self,
        reception: Reception,
        counting: Counting,
        gateway: Gateway,
        releaser: Releaser,
        store: ReleaseStore,
        *,
        exposed: bool,
    ) -> None:
        self.name, self.config = releaser.name, releaser.config
        self._reception, self._counting = reception, counting
        self._gateway, self._releaser, self._store = gateway, releaser, store
        self._looks = (_LOOK, _EXPOSED) if exposed else (_LOOK,)
        self._announced = 0
        self._lock = threading.Lock()

    @property
    def columns(self) -> Columns:
        """The columns that are read of each row."""
        return self._reception.columns

    @property
    def ends(self) -> datetime:
        """End of the current window."""
        return self._releaser.ends

    @property
    def looks_left(self) -> int:
        """Number of intrusions that may still be announced to the current window."""
        if not self.config.intrusions:
            return 0
        with suppress(StoreError):  # the last known number holds until then
            self._announced = self._releaser.announced()
        return self.config.intrusions - self._announced

    def begin(self) -> None:
        """Do nothing: the coordinator starts the stream."""

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: some of its events were not counted."""
        self._releaser.mark_incomplete()

    def begun(self) -> int:
        """Return how many other windows in the ledger end when the current one does."""
        return len(self._store.starts(self.name, self.ends) - {self._releaser.began})

    def described(self) -> dict[str, object]:
        """Return the description of the statistics and their guarantee, for people and programs."""
        shown = WindowFacts(
            began=self._releaser.began,
            ends=self.ends,
            releases=self._releaser.made,
            announced=self.config.intrusions - self.looks_left,
            state_bytes=self._gateway.shards * self._counting.internals.memory.state_bytes,
        )
        return described(self.name, self.config, self._counting, shown, self.guarantee)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee for the users of a window."""
        promise = self._counting.guarantee.on_condition(*self._looks)
        return replace(promise, intrusions=self.config.intrusions)

    @staticmethod
    def new_batch_id() -> bytes:
        """Return a new batch id: shards may have counted parts of what the broker refused."""
        return SystemCoins().key(ID_BYTES)

    def take(self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None) -> bool:
        """Send all rows of one `Submission`, or none; when it returns, the broker has them.

        Raises:
            InputError: a row cannot be counted. Nothing was sent.
            StoreError: the broker does not take it.
        """
        (outcome,) = self.take_together([Submission(batches, batch_id)])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, bool) else outcome.result()

    def take_together(
        self, several: Sequence[Submission], *, wait: bool = True
    ) -> Sequence[Outcome | Later]:
        """Check concurrent requests, and put them into the next round.

        Args:
            several: the requests, in any order; they must not change until their outcomes are
                known.
            wait: whether to wait for another thread.

        Returns:
            For each request, a future that completes when the broker has it, or why it is refused.

        Raises:
            BusyError: `wait` is false, and the call would have to wait. Nothing was sent.
        """
        if not self._lock.acquire(blocking=wait):
            raise BusyError
        try:
            return [self._send(one) for one in several]
        finally:
            self._lock.release()

    def release(self) -> None:
        """Make one release now; see `Releaser.release`."""
        self._releaser.release()

    def announce(self, key: bytes) -> Announced:
        """Announce an intrusion; see `Releaser.announce`."""
        return self._releaser.announce(key)

    def _send(self, sent: Submission) -> Outcome | Later:
        try:
            self._reception.check(self._counting, sent.batches)
            batches = [self._without_nulls(batch) for batch in sent.batches]
            return self._gateway.put(self.name, batches, sent.batch_id)
        except BrokerError:
            return StoreError(_NOT_TAKEN)
        except Exception as error:  # noqa: BLE001 - for its sender
            return without_frames(error)

    def _without_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that have a user, if the stream skips the others."""
        users = batch.column(COLUMNS.index(USER))
        skips = self.config.nulls is Nulls.skip and users.null_count
        return with_users(batch) if skips else batch


def _names(columns: Columns) -> tuple[str, ...]:
    """Return the names of the columns read, as in the directory."""
    each = columns.user, columns.delta, columns.group, columns.side
    return tuple(name for name, one in zip(COLUMNS, each, strict=True) if one is not None)


def _raiser(error: Exception) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


def _nothing() -> None:
    pass
