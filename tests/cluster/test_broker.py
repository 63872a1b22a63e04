"""Queues in a real NATS server, which is killed, paused, cut off and filled."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import nats as nats_client
import pytest

from panprivacy.cluster import broker as broker_module
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.connection import BrokerConnection
from panprivacy.cluster.queues import START, BrokerError, LostError, Position, Queue, QueueFullError
from panprivacy.errors import InputError
from tests.cluster.conftest import QUEUE_BYTES
from tests.cluster.nats import NatsServer, Proxy, found_nats

numbers = itertools.count()


@pytest.fixture
def queue():
    return Queue("panprivacy", f"visits{next(numbers)}", 2, 0)


@pytest.fixture
def impatient(monkeypatch):
    """Asks again sooner than a program does."""
    monkeypatch.setattr(BrokerConnection, "answer_seconds", 0.3)


def numbered(count, start=0):
    return [b"%d" % number for number in range(start, start + count)]


def read(broker, queue, after=START, seconds=0.2):
    return [(at.sequence, message) for at, message in broker.pull(queue, after, 100, seconds)]


def read_on(broker, queue, after, until):
    """What comes until so many messages are there, over any number of pulls."""
    found = []
    deadline = time.monotonic() + 20
    while len(found) < until:
        assert time.monotonic() < deadline
        try:
            pulled = broker.pull(queue, after, 100, 0.1)
        except BrokerError:
            continue
        found += pulled
        after = pulled[-1][0] if pulled else after
    return found


def test_what_is_published_is_read_in_order_and_stays_until_it_is_removed(broker, queue):
    start = broker.open(queue)
    positions = broker.publish([(queue, message) for message in numbered(5)])
    assert sorted(positions) == [Position(start.born, i) for i in range(1, 6)]
    first = broker.pull(queue, start, 3, 0.2)
    assert [at.sequence for at, _ in first] == [1, 2, 3]
    broker.remove(queue, start)
    rest = broker.pull(queue, first[-1][0], 3, 0.2)
    assert {bytes(message) for _, message in first + rest} == set(numbered(5))
    broker.remove(queue, first[-1][0])
    assert read(broker, queue) == [(at.sequence, message) for at, message in rest]
    assert broker.last(queue) == rest[-1][0]
    broker.remove(queue, rest[-1][0])
    assert broker.last(queue) == rest[-1][0]
    (after,) = broker.publish([(queue, b"last")])
    assert after == Position(start.born, 6)
    assert read(broker, queue, rest[-1][0]) == [(6, b"last")]


def test_who_waits_gets_a_message_when_it_comes(broker, queue):
    start = broker.open(queue)
    timer = threading.Timer(0.2, broker.publish, ([(queue, b"late")],))
    timer.start()
    before = time.monotonic()
    assert read(broker, queue, start, 60.0) == [(1, b"late")]
    assert time.monotonic() - before < 30
    timer.join()


def test_the_same_message_is_in_a_queue_once(broker, queue):
    broker.open(queue)
    (first,) = broker.publish([(queue, b"once")])
    broker.remove(queue, first)
    assert broker.publish([(queue, b"once")]) == [first]
    assert read(broker, queue) == []


def test_removing_reaches_no_other_birth_and_nothing_that_is_not_there(broker, queue):
    start = broker.open(queue)
    broker.publish([(queue, b"a")])
    broker.remove(queue, Position(start.born - 1, 1))
    broker.remove(queue, Position(start.born, 1_000))
    assert read(broker, queue) == [(1, b"a")]
    assert broker.last(queue) == Position(start.born, 1)


def test_a_deleted_queue_is_born_anew_when_it_is_opened(broker, queue):
    start = broker.open(queue)
    broker.publish([(queue, b"a")])
    broker.delete(queue)
    broker.delete(queue)
    with pytest.raises(BrokerError, match="no such queue"):
        broker.publish([(queue, b"b")])
    assert broker.open(queue).born > start.born
    assert read(broker, queue, Position(start.born, 1)) == []


def test_a_queue_is_born_later_than_the_last_one_though_the_clock_was_set_back(
    broker, queue, monkeypatch
):
    """Else a shard takes its messages for some that it has counted."""
    before = broker.open(queue)
    broker.delete(queue)
    monkeypatch.setattr(broker_module.time, "time_ns", lambda: 5)
    assert broker.open(queue).born > before.born


def test_two_programs_that_open_a_queue_at_once_have_the_same_one(shared_nats, queue):
    brokers = [Broker(shared_nats.url, most_bytes=QUEUE_BYTES) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        opened = set(threads.map(lambda broker: broker.open(queue), brokers))
    assert len(opened) == 1
    for broker in brokers:
        broker.close()


def test_a_queue_that_has_lost_what_was_read_is_born_anew(broker, queue):
    """As a cluster of servers gives it back, whose one copy was in the memory of a server."""
    start = broker.open(queue)
    broker.publish([(queue, b"a")])
    assert broker.pull(queue, Position(start.born, 1_000), 1, 0.1) == []
    assert broker.last(queue).born > start.born
    (anew,) = broker.publish([(queue, b"b")])
    assert broker.pull(queue, Position(start.born, 1_000), 1, 0.1) == [(anew, b"b")]


def test_a_queue_that_nobody_opened_is_not_created_and_takes_nothing(broker, queue):
    for wanted in (
        lambda: broker.publish([(queue, b"a")]),
        lambda: broker.last(queue),
        lambda: broker.pull(queue, START, 1, 0.1),
    ):
        with pytest.raises(BrokerError, match="no such queue"):
            wanted()


def test_a_full_queue_takes_no_more_and_loses_nothing(shared_nats, queue):
    broker = Broker(shared_nats.url, most_bytes=10_000)
    broker.open(queue)
    full = False
    sent = [bytes([i]) * 1_000 for i in range(20)]
    for message in sent:
        try:
            (last,) = broker.publish([(queue, message)])
        except QueueFullError as error:
            full = "come again later" in str(error)
            break
    assert full
    assert read(broker, queue) == [(i + 1, sent[i]) for i in range(last.sequence)]
    broker.remove(queue, last)
    broker.publish([(queue, sent[last.sequence])])
    assert read(broker, queue, last) == [(last.sequence + 1, sent[last.sequence])]
    broker.close()


def test_a_server_whose_memory_is_full_is_full(queue):
    with NatsServer(found_nats(), memory=1 << 16) as server:
        broker = Broker(server.url, most_bytes=1 << 17)
        with pytest.raises(BrokerError, match="max_memory_store"):
            broker.open(queue)
        broker.close()


def test_a_message_that_is_too_long_is_refused(broker, queue):
    broker.open(queue)
    with pytest.raises(BrokerError, match="max_payload"):
        broker.publish([(queue, bytes(broker.most_message + 1_000))])
    broker.publish([(queue, bytes(broker.most_message))])


def test_names_that_are_no_part_of_a_subject_are_refused(broker):
    for name, stream in (("pan privacy", "a"), ("a", "b.c"), ("a", ">"), ("", "a")):
        with pytest.raises(InputError, match="letters"):
            broker.directory_entry(name, stream)


def test_what_one_queue_had_no_room_for_is_not_doubled_in_the_others(shared_nats, queue):
    broker, other = (
        Broker(shared_nats.url, most_bytes=5_000),
        Queue("panprivacy", queue.stream, 2, 1),
    )
    start, _ = broker.open(queue), broker.open(other)
    (full,) = broker.publish([(queue, bytes(3_000))])
    messages = [(queue, b"a" * 3_000), (other, b"b" * 3_000)]
    with pytest.raises(QueueFullError):
        broker.publish(messages)
    broker.remove(queue, full)
    broker.publish(messages)
    assert read(broker, queue, start) == [(2, messages[0][1])]
    assert read(broker, other) == [(1, messages[1][1])]
    broker.close()


def test_another_stream_on_the_subject_is_refused(shared_nats, broker):
    queue = Queue("taken", "visits", 1, 0)

    async def take():
        client = await nats_client.connect(shared_nats.url)
        await client.jetstream().add_stream(
            name="other", subjects=["taken.>"], storage="memory", max_bytes=1000
        )
        await client.close()

    asyncio.run(take())
    with pytest.raises(BrokerError, match="another stream of JetStream"):
        broker.open(queue)


def test_what_is_told_stays_until_something_else_is(broker):
    assert broker.directory_entry("told", "visits") is None
    broker.tell("told", "visits", b"first")
    broker.tell("told", "visits", b"second")
    broker.tell("told", "clicks", b"other")
    assert broker.directory_entry("told", "visits") == b"second"


def test_a_killed_server_has_lost_its_queues_and_they_are_born_anew(nats, queue):
    reader, sender = Broker(nats.url), Broker(nats.url)
    start = reader.open(queue)
    sender.open(queue)
    (last,) = sender.publish([(queue, b"lost")])
    assert read(reader, queue, start) == [(1, b"lost")]
    nats.kill()
    nats.start()
    (anew,) = sender.publish([(queue, b"new")])
    assert anew.born > start.born
    assert anew.sequence == 1
    assert read_on(reader, queue, last, 1) == [(anew, b"new")]
    reader.remove(queue, last)
    assert reader.last(queue) == anew
    reader.close()
    sender.close()


@pytest.mark.long
def test_a_message_that_may_have_been_read_is_not_sent_into_another_birth(nats, queue, impatient):
    """What was sent to a server that stands still is in it, once it goes on, or lost with it."""
    sender = Broker(nats.url, patience=10)
    sender.open(queue)
    sender.publish([(queue, b"first")])
    nats.pause()
    with ThreadPoolExecutor() as pool:
        sending = pool.submit(sender.publish, [(queue, b"unsure")])
        time.sleep(0.5)  # longer than one attempt
        nats.kill()
        nats.start()
        with pytest.raises(BrokerError, match="lost its memory"):
            sending.result()
    assert sender.last(queue).sequence == 0
    sender.close()


def test_what_one_queue_had_before_the_broker_died_is_not_sent_again_with_the_rest(nats, queue):
    sender, other = Broker(nats.url, patience=0.5), Queue("panprivacy", queue.stream, 2, 1)
    sender.open(queue)
    messages = [(queue, b"may have been read"), (other, b"has no queue yet")]
    with pytest.raises(BrokerError, match="no such queue"):
        sender.publish(messages)
    nats.kill()
    nats.start()
    sender.open(other)
    with pytest.raises(LostError, match="lost its memory"):
        sender.publish(messages)
    assert sender.last(queue).sequence == 0
    sender.close()


@pytest.mark.long
def test_a_server_that_stands_still_for_a_while_gets_each_message_once(nats, queue, impatient):
    sender = Broker(nats.url, patience=0.5)
    start = sender.open(queue)
    nats.pause()
    with pytest.raises(BrokerError, match="does not answer"):
        sender.publish([(queue, b"slow")])
    nats.resume()
    (slow,) = sender.publish([(queue, b"slow")])
    assert slow == Position(start.born, 1)
    assert read(sender, queue, start) == [(1, b"slow")]
    sender.close()


@pytest.mark.long
def test_nothing_is_lost_or_doubled_when_connections_break(shared_nats, queue):
    with Proxy(shared_nats.port) as proxy:
        reader, sender = (Broker(proxy.url, patience=10, most_bytes=QUEUE_BYTES) for _ in range(2))
        start = reader.open(queue)
        sent = numbered(600)

        def send():
            for at in range(0, len(sent), 20):
                sender.publish([(queue, message) for message in sent[at : at + 20]])

        sending = threading.Thread(target=send)
        sending.start()
        found, after = [], start
        for _ in range(3):
            more = read_on(reader, queue, after, 100)
            found, after = found + more, more[-1][0]
            proxy.cut()
        found += read_on(reader, queue, after, len(sent) - len(found))
        sending.join()
        assert [at.sequence for at, _ in found] == list(range(1, len(sent) + 1))
        assert sorted(bytes(message) for _, message in found) == sorted(sent)
        reader.close()
        sender.close()


class Lying(Proxy):
    """Changes what the server says, for as long as there is something to change it to."""

    said = b"", b""

    def _copy(self, source, sink):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data.replace(*self.said) if self.said[0] else data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        source.close()


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
def test_what_is_no_answer_is_no_other_error_and_is_not_believed(queue):
    with NatsServer(found_nats()) as server, Lying(server.port) as between:
        broker = Broker(between.url, patience=0.5)
        broker.open(queue)
        for said in ((b'"seq"', b'"sex"'), (b'{"stream"', b'["stream"')):
            between.said = said
            with pytest.raises(BrokerError):
                broker.publish([(queue, b"0")])
        between.said = b"", b""
        broker.publish([(queue, one) for one in numbered(1)])
        between.said = b"$JS.ACK.", b"$JS.ACK.x."
        with suppress(BrokerError):
            assert read(broker, queue) == []
        between.said = b"", b""
        found = read_on(broker, queue, START, 1)
        assert [(at.sequence, message) for at, message in found] == [(1, b"0")]
        broker.close()
