"""What shards are asked: once, again where it failed, and once more where it may be lost."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from panprivacy.cluster import asking
from panprivacy.cluster.asking import Asking
from panprivacy.service.outgoing.records import StoreError

KEY = 5.0, 1
"""A window, and a shard."""


class Shards:
    """Know what they were asked; what becomes of it is for a test to say."""

    def __init__(self):
        self.asked, self.futures = [], []

    def ask(self, shard, what, *arguments):
        self.asked.append((shard, what, *arguments))
        self.futures.append(Future())
        return self.futures[-1]


@pytest.fixture
def shards():
    return Shards()


@pytest.fixture
def made(shards):
    return Asking("visits", shards)


@pytest.fixture
def later(monkeypatch):
    """Lets seconds pass."""
    now = [0.0]
    monkeypatch.setattr(asking.time, "monotonic", lambda: now[0])

    def passed(seconds):
        now[0] += seconds

    return passed


def test_a_shard_is_asked_about_the_stream_each_time(made, shards):
    first, second = (made.now(1, "announce", 5.0, 2) for _ in range(2))
    assert shards.asked == [(1, "announce", "visits", 5.0, 2)] * 2
    assert [first, second] == shards.futures


@pytest.mark.usefixtures("later")
def test_what_is_asked_once_is_not_asked_again_while_it_is_under_way_or_done(made, shards):
    asked = made.once(KEY, "hold", 7)
    assert made.once(KEY, "hold", 7) is asked
    asked.set_result("held")
    assert made.once(KEY, "hold", 7).result() == "held"
    assert shards.asked == [(1, "hold", "visits", 7)]


@pytest.mark.usefixtures("later")
def test_each_shard_window_and_errand_is_asked_apart(made, shards):
    for key, what in ((KEY, "hold"), ((5.0, 0), "hold"), ((6.0, 1), "hold"), (KEY, "settled")):
        made.once(key, what)
    assert [each[:2] for each in shards.asked] == [
        (1, "hold"),
        (0, "hold"),
        (1, "hold"),
        (1, "settled"),
    ]


def test_what_failed_is_asked_again_after_a_while(made, shards, later):
    failed = made.once(KEY, "hold")
    failed.set_exception(StoreError("does not answer"))
    later(0.9)
    assert made.once(KEY, "hold") is failed
    later(0.2)
    assert made.once(KEY, "hold") is shards.futures[1]
    later(5)
    assert made.once(KEY, "hold") is shards.futures[1], "it is under way"
    assert len(shards.asked) == 2


def test_what_may_be_lost_is_asked_again_after_a_while_though_it_was_done(made, shards, later):
    made.again(KEY, "announce")
    later(5)
    made.again(KEY, "announce")
    assert len(shards.asked) == 1, "it is under way"
    shards.futures[0].set_result(None)
    made.again(KEY, "announce")
    assert len(shards.asked) == 2
    shards.futures[1].set_result(None)
    later(0.9)
    made.again(KEY, "announce")
    assert len(shards.asked) == 2
    later(0.2)
    made.again(KEY, "announce")
    assert len(shards.asked) == 3


@pytest.mark.usefixtures("later")
def test_what_is_forgotten_is_asked_anew_and_nothing_else(made, shards):
    for what in ("hold", "settled"):
        made.once(KEY, what)
        made.once((5.0, 0), what)
    made.forget(KEY)
    for what in ("hold", "settled"):
        made.once(KEY, what)
        made.once((5.0, 0), what)
    assert shards.asked[4:] == [(1, "hold", "visits"), (1, "settled", "visits")]
