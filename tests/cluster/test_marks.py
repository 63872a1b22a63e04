"""Marks in queues: where they stand, and what a queue does that is full."""

from __future__ import annotations

import itertools
import os

import pytest

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import ENVELOPE_BYTES
from panprivacy.cluster.marks import before_mark, packed_mark, put_marks, read_mark
from panprivacy.cluster.queues import Position, Queue, QueueFullError
from tests.cluster.shards import BEGAN, NEXT, at

_NAMES = itertools.count()


@pytest.fixture
def queues():
    name = f"marks-{os.getpid()}-{next(_NAMES)}"
    return [Queue(name, "visits", 2, shard) for shard in range(2)]


def test_a_mark_is_read_back_and_nothing_else_is_one():
    mark = packed_mark((BEGAN, 3))
    assert read_mark(mark) == read_mark(memoryview(mark)) == (BEGAN, 3)
    assert len(mark) < ENVELOPE_BYTES, "no envelope looks like a mark"
    for other in (b"", mark[:-1], mark + b"\0", bytes(len(mark)), b"x" + mark[1:]):
        assert read_mark(other) is None


def test_messages_before_the_mark_of_a_release_are_told_from_those_behind():
    log = [(at(1), b"a"), (at(2), packed_mark((BEGAN, 1))), (at(3), b"b")]
    assert before_mark(log, (BEGAN, 1)) == (log[:1], True)
    assert before_mark(log, (BEGAN, 2)) == (log, False)
    assert before_mark(log, (NEXT, 1)) == (log, False)
    assert before_mark([], (BEGAN, 1)) == ([], False)


def test_marks_stand_behind_what_was_taken_before_and_are_there_once(broker, queues):
    for queue in queues:
        broker.open(queue)
    (first,) = broker.publish([(queues[0], b"row")])
    cuts = put_marks(broker, queues, (BEGAN, 1))
    assert [cut.sequence for cut in cuts] == [1, 0]
    assert cuts[0] == first
    assert put_marks(broker, queues, (BEGAN, 1)) == cuts
    assert [broker.last(queue).sequence for queue in queues] == [2, 1]
    ((_, row), (_, mark)) = broker.pull(queues[0], Position(0, 0), 9, 1.0)
    assert (bytes(row), read_mark(mark)) == (b"row", (BEGAN, 1))


@pytest.mark.long
def test_a_full_queue_is_cut_where_it_ends_and_holds_up_no_other(shared_nats, queues):
    broker = Broker(shared_nats.url, most_bytes=2_000)
    for queue in queues:
        broker.open(queue)
    for number in itertools.count():
        try:
            (last,) = broker.publish([(queues[0], b"%d" % number)])
        except QueueFullError:
            break
    cuts = put_marks(broker, queues, (BEGAN, 1))
    assert cuts[0] == last == broker.last(queues[0])
    assert cuts[1].sequence == 0
    assert broker.last(queues[1]).sequence == 1
    broker.close()
