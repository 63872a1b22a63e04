"""A Python program sends to the shards of a cluster by itself."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from panprivacy.cluster import Publisher
from panprivacy.cluster import publisher as publisher_module
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.connection import BrokerConnection
from panprivacy.cluster.directory import Directory
from panprivacy.cluster.envelopes import Opener
from panprivacy.cluster.messages import read_message
from panprivacy.cluster.queues import START, BrokerError
from panprivacy.errors import InputError
from panprivacy.intake.sources.columns import Prefixes
from tests.cluster.conftest import QUEUE_BYTES
from tests.cluster.nats import NatsServer, found_nats

numbers = itertools.count()
DOCS = Path(__file__).parents[2] / "docs"
PAGE, EXAMPLE = DOCS / "guarantees/envelopes.md", DOCS / "reference/cluster.md"


class Shards:
    """What shards and their coordinator do for a publisher: open queues, and tell their keys."""

    def __init__(self, broker, shards=2, columns=("user",), addresses=None):
        self.stream, self._broker = f"sent{next(numbers)}", broker
        self.openers = [Opener() for _ in range(shards)]
        self.columns, self.addresses = columns, addresses
        self.tell()
        self.queues = self.directory.queues("panprivacy", self.stream)
        self.after = dict.fromkeys(self.queues, START)
        for queue in self.queues:
            broker.open(queue)

    @property
    def directory(self):
        publics = tuple(one.public for one in self.openers)
        return Directory(
            key=b"sixteen letters!",
            numbered=False,
            columns=self.columns,
            publics=publics,
            addresses=self.addresses,
        )

    def tell(self):
        self.directory.put_up(self._broker, "panprivacy", self.stream)

    def sent(self, *users):
        """What stands for them."""
        batch = pa.record_batch({"user": list(users)})
        return self.directory.router().hashed(batch, 0).column(0).to_pylist()

    def parts(self, shard):
        """All parts that are there for a shard, and the lengths of the messages."""
        queue, found, lengths = self.queues[shard], [], []
        while pulled := self._broker.pull(queue, self.after[queue], 100, 0.05):
            for position, sealed in pulled:
                plain = self.openers[shard].open(sealed, queue.subject)
                found += read_message(plain, len(self.columns))
                lengths.append(len(sealed))
                self.after[queue] = position
            if len(pulled) < 10:
                break
        return found, lengths


@pytest.fixture
def shards(broker):
    return Shards(broker)


def rows(parts, column=0):
    return [one for part in parts for b in part.batches for one in b.column(column).to_pylist()]


def test_each_shard_gets_its_rows_and_nobody_sees_how_many(shared_nats, shards):
    users = list(range(1_000))
    with Publisher(shared_nats.url, shards.stream) as publisher:
        publisher.send(users)
        publisher.send(np.arange(1_000, 2_000), batch_id="one")
        publisher.send(np.arange(1_000, 2_000), batch_id="one")
        time.sleep(0.1)
    each = [shards.parts(shard) for shard in range(2)]
    router = shards.directory.router()
    assert each[0][1] == each[1][1]
    assert len(each[0][1]) > 3
    named, nameless = set(), []
    for shard, (parts, _) in enumerate(each):
        names = [part.name for part in parts if part.name]
        assert len(names) == 2
        named |= set(names)
        found = rows(parts)
        nameless += rows([part for part in parts if part.name is None])
        router.check(pa.record_batch({"user": found}), 0, shard)
    assert len(named) == 1
    assert sorted(nameless) == sorted(shards.sent(*users))


@pytest.mark.long
def test_rounds_go_on_where_nothing_is_sent(shared_nats, shards):
    with Publisher(shared_nats.url, shards.stream):
        time.sleep(0.3)
    _, lengths = shards.parts(0)
    assert 5 <= len(lengths) <= 20
    assert len(set(lengths)) == 1


def test_the_page_shows_a_program_that_sends(shared_nats, shards):
    program = EXAMPLE.read_text().split("```")[1].replace("nats://127.0.0.1:4222", shared_nats.url)
    assert '"visits"' in program
    exec(program.replace('"visits"', f'"{shards.stream}"'), {})
    parts = shards.parts(0)[0] + shards.parts(1)[0]
    assert sorted(rows(parts)) == sorted(shards.sent("ada", "ada", "grace"))


def test_rows_have_the_same_names_in_whatever_chunks_they_come(shared_nats, shards):
    given = [[1, 2, 3], pa.chunked_array([[1], [2, 3]]), pa.chunked_array([["1", "2"], ["3"]])]
    with Publisher(shared_nats.url, shards.stream) as publisher:
        for users in given:
            publisher.send(users, batch_id="one")
    for shard in range(2):
        named = [part for part in shards.parts(shard)[0] if part.name]
        assert len({part.name for part in named}) == 1
        assert rows(named) == rows(named[:1]) * len(given)


def test_deltas_and_groups_go_along(shared_nats, broker):
    shards = Shards(broker, 1, ("user", "delta", "group"))
    with Publisher(shared_nats.url, shards.stream) as publisher:
        publisher.send(["ada", "alan"], [1, -1], ["x", "y"])
    parts, _ = shards.parts(0)
    assert [rows(parts, column) for column in range(3)] == [
        shards.sent("ada", "alan"),
        [1, -1],
        ["x", "y"],
    ]


def test_addresses_of_one_prefix_are_one_user_in_one_shard(shared_nats, broker):
    shards = Shards(broker, 2, addresses=Prefixes(24, 56))
    with Publisher(shared_nats.url, shards.stream) as publisher:
        publisher.send([f"192.0.2.{one}" for one in range(50)])
        publisher.send(["::ffff:192.0.2.7"])
        with pytest.raises(InputError, match="not an IP address"):
            publisher.send(["ada"])
    found = [rows(shards.parts(shard)[0]) for shard in range(2)]
    assert sorted(map(len, found)) == [0, 51]
    assert len({one for each in found for one in each}) == 1


def test_what_cannot_be_sent_is_refused_and_the_rest_goes_on(shared_nats, shards):
    with Publisher(shared_nats.url, shards.stream) as publisher:
        for given in (
            {"users": ["ada", None]},
            {"users": [1.5]},
            {"users": ["ada"], "deltas": [1]},
            {"users": None},
        ):
            with pytest.raises(InputError) as refused:
                publisher.send(**given)
            assert "ada" not in str(refused.value)
        publisher.send(["x" * (1 << 20)])  # the hash of a long id is as long as any
        publisher.send([1])
    found = rows(shards.parts(0)[0] + shards.parts(1)[0])
    assert sorted(found) == sorted([*shards.sent("x" * (1 << 20)), *shards.sent(1)])
    with pytest.raises(BrokerError, match="stopped"):
        publisher.send([1])


@pytest.mark.long
def test_new_keys_are_read_and_other_shards_are_refused(shared_nats, shards, monkeypatch):
    monkeypatch.setattr(publisher_module, "_FRESH_SECONDS", 0.05)
    with Publisher(shared_nats.url, shards.stream) as publisher:
        for opener in shards.openers:
            opener.rotate()
            opener.rotate()
        shards.tell()
        time.sleep(0.2)
        for shard in range(2):  # what was sealed before
            shards.after[shards.queues[shard]] = shards._broker.last(shards.queues[shard])
        publisher.send([1])
        assert rows(shards.parts(0)[0] + shards.parts(1)[0]) == shards.sent(1)
        shards.openers.append(Opener())
        shards.tell()
        time.sleep(0.2)
        with pytest.raises(BrokerError, match="make a new Publisher"):
            publisher.send([1])


def test_keys_of_before_are_good_for_a_while_where_the_directory_cannot_be_read(
    shared_nats, shards, broker
):
    with Publisher(shared_nats.url, shards.stream) as publisher:
        broker.tell("panprivacy", shards.stream, b"")
        publisher._read = time.monotonic() - publisher_module._GOOD_SECONDS + 10
        publisher.send([1])
        publisher._read = time.monotonic() - publisher_module._GOOD_SECONDS - 1
        with pytest.raises(BrokerError, match="no cluster panprivacy counts it"):
            publisher.send([2])


NO_USERS = msgspec.json.encode(
    Directory(key=bytes(16), numbered=False, columns=("delta",), publics=(bytes(32),))
)


def test_a_directory_that_is_missing_or_damaged_is_refused(shared_nats, shards, broker):
    with pytest.raises(BrokerError, match="no cluster panprivacy counts it"):
        Publisher(shared_nats.url, "nobody")
    broker.tell("panprivacy", shards.stream, b"")  # it was taken down
    with pytest.raises(BrokerError, match="no cluster panprivacy counts it"):
        Publisher(shared_nats.url, shards.stream)
    for wrong in (
        b"{}",
        b"[1]",
        b'{"key":"","numbered":false,"columns":[],"publics":[""]}',
        NO_USERS,
    ):
        broker.tell("panprivacy", shards.stream, wrong)
        with pytest.raises(BrokerError, match="damaged"):
            Publisher(shared_nats.url, shards.stream)


@pytest.mark.long
def test_who_may_send_can_neither_write_the_directory_nor_read_or_remove(monkeypatch):
    """With the lines that the page shows."""
    monkeypatch.setattr(BrokerConnection, "answer_seconds", 0.3)
    lines = PAGE.read_text().partition("```\nauthorization")[2].partition("```")[0]
    lines = f"authorization{lines}".replace("$CLUSTER_PASSWORD", "c").replace(
        "$PUBLISHER_PASSWORD", "p"
    )
    with NatsServer(found_nats(), extra=lines) as server:
        cluster = server.url.replace("//", "//cluster:c@")
        thief = Broker(server.url.replace("//", "//publisher:p@"), patience=0.5)
        broker = Broker(cluster, most_bytes=QUEUE_BYTES)
        shards = Shards(broker)
        before = broker.directory_entry("panprivacy", shards.stream)
        with Publisher(server.url.replace("//", "//publisher:p@"), shards.stream) as publisher:
            publisher.send([1])
        last = broker.last(shards.queues[0])
        for forbidden in (
            lambda: thief.tell("panprivacy", shards.stream, b"lies"),
            lambda: thief.pull(shards.queues[0], START, 1, 0.1),
            lambda: thief.remove(shards.queues[0], last),
            lambda: thief.delete(shards.queues[0]),
        ):
            with pytest.raises(BrokerError):
                forbidden()
        assert broker.directory_entry("panprivacy", shards.stream) == before
        assert rows(shards.parts(0)[0] + shards.parts(1)[0]) == shards.sent(1)
        with pytest.raises(BrokerError, match="Authorization"):
            Broker(server.url.replace("//", "//cluster:wrong@"), patience=0.5).directory_entry(
                "a", "b"
            )
        thief.close()
        broker.close()


@pytest.mark.long
def test_who_sends_again_under_a_name_after_the_broker_was_gone_is_counted_once(nats):
    broker = Broker(nats.url, most_bytes=QUEUE_BYTES)
    shards = Shards(broker)
    with Publisher(nats.url, shards.stream) as publisher:
        publisher.send([1], batch_id="first")
        nats.kill()
        sending = publisher.begin_sending([2], batch_id="second")
        nats.start()
        for queue in shards.queues:
            broker.open(queue)
        shards.tell()
        try:
            sending.result()
        except BrokerError:
            publisher.send([2], batch_id="second")
    parts = [shards.parts(shard)[0] for shard in range(2)]
    assert {len({part.name for part in each if part.name}) for each in parts} == {1}
    assert set(rows(parts[0] + parts[1])) == {*shards.sent(2)}
    broker.close()
