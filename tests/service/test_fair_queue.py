"""Senders take turns."""

from __future__ import annotations

import threading
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from panprivacy.service.incoming.fair_queue import FairQueue


def taken(queue):
    """All that is in a queue, in order."""
    queue.close()
    return list(iter(queue.get, None))


def test_who_sends_little_waits_for_one_item_of_each_other():
    queue = FairQueue()
    for number in range(64):
        queue.put("much", ("much", number))
        queue.put("more", ("more", number))
    queue.put("little", ("little", 0))
    assert taken(queue)[:3] == [("much", 0), ("more", 0), ("little", 0)]


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_every_item_comes_once_in_the_order_of_its_sender_and_in_turn(senders):
    queue = FairQueue()
    for number, sender in enumerate(senders):
        queue.put(sender, (sender, number))
    found = taken(queue)
    assert sorted(found) == sorted(zip(senders, range(len(senders)), strict=True))
    for sender in {*senders}:
        places = [at for at, (one, _) in enumerate(found) if one == sender]
        numbers = [found[at][1] for at in places]
        assert numbers == sorted(numbers)
        assert all(later - at <= len({*senders}) for at, later in pairwise(places))


def test_threads_that_wait_are_ended():
    queue, found = FairQueue(), []
    threads = [
        threading.Thread(target=lambda: found.extend(iter(queue.get, None))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for number in range(10):
        queue.put("a", number)
    queue.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert sorted(found) == list(range(10))
