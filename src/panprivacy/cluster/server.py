"""Runs a cluster until it is told to stop: its coordinator and gateway, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import ray

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.engine import ClusterEngine, check, queues_of
from panprivacy.cluster.record import Record, RecordFile, StreamRecord
from panprivacy.cluster.shards import RayShards, asked
from panprivacy.cluster.worker import init as start_ray
from panprivacy.cluster.worker import start_vault
from panprivacy.coins import SystemCoins
from panprivacy.errors import PlanError
from panprivacy.service.config.config import CheckpointConfig, Config
from panprivacy.service.journal import write_to_stderr
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.server import alone, run, uncounted
from panprivacy.service.sockets import http_socket
from panprivacy.statistics.grid import Grid

_KEY_BYTES: Final = 16
_LOCAL: Final = {"num_cpus": 1, "object_store_memory": 80 << 20}
"""Of Ray on this machine, whose objects are small here."""
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
        shards: how many there are.
        file: where the configuration is; its tokens are followed.
        address: of a cluster of Ray; None to start one on this machine.
        fresh: give up the states that are there, and begin anew.

    Raises:
        PlanError: it cannot be run like this.
        BrokerError: the broker does not answer.
    """
    write_to_stderr()
    check(config, shards)
    assert config.checkpoint is not None  # noqa: S101 - it was checked
    directory = Path(config.server.directory)
    with (
        alone(directory / "lock"),
        http_socket(config.server.address) as sock,
        _connected(config) as broker,
        _vault(config.checkpoint, address) as vault,
    ):
        keeper = _Keeper(config, config.checkpoint, file, broker, vault)
        engine = keeper.engine(shards, fresh=fresh)
        engine.warm_up()
        engine.wait_for_shards()
        run(engine, sock, uncounted)


class _Keeper:
    """Begins with what is there: a record, sealed states, queues."""

    def __init__(
        self,
        config: Config,
        checkpoint: CheckpointConfig,
        file: Path | None,
        broker: Broker,
        vault: Any,
    ) -> None:
        self._config, self._config_file, self._broker, self._vault = config, file, broker, vault
        sealed = Path(checkpoint.path)
        self._path = sealed.with_name(f"{sealed.stem}-coordinator.json")

    def engine(self, shards: int, *, fresh: bool) -> ClusterEngine:
        """What goes on from what is there, or begins anew; its shards have been started.

        Raises:
            PlanError: it cannot go on.
        """
        store = ReleaseStore(self._config.releases.store)
        record = None if fresh else self._found(store)
        if record is not None and record.record.shards != shards:
            self._close(record, store)
            store = ReleaseStore(self._config.releases.store)
            record = None
        if record is None:
            record = self._begun(shards)
        return self._started(record, store)

    def _found(self, store: ReleaseStore) -> RecordFile | None:
        """What the coordinator knew, if it was there before."""
        record, sealed = RecordFile.load(self._path), asked(self._vault.found)
        if record is None:
            if sealed:
                message = "there are sealed states, but not what the coordinator knew of them: put "
                message += f"{self._path.name} back, or {_FRESH}"
                raise PlanError(message)
            return None
        if store.is_new:
            message = "there are sealed states, but their release store is not there any more: put "
            message += f"it back, or mend its URL; without it, {_FRESH}"
            raise PlanError(message)
        if record.record.streams.keys() != self._config.streams.keys():
            message = "the streams are others than those that are counted: start with the "
            message += f"configuration of before, or {_FRESH}"
            raise PlanError(message)
        return record

    def _begun(self, shards: int) -> RecordFile:
        """A new record; what is there of before is given up."""
        now = time.time()
        streams = {
            name: StreamRecord(
                window=now,
                ends=Grid(stream.window_seconds, stream.zone).around(now)[1],
                last_release=now,
            )
            for name, stream in self._config.streams.items()
        }
        key = SystemCoins().key(_KEY_BYTES).hex()
        before = RecordFile.load(self._path) if self._path.exists() else None
        record = RecordFile(self._path, Record(shards=shards, key=key, streams=streams))
        given_up = {shards} if before is None else {shards, before.record.shards}
        for count in given_up:  # what is in them is sealed to keys that are gone
            for queues in queues_of(self._config, count).values():
                for queue in queues:
                    self._broker.delete(queue)
        for shard, count in asked(self._vault.found):
            asked(self._vault.remove, shard, count)
        record.write()
        return record

    def _close(self, record: RecordFile, store: ReleaseStore) -> None:
        """Have as many shards as there were release what they counted.

        Raises:
            PlanError: a window has not ended.
        """
        shards = record.record.shards
        for name, stream in record.record.streams.items():
            if time.time() < stream.ends:
                ends = datetime.fromtimestamp(stream.ends, UTC)
                message = f"the window of {name} ends at {ends:%Y-%m-%d %H:%M:%S} UTC: until then "
                message += f"its users belong to one of {shards} shards; start with --shards "
                message += f"{shards}, or come again after that"
                raise PlanError(message)
        engine = self._started(record, store)
        try:
            engine.wait_for_shards()
            engine.finish()
        finally:
            engine.shards.stop()
            store.close()

    def _started(self, record: RecordFile, store: ReleaseStore) -> ClusterEngine:
        found = record.record
        begins = {name: stream.window for name, stream in found.streams.items()}
        shards = RayShards(self._config, found.router(numbered=False), begins, self._vault)
        return ClusterEngine(self._config, self._config_file, store, record, self._broker, shards)


@contextmanager
def _connected(config: Config) -> Iterator[Broker]:
    """The broker."""
    told = config.cluster
    broker = Broker(told.nats, credentials=told.credentials, most_bytes=told.queue_bytes)
    with closing(broker):
        _ = broker.most_message  # it answers, before anything is begun
        yield broker


@contextmanager
def _vault(checkpoint: CheckpointConfig, address: str | None) -> Iterator[Any]:
    """Ray, with the vault on this node."""
    try:
        start_ray(address, **({} if address else _LOCAL))
    except (ConnectionError, RuntimeError) as error:
        message = f"Ray cannot be reached: {str(error).splitlines()[0]}"
        raise PlanError(message) from None
    try:
        yield start_vault(checkpoint.path)
    finally:
        ray.shutdown()
