"""The gateway with a real broker and workers of this process: what senders are told, and when."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count

import pyarrow as pa
import pytest

from panprivacy.cluster import coordinator as coordinators
from panprivacy.cluster import releaser, rounds
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.engine import ClusterEngine
from panprivacy.cluster.gateway import Gateway
from panprivacy.cluster.publisher import Publisher
from panprivacy.cluster.queues import BrokerError
from panprivacy.cluster.record import RecordFile
from panprivacy.cluster.vault import GoneError, Vault
from panprivacy.cluster.worker import Worker, WorkerConfig
from panprivacy.errors import PlanError
from panprivacy.service.config.loading import load
from panprivacy.service.incoming import listening
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from tests.cluster.running import RunningCluster, recorded, stream
from tests.service.asking import Client
from tests.service.running import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")

STREAM = stream("1d", "releases = 4", 'nulls = "skip"')
NAMES = count()
INT64 = "application/octet-stream"
TEXTS = """[streams.visits]
epsilon = 400
window = "1d"
nulls = "skip"
releases = 2
[[streams.visits.stat]]
name = "distinct"
expected = "10:1000"
"""


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

    def report(self):
        return {part.shard: told for part, (_, told) in self.vault.report().items()}

    def stop(self):
        for one in self.all:
            one.stop()
        self.all = []
        self.threads.shutdown()


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """The engine of a cluster of two shards whose window began then, before it begins."""

    @contextmanager
    def made(server, now, streams=STREAM):
        files = RunningCluster(tmp_path, server.url, streams)
        name = f"g-{os.getpid()}-{next(NAMES)}"
        files.config.write_text(files.config.read_text().replace(f"test-{os.getpid()}", name))
        monkeypatch.setenv("PANPRIVACY_IDENTITY", files.identity.read_text())
        config = load(files.config)
        record, vault = recorded(tmp_path, now), Vault(config.checkpoint.path)
        broker = Broker(config.cluster.nats, patience=1.0, most_bytes=config.cluster.queue_bytes)
        workers = Workers(config, record.record.router(numbered=True), {"visits": now}, vault)
        store = ReleaseStore(config.releases.store)
        try:
            yield ClusterEngine(config, None, store, record, broker, workers)
        finally:
            workers.stop()
            store.close()
            broker.close()
            vault.close()
            files.client.close()

    return made


@pytest.fixture
def running(prepared):
    """A client of a cluster of two shards."""

    @contextmanager
    def made(server, streams=STREAM):
        with prepared(server, time.time(), streams) as engine:
            client = Client(engine)
            engine.wait_for_shards()
            engine.begin()
            try:
                yield client
            finally:
                engine.end()
                client.close()

    return made


def counts(client):
    """Released now: how many users came once, and twice."""
    assert client.ask("POST", "/v1/streams/visits/release", "release").status_code == 201
    rows = client.ask("GET", "/v1/releases", "read").json()
    return [round(row["value"]) for row in rows][-2:]


def updates(durable=False):
    return "/v1/streams/visits/updates" + ("?durable=1" if durable else "")


@pytest.mark.long
def test_what_is_sent_is_checked_whole_counted_once_and_told_of_as_by_a_service(
    shared_nats, running
):
    with running(shared_nats) as client:
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


@pytest.mark.long
def test_rows_without_a_user_are_left_out_of_views(shared_nats, running):
    sink, users = pa.BufferOutputStream(), ["ada", None, "ada", None, "alan"]
    batch = pa.record_batch({"user": pa.array(users, pa.string_view())})
    with pa.ipc.new_stream(sink, batch.schema) as written:
        written.write_batch(batch)
    with running(shared_nats, TEXTS) as client:
        arrow = "application/vnd.apache.arrow.stream"
        body = sink.getvalue().to_pybytes()
        assert client.send(body, arrow, updates(durable=True)).status_code == 200
        assert counts(client) == [2]


@pytest.mark.long
def test_lines_that_some_shards_have_already_are_counted_once(nats, monkeypatch, running):
    with running(nats) as client:
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


@pytest.mark.long
def test_a_broker_that_is_away_is_told_of_and_what_waited_is_counted_once(
    nats, monkeypatch, running
):
    monkeypatch.setattr(rounds, "_AGAIN_SECONDS", 0.5)
    monkeypatch.setattr(coordinators, "_DIRECTORY_SECONDS", 0.1)
    with running(nats) as client:
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


@pytest.mark.long
def test_what_is_gone_with_a_broker_before_anybody_waits_for_it_is_not_acknowledged(
    nats, monkeypatch, running
):
    """The event loop may stand still for so long: where queues are by then says nothing of it."""
    with running(nats) as client:
        engine, gateway = client.engine, client.engine.coordinator._gateway
        assert client.send(bytes(8), INT64, updates(durable=True)).status_code == 200
        on_disk, before = engine.on_disk, gateway.last_positions()

        async def late(since):
            nats.kill()
            nats.start()
            wait_until(
                lambda: all(gateway.last_positions()[one].born > before[one].born for one in before)
            )
            return await on_disk(since)

        monkeypatch.setattr(engine, "on_disk", late)
        lost = client.send(bytes(8), INT64, updates(durable=True), Idempotency_Key="a")
        assert lost.status_code == 503
        assert "may have lost it" in lost.json()["detail"]
        monkeypatch.setattr(engine, "on_disk", on_disk)
        again = client.send(bytes(8), INT64, updates(durable=True), Idempotency_Key="a")
        assert again.status_code == 200


@pytest.fixture
def closing(prepared, shared_nats, monkeypatch):
    """The engine of shards whose window has ended, which is to be their last one."""
    with prepared(shared_nats, time.time() - 3_601) as engine:
        engine.wait_for_shards()
        engine.coordinator._gateway.put_directory_up()
        monkeypatch.setattr(engine, "wait_for_shards", lambda: time.sleep(0.1))  # with Ray, seconds
        yield engine, partial(Publisher, shared_nats.url, "visits", name=engine.config.cluster.name)


def released(engine):
    return [round(row.value) for row in engine.store.answers()]


@pytest.mark.long
def test_what_was_sent_before_the_last_shards_close_is_in_their_last_release(closing):
    engine, publisher = closing
    with publisher() as sender:
        sender.send(range(30))
    engine.finish()
    assert released(engine) == [30, 0]
    with pytest.raises(BrokerError, match="no directory of visits"):
        publisher()


@pytest.mark.long
def test_shards_do_not_close_while_somebody_sends(tmp_path, closing):
    engine, publisher = closing
    before = (tmp_path / "panprivacy-coordinator.json").read_text()
    with publisher() as sender:
        sender.send(range(30))
        with pytest.raises(PlanError, match="still sends to the 2 shards of visits: stop that"):
            engine.finish()
    assert (tmp_path / "panprivacy-coordinator.json").read_text() == before
    engine.finish()
    assert released(engine) == [30, 0]


@pytest.mark.long
def test_what_is_sent_after_the_last_cut_keeps_the_shards_from_closing(monkeypatch, closing):
    engine, _ = closing
    settled = releaser.settled

    def late(*given):
        done = settled(*given)
        engine._broker.publish([(engine._queues["visits"][1], b"of a sender that stood still")])
        return done

    monkeypatch.setattr(releaser, "settled", late)
    with pytest.raises(PlanError, match="counts in the next window of these shards"):
        engine.finish()
    assert released(engine) == [0, 0], "the window that ended is published"


@pytest.mark.long
def test_shards_that_cannot_close_are_waited_for_a_while(monkeypatch, closing):
    engine, _ = closing

    def fail(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(releaser, "settled", fail)
    with pytest.raises(PlanError, match=r"2 shards cannot be made now: .*the disk is full"):
        engine.finish(0.5)


@pytest.mark.long
def test_a_shard_that_cannot_begin_says_why(shared_nats, monkeypatch, prepared):
    with prepared(shared_nats, time.time()) as engine:

        def ask(shard, what):
            found = Future()
            found.set_result({"beginning": "no private key"} if shard == 1 else {})
            return found

        monkeypatch.setattr(engine.coordinator, "look", lambda: False)
        monkeypatch.setattr(engine.shards, "ask", ask)
        with pytest.raises(PlanError, match=r"^shard 2 of 2: no private key"):
            engine.wait_for_shards()


def test_names_of_batches_are_forgotten_once_the_new_shards_have_them(
    tmp_path, shared_nats, prepared
):
    with prepared(shared_nats, time.time()) as engine:
        with engine._record.changing() as record:
            record.names = {"visits": b"sealed"}
        engine.wait_for_shards()
        path = tmp_path / "panprivacy-coordinator.json"
        assert RecordFile.load(path).record.names == {}


@pytest.mark.long
def test_a_cluster_whose_ray_has_ended_ends(shared_nats, monkeypatch, prepared):
    """What it would take in then would be counted by nobody."""
    told_to_stop = []
    monkeypatch.setattr(os, "kill", lambda *given: told_to_stop.append(given))
    with prepared(shared_nats, time.time()) as engine:
        engine.wait_for_shards()
        engine.begin()
        monkeypatch.setattr(engine.shards, "report", ray_has_ended)
        wait_until(lambda: told_to_stop)
        engine.end()
        assert told_to_stop == [(os.getpid(), signal.SIGTERM)]
        assert engine.coordinator.gone is not None
        with pytest.raises(GoneError):
            engine.wait_for_shards()


def test_shards_whose_ray_ends_do_not_close(monkeypatch, closing):
    engine, _ = closing
    advance = engine.coordinator.advance

    def without_ray():
        monkeypatch.setattr(engine.shards, "report", ray_has_ended)
        advance()

    monkeypatch.setattr(engine.coordinator, "advance", without_ray)
    with pytest.raises(GoneError):
        engine.finish()


def ray_has_ended():
    message = "Ray has ended"
    raise GoneError(message)
