"""The queues of a cluster: what they are called, and places in them."""

from __future__ import annotations

import pytest

from panprivacy.cluster.queues import (
    START,
    BrokerError,
    LostError,
    Position,
    Queue,
    QueueFullError,
    checked,
)
from panprivacy.errors import InputError


def test_positions_are_packed_in_16_bytes_and_ordered():
    position = Position(1_700_000_000_000_000_000, 1 << 40)
    assert len(position.packed()) == 16
    assert Position.unpack(position.packed()) == position
    assert START < Position(1, 0) < Position(1, 1) < position


def test_a_queue_has_a_subject_of_its_own():
    queues = [
        Queue("a", stream, shards, shard)
        for stream in ("b", "c")
        for shards in (1, 2)
        for shard in range(shards)
    ]
    assert queues[0].subject == "a.b.1.0"
    assert len({one.subject for one in queues}) == len(queues)


@pytest.mark.parametrize("name", ["pan privacy", "b.c", ">", "*", "", "a\n", "\u00e9"])
def test_a_name_that_is_no_part_of_a_subject_is_refused(name):
    for make in (lambda: Queue(name, "a", 1, 0), lambda: Queue("a", name, 1, 0)):
        with pytest.raises(InputError, match="have letters, digits, _ and - in a broker"):
            make()
    with pytest.raises(InputError, match="letters"):
        checked(name)


def test_a_name_that_is_one_is_given_back():
    assert checked("Pan-privacy_7") == "Pan-privacy_7"


@pytest.mark.parametrize("shard", [-1, 2])
def test_shards_are_counted_from_0(shard):
    with pytest.raises(InputError, match=f"shard {shard} of 2 is none: they are counted from 0"):
        Queue("a", "b", 2, shard)


def test_what_is_lost_or_full_is_an_error_of_the_broker():
    assert issubclass(LostError, BrokerError)
    assert issubclass(QueueFullError, BrokerError)
