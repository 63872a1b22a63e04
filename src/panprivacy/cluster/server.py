"""Server of a cluster: its coordinator and gateway in this process, until it is stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from panprivacy.cluster.actors import RayShards, call_actor, check_address, connected, start_vault
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.engine import ClusterEngine, check, queues_of
from panprivacy.cluster.record import ClusterRecord, RecordFile, StreamRecord, utc
from panprivacy.cluster.vault import SilentError
from panprivacy.cluster.waiting import Patience
from panprivacy.errors import PlanError
from panprivacy.ground.kernels import compile_kernels
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.config.config import Config
from panprivacy.service.journal import JOURNAL, Event, write_to_stderr
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.server import alone, run, uncounted
from panprivacy.service.sockets import http_socket
from panprivacy.statistics.grid import Grid

_KEY_BYTES: Final = 16
_FRESH: Final = "begin anew with panprivacy cluster --fresh"


def serve_cluster(
    config: Config,
    shards: int,
    file: Path | None = None,
    *,
    address: str | None = None,
    fresh: bool = False,
) -> None:
    """Run the coordinator and the gateway of a cluster in this process until SIGTERM or SIGINT.

    Args:
        config: a configuration that was loaded.
        shards: number of shards.
        file: path of the configuration, whose tokens are followed.
        address: the address of a Ray cluster; None to start one on this machine.
        fresh: discard existing states, and start anew.

    Raises:
        PlanError: the cluster cannot be run with these arguments.
        BrokerError: the broker does not answer.
        GoneError: Ray has ended on this machine.
    """
    write_to_stderr()
    checkpoint = check(config, shards)
    check_address(address)
    sealed = Path(checkpoint.path)
    path = sealed.with_name(f"{sealed.stem}-coordinator.json")
    known = None if fresh else RecordFile.load(path)
    if known is not None and known.record.shards != shards:
        _check_ended(known.record, shards)
    directory = Path(config.server.directory)
    with (
        alone(directory / "lock"),
        # for the vault's lock, Ray would only report that the actor has ended
        alone(path.with_suffix(".lock")),
        http_socket(config.server.address) as sock,
        _broker(config, shards) as broker,
        connected(address, patience := Patience(config.cluster.start_seconds)),
    ):
        compile_kernels()  # once: the shards of this machine load the compiled kernels
        beginning = _Beginning(config, file, path, broker, start_vault(checkpoint.path), patience)
        engine = beginning.engine(known, shards, fresh=fresh)
        with closing(engine.shards):
            engine.warm_up()
            engine.wait_for_shards()
            run(engine, sock, uncounted)
        if engine.coordinator.gone is not None:
            raise engine.coordinator.gone


class _Beginning:
    """The start of a cluster from the coordinator's record, sealed states and queues."""

    def __init__(
        self,
        config: Config,
        file: Path | None,
        path: Path,
        broker: Broker,
        vault: Any,
        patience: Patience,
    ) -> None:
        self._config, self._config_file, self._path = config, file, path
        self._broker, self._vault, self._patience = broker, vault, patience

    def engine(self, known: RecordFile | None, shards: int, *, fresh: bool) -> ClusterEngine:
        """Return an engine with started shards that continues from stored state or starts anew.

        Args:
            known: the record of the coordinator; None to start anew.
            shards: number of shards from now on.
            fresh: discard the stored state.

        Raises:
            PlanError: it cannot continue.
        """
        store = ReleaseStore(self._config.releases.store)
        if known is not None:
            self._check_known(known, store)
        elif not fresh and self._call(self._vault.found):
            message = "there are sealed states, but not what the coordinator knew of them: put "
            message += f"{self._path.name} back, or {_FRESH}"
            raise PlanError(message)
        elif not fresh:
            self._check_name()
        if known is not None and known.record.shards != shards:
            names = self._close(known, store)
            store = ReleaseStore(self._config.releases.store)
            known = self._begun(shards, names, store)
        elif known is None:
            self._give_up(self._counts())
            known = self._begun(shards, {}, store)
        self._give_up(self._counts() - {shards})  # also the remains of a crash
        return self._started(known, store)

    def _call(self, method: Any, *arguments: Any) -> Any:
        """Return the answer of the vault, waiting while Ray still starts it."""
        return self._patience.wait_for(partial(call_actor, method, *arguments), SilentError)

    def _check_name(self) -> None:
        """Check that the queues are not those of another cluster of the same name."""
        name = self._config.cluster.name
        if any(self._broker.directory_entry(name, stream) for stream in self._config.streams):
            message = f"the broker knows a cluster {name} that keeps its states elsewhere: give "
            message += f"this one another name in [cluster]; if that one is gone, {_FRESH}"
            raise PlanError(message)

    def _check_known(self, known: RecordFile, store: ReleaseStore) -> None:
        if store.is_new:
            message = "there are sealed states, but their release store is not there any more: put "
            message += f"it back, or mend its URL; without it, {_FRESH}"
            raise PlanError(message)
        if known.record.streams.keys() != self._config.streams.keys():
            message = "the streams are others than those that are counted: start with the "
            message += f"configuration of before, or {_FRESH}"
            raise PlanError(message)

    def _begun(self, shards: int, names: dict[str, bytes], store: ReleaseStore) -> RecordFile:
        """Write a new record to disk, after discarding the states of the same number of shards."""
        now = time.time()
        streams = {}
        for name, stream in self._config.streams.items():
            unused_from = store.unused_from(name)
            begins = now if unused_from is None else max(now, unused_from.timestamp())
            ends = Grid(stream.window_seconds, stream.zone).around(begins)[1]
            streams[name] = StreamRecord(window=begins, ends=ends, last_release=begins)
        key = SystemCoins().key(_KEY_BYTES).hex()
        self._give_up({shards})
        found = ClusterRecord(shards=shards, key=key, streams=streams, names=names)
        record = RecordFile(self._path, found)
        record.write()
        return record

    def _counts(self) -> set[int]:
        """Return the numbers of shards for which states or a record exist."""
        counts = {count for _, count in self._call(self._vault.found)}
        with suppress(PlanError):
            before = RecordFile.load(self._path)
            counts |= set() if before is None else {before.record.shards}
        return counts

    def _give_up(self, counts: set[int]) -> None:
        """Remove states, and queues whose messages are sealed to keys that are lost."""
        for count in counts:
            for queues in queues_of(self._config, count).values():
                for queue in queues:
                    self._broker.delete(queue)
        for shard, count in self._call(self._vault.found):
            if count in counts:
                self._call(self._vault.remove, shard, count)

    def _close(self, record: RecordFile, store: ReleaseStore) -> dict[str, bytes]:
        """Make the earlier shards release what they counted in windows that ended.

        Returns:
            The names of batches that they know, sealed, by stream: a sender may still repeat one.
        """
        engine = self._started(record, store)
        try:
            engine.finish()
            return {
                name: engine.shards.ask(0, "names", name).result() for name in self._config.streams
            }
        finally:
            engine.shards.stop()
            store.close()

    def _started(self, record: RecordFile, store: ReleaseStore) -> ClusterEngine:
        found = record.record
        begins = {name: stream.window for name, stream in found.streams.items()}
        shards = RayShards(
            self._config, found.router(numbered=False), begins, self._vault, found.names
        )
        return ClusterEngine(self._config, self._config_file, store, record, self._broker, shards)


def _check_ended(record: ClusterRecord, shards: int) -> None:
    """Check that no window is in progress if the number of shards changes: users would be in two.

    Raises:
        PlanError: a window has not ended.
    """
    for name, stream in record.streams.items():
        if time.time() < stream.ends:
            ends = utc(stream.ends)
            message = f"the window of {name} ends at {ends:%Y-%m-%d %H:%M:%S} UTC, and until then "
            message += f"each of its users belongs to one of {record.shards} shards: start with "
            message += f"--shards {record.shards}, or with {shards} after that"
            raise PlanError(message)


@contextmanager
def _broker(config: Config, shards: int) -> Iterator[Broker]:
    """Connect to the broker, and close it at the end."""
    given = config.cluster
    broker = Broker(given.nats, credentials=given.credentials, most_bytes=given.queue_bytes)
    with closing(broker):
        JOURNAL.warning(Event.waiting_for_broker)
        broker.wait()  # before anything is started
        JOURNAL.warning(Event.starting, shards=shards)
        yield broker
