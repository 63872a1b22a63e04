"""Queues in a real NATS server."""

from __future__ import annotations

import itertools

import pytest

from panprivacy.cluster.broker import START, Position, Queue

numbers = itertools.count()


@pytest.fixture
def queue():
    return Queue("panprivacy", f"visits{next(numbers)}", 2, 0)


def read(broker, queue, after=START, seconds=0.2):
    return [(at.sequence, message) for at, message in broker.pull(queue, after, 100, seconds)]


def test_what_is_published_is_read_in_order_and_stays_until_it_is_removed(broker, queue):
    start = broker.open(queue)
    positions = broker.publish([(queue, bytes([i])) for i in range(5)])
    assert sorted(positions) == [Position(start.born, i) for i in range(1, 6)]
    first = broker.pull(queue, start, 3, 0.2)
    assert [at.sequence for at, _ in first] == [1, 2, 3]
    rest = broker.pull(queue, first[-1][0], 3, 0.2)
    assert {message for _, message in first + rest} == {bytes([i]) for i in range(5)}
    broker.remove(queue, first[-1][0])
    assert read(broker, queue) == [(at.sequence, message) for at, message in rest]
    assert broker.last(queue) == rest[-1][0]
    broker.remove(queue, rest[-1][0])
    assert broker.last(queue) == rest[-1][0]
    (after,) = broker.publish([(queue, b"last")])
    assert after == Position(start.born, 6)
    assert read(broker, queue, rest[-1][0]) == [(6, b"last")]
