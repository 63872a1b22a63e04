"""What a cluster knows of its shards, and whom it tells when."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from panprivacy.cluster import coordinator as module
from panprivacy.cluster.coordinator import Coordinator
from panprivacy.cluster.queues import Position

NOW = 1_000_000.0


class Gateway:
    """Two shards of one stream."""

    shards, troubles, reborn = 2, {}, 0.0

    def __init__(self):
        self.known, self.wanted = {}, {}

    def know(self, stream, shard, public):
        self.known[stream, shard] = public

    def last_positions(self):
        return dict(self.wanted)


class Shards:
    """Tell what a test says."""

    def __init__(self):
        self.positions = {}

    def report(self):
        return {
            shard: {"visits": {"position": position, "public": b"%d" % shard}}
            for shard, position in self.positions.items()
        }


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW)
    releaser = SimpleNamespace(
        name="visits", busy=False, missing=frozenset(), deadline=lambda: NOW + 0.3
    )
    releaser.asked = []
    releaser.advance = releaser.asked.append
    shards, gateway = Shards(), Gateway()
    return Coordinator(shards, [releaser], gateway, {}), shards, gateway, releaser


def test_all_shards_have_to_tell(made):
    coordinator, shards, gateway, _ = made
    shards.positions[0] = Position(1, 5)
    assert not coordinator.look()
    assert coordinator.written is None
    shards.positions[1] = Position(1, 0)
    assert coordinator.look()
    assert coordinator.written == NOW
    assert gateway.known == {("visits", 0): b"0", ("visits", 1): b"1"}


def test_who_waits_is_told_once_all_have_come_so_far(made):
    coordinator, shards, gateway, _ = made
    told = []
    gateway.wanted = {("visits", 0): Position(1, 5), ("visits", 1): Position(1, 2)}
    coordinator.after_next(told.append, 1.0)
    for place in (4, 5):
        shards.positions = {0: Position(1, place), 1: Position(1, 2)}
        assert told == []
        coordinator.look()
    assert told == [None]
    coordinator.look()
    assert told == [None]


def test_what_another_broker_had_may_be_lost(made):
    coordinator, shards, gateway, _ = made
    told = []
    gateway.wanted = {("visits", 0): Position(1, 5)}
    coordinator.after_next(told.append, 1.0)
    shards.positions = {0: Position(2, 0), 1: Position(2, 0)}
    coordinator.look()
    assert told == ["the broker was started anew, and may have lost it"]
    gateway.reborn = 7.0
    coordinator.after_next(told.append, 7.0)
    assert told[1:] == told[:1]
    coordinator.after_next(told.append, 7.1)
    assert len(told) == 2


def test_at_the_end_all_are_told_that_it_has_stopped(made):
    coordinator, _, gateway, _ = made
    told = []
    gateway.wanted = {("visits", 0): Position(1, 5)}
    coordinator.after_next(told.append, 1.0)
    coordinator._tell_the_end()
    coordinator.after_next(told.append, 1.0)
    assert told == ["the cluster has stopped"] * 2


def test_shards_that_are_silent_or_waited_for_are_troubles(made, monkeypatch):
    coordinator, shards, _, releaser = made
    shards.positions = {0: Position(1, 1), 1: Position(1, 1)}
    coordinator.look()
    assert coordinator.troubles == {}
    releaser.missing = frozenset({1})
    assert coordinator.troubles == {"shard 2 of 2": "has not contributed; a release waits for it"}
    monkeypatch.setattr(time, "time", lambda: NOW + 15.1)
    assert coordinator.troubles == {
        "shard 1 of 2": "tells of no sealed state",
        "shard 2 of 2": "tells of no sealed state; a release waits for it",
    }


def test_each_stream_goes_on_with_what_its_shards_told(made):
    coordinator, shards, _, releaser = made
    shards.positions = {0: Position(1, 1)}
    coordinator.advance()
    (asked,) = releaser.asked
    assert list(asked) == [0]
    assert asked[0]["position"] == Position(1, 1)


def test_pauses_are_short_while_anybody_waits(made):
    coordinator, _, gateway, releaser = made
    assert coordinator._pause() == pytest.approx(0.3)
    releaser.deadline = lambda: NOW - 5
    assert coordinator._pause() == 0
    releaser.deadline = lambda: NOW + 99
    assert coordinator._pause() == module._SLOW
    releaser.busy = True
    assert coordinator._pause() == module._QUICK
    releaser.busy, gateway.wanted = False, {("visits", 0): Position(1, 5)}
    coordinator.after_next(lambda _: None, 1.0)
    assert coordinator._pause() == module._QUICK
