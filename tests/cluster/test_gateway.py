"""The gateway with a real broker and workers of this process: what senders are told, and when."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pyarrow as pa
import pytest

from panprivacy.cluster import coordinator as coordinators
from panprivacy.cluster import rounds
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.engine import ClusterEngine
from panprivacy.cluster.gateway import Gateway
from panprivacy.cluster.publisher import Publisher
from panprivacy.cluster.vault import Vault
from panprivacy.cluster.worker import Worker, WorkerConfig
from panprivacy.service.config.loading import load
from panprivacy.service.incoming import listening
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from tests.cluster.running import RunningCluster, recorded, stream
from tests.service.running import wait_until
from tests.service.test_http import Client

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")

STREAM = stream("1d", "releases = 4", 'nulls = "skip"')
NAMES = count()
INT64 = "application/octet-stream"


class Workers:
    """The shards of a cluster, in threads of this process."""

    def __init__(self, config, router, begins, vault):
        self.vault = vault
        self.all = [
            Worker(
                WorkerConfig(
                    part=router.slice(shard),
                    streams=config.streams,
                    begins=begins,
                    cluster=config.cluster,
                    recipient=config.checkpoint.recipient,
                    every=0.05,
                ),
                vault,
            )
            for shard in range(router.shards)
        ]
        self.threads = ThreadPoolExecutor(8)

    def ask(self, shard, what, *arguments):
        return self.threads.submit(getattr(self.all[shard], what), *arguments)

    def told(self):
        return {part.shard: told for part, (_, told) in self.vault.told().items()}

    def stop(self):
        for one in self.all:
            one.stop()
        self.threads.shutdown()


@contextmanager
def running(folder, server, monkeypatch):
    """A client of a cluster of two shards."""
    files = RunningCluster(folder, server.url, STREAM)
    text = files.config.read_text().replace(f"test-{os.getpid()}", f"g-{os.getpid()}-{next(NAMES)}")
    files.config.write_text(text)
    monkeypatch.setenv("PANPRIVACY_IDENTITY", files.identity.read_text())
    config, now = load(files.config), time.time()
    record = recorded(folder, now)
    vault, broker = Vault(config.checkpoint.path), Broker(config.cluster.nats, patience=1.0)
    workers = Workers(config, record.record.router(numbered=True), {"visits": now}, vault)
    store = ReleaseStore(config.releases.store)
    client = Client(ClusterEngine(config, None, store, record, broker, workers))
    client.engine.wait_for_shards()
    client.engine.begin()
    try:
        yield client
    finally:
        client.engine.end()
        client.close()
        broker.close()
        vault.close()
        files.client.close()


def counts(client):
    """Released now: how many users came once, and twice."""
    assert client.ask("POST", "/v1/streams/visits/release", "release").status_code == 201
    rows = client.ask("GET", "/v1/releases", "read").json()
    return [round(row["value"]) for row in rows][-2:]


def updates(durable=False):
    return "/v1/streams/visits/updates" + ("?durable=1" if durable else "")


def test_what_is_sent_is_checked_whole_counted_once_and_told_of_as_by_a_service(
    tmp_path, shared_nats, monkeypatch
):
    with running(tmp_path, shared_nats, monkeypatch) as client:
        body = b"".join(f'{{"user": {one}}}\n'.encode() for one in range(50))
        ndjson = "application/x-ndjson"
        assert client.send(body, ndjson).status_code == 202
        assert client.send(b'{"user": 1}\n{"user": null}\n', ndjson).status_code == 202
        refused = client.send(body + b'{"user": 2000}\n', ndjson)
        assert refused.status_code == 400
        assert "row 51" in refused.json()["detail"]
        for _ in range(2):
            sent = client.send(body[:120], ndjson, updates(durable=True), Idempotency_Key="a")
            assert sent.status_code == 200
        first = body[:120].count(b"\n")
        assert counts(client) == [50 - first, first - 1]  # user 1 came three times
        name = client.engine.config.cluster.name
        with Publisher(shared_nats.url, "visits", name=name) as publisher:
            publisher.send(list(range(100, 130)), batch_id="b")
            publisher.send(list(range(100, 130)), batch_id="b")
        wait_until(lambda: client.send(b"", INT64, updates(durable=True)).status_code == 200)
        assert counts(client)[0] == 50 - first + 30
        (told,) = client.ask("GET", "/v1/streams", "read").json()
        assert told["releases_made"] == 2
        assert "a look is at all processes of the cluster at one moment" in told["guarantee"]
        assert told["guarantee"].endswith("identity_command keeps it out")


def test_lines_that_some_shards_have_already_are_counted_once(tmp_path, nats, monkeypatch):
    with running(tmp_path, nats, monkeypatch) as client:
        stream, put = client.engine.streams["visits"], Gateway.put

        def taken_in_part(self, *arguments):
            put(self, *arguments).result()
            monkeypatch.setattr(Gateway, "put", put)
            later = Future()
            later.set_exception(StoreError("one queue is full"))
            return later

        monkeypatch.setattr(Gateway, "put", taken_in_part)
        monkeypatch.setattr(listening, "_PAUSE", 0.0)
        lines = pa.record_batch({"user": pa.array(range(20))})
        listening._take([lines], stream, threading.Event())
        assert client.send(b"", INT64, updates(durable=True)).status_code == 200
        assert counts(client) == [20, 0]


def test_a_broker_that_is_away_is_told_of_and_what_waited_is_counted_once(
    tmp_path, nats, monkeypatch
):
    monkeypatch.setattr(rounds, "_AGAIN_SECONDS", 0.5)
    monkeypatch.setattr(coordinators, "_DIRECTORY_SECONDS", 0.1)
    with running(tmp_path, nats, monkeypatch) as client:
        assert client.send(bytes(8), INT64, updates(durable=True)).status_code == 200
        nats.pause()
        away = client.send((7).to_bytes(8, "little"), INT64, Idempotency_Key="a")
        assert away.status_code == 503
        assert away.headers["Retry-After"]
        assert "the broker does not take it" in away.json()["detail"]
        assert any("broker" in what for what in client.engine.keeper.troubles)
        nats.resume()
        seven = (7).to_bytes(8, "little")
        wait_until(lambda: client.send(seven, INT64, Idempotency_Key="a").status_code == 202)
        assert client.send(b"", INT64, updates(durable=True)).status_code == 200
        assert counts(client) == [2, 0]
