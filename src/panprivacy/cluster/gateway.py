"""Takes in what is sent to a cluster: checks it, divides it by shard, and sends it in rounds.

What comes is checked whole before any of it leaves. Each tick, whether or not anything came, every
shard of a stream gets a message, all of one length: which rows go where does not show.
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
from panprivacy.coins import SystemCoins
from panprivacy.errors import without_frames
from panprivacy.guarantee import Guarantee
from panprivacy.programs.counting import Counting
from panprivacy.programs.intake import Columns, Nulls, with_users
from panprivacy.service.batches import ID_BYTES, BusyError, Outcome, Reception, Sent
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Announced, Later, Shown, described

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
    """What is known of what is sent to one stream.

    Args:
        shards: how many there are.
    """

    def __init__(self, shards: int) -> None:
        self.publics: list[bytes] = [b""] * shards
        self.sent: dict[int, Position] = {}
        self.reborn = -math.inf
        self.troubles = Troubles()

    def hear(self, outcome: Sequence[Position] | BrokerError) -> None:
        """Know where a round is, or why the broker does not have it."""
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
        """What does not work at the moment, by what it is."""
        return {
            what: why for one in self._sending.values() for what, why in one.troubles.known.items()
        }

    def know(self, stream: str, shard: int, public: bytes) -> None:
        """Seal what goes to a shard to this key from now on."""
        if stream in self._sending:
            self._sending[stream].publics[shard] = public

    def put_directory_up(self) -> None:
        """Tell other publishers the keys of now.

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

    def sent(self) -> dict[tuple[str, int], Position]:
        """How far each queue is, by what was sent from here."""
        return {
            (stream, shard): position
            for stream, one in self._sending.items()
            for shard, position in list(one.sent.items())
        }

    @property
    def reborn(self) -> float:
        """When a queue was first found to be born anew last, by `time.monotonic`."""
        return max(one.reborn for one in self._sending.values())

    def put(self, stream: str, batches: Sequence[pa.RecordBatch], name: bytes | None) -> Later:
        """Have batches that were checked go with the next round of a stream.

        Returns:
            Is told when the broker has them, or why it has not: a `StoreError`.

        Raises:
            BrokerError: the cluster stops.
        """
        later: Later = Future()

        def tell(sent: Future[None]) -> None:
            error = sent.exception()
            if error is None:
                later.set_result(True)
            elif isinstance(error, BrokerError):  # its words name a host, which is no client's
                later.set_exception(StoreError(_NOT_TAKEN))
            else:
                later.set_exception(error)

        self._rounds[stream].put(batches, name).add_done_callback(tell)
        return later

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

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: something that came in it was not counted."""
        self._releaser.mark_incomplete()

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
        return described(self.name, self.config, self._counting, shown, self.guarantee)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to the users of a window."""
        promise = self._counting.guarantee.on_condition(*self._looks)
        return replace(promise, intrusions=self.config.intrusions)

    @staticmethod
    def new_batch_id() -> bytes:
        """A new one: some shards may have counted what the broker did not take whole."""
        return SystemCoins().key(ID_BYTES)

    def take(self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None) -> bool:
        """Send all rows of one `Sent`, or none; when it returns, the broker has them.

        Raises:
            InputError: a row cannot be counted. Nothing was sent.
            StoreError: the broker does not take it.
        """
        (outcome,) = self.take_together([Sent(batches, batch_id)])
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
        except BrokerError:
            return StoreError(_NOT_TAKEN)
        except Exception as error:  # noqa: BLE001 - for its sender
            return without_frames(error)

    def _without_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that have a user, where others are skipped."""
        users = batch.column(COLUMNS.index(USER))
        skips = self.config.nulls is Nulls.skip and users.null_count
        return with_users(batch) if skips else batch


def _names(columns: Columns) -> tuple[str, ...]:
    """What is read of each row, as the directory says it."""
    each = columns.user, columns.delta, columns.group, columns.side
    return tuple(name for name, one in zip(COLUMNS, each, strict=True) if one is not None)


def _raiser(error: Exception) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


def _nothing() -> None:
    pass
