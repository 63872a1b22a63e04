"""Windows of a stream: how those that have passed are closed, and who waits for them."""

from __future__ import annotations

import threading

import pytest

from panprivacy.service import stream_windows as streams
from panprivacy.service.outgoing.outbox import PLACES as PLACES_TO_WAIT
from panprivacy.service.outgoing.records import StoreError
from tests.service.doubles import HOUR
from tests.service.test_stream import batch, fill, keep, make, published


@pytest.mark.parametrize(("window", "seconds"), [("1h", 30), ("2m", 30), ("40s", 10)])
def test_the_end_of_a_window_waits_for_a_place_for_at_most_a_quarter_of_one(
    store, clock, window, seconds
):
    stream = make(store, clock, window=window)
    store.fail("before settle", times=1_000)
    for _ in range(PLACES_TO_WAIT):
        clock.now = stream.deadline()
        with pytest.raises(StoreError):
            stream.advance()
    ended = stream.deadline()
    for passed in (0, seconds / 2, seconds - 1):
        clock.now = ended + passed
        with pytest.raises(StoreError):
            stream.take(batch(1))
    clock.now = ended + seconds
    assert stream.take(batch(1))


def test_patience_does_not_wait_for_a_clock_that_was_set_back(store, clock):
    stream = make(store, clock)
    store.fail("before settle", times=1_000)
    fill(stream, clock)
    clock.now += HOUR + 100
    with pytest.raises(StoreError):
        stream.take(batch(1))
    clock.now -= 50
    assert stream.take(batch(1))


def test_many_windows_are_closed_step_by_step(store, clock, monkeypatch):
    """Nothing is counted in between."""
    monkeypatch.setattr(streams, "_STEP_SECONDS", 0.0)
    stream = make(store, clock, durable=True)
    stream.take(batch(1, 2))
    clock.now += 5 * HOUR
    for closed in range(1, 6):
        assert stream.deadline() <= clock.now
        stream.advance()
        keep(stream)
        stream.publish()
        assert len(published(store)) == closed
    assert [row[-1] for row in published(store)] == [2, 0, 0, 0, 0]
    assert stream.deadline() > clock.now
    assert not stream.unkept


def test_of_windows_that_are_closed_step_by_step_each_is_released_once(store, clock, monkeypatch):
    """What was due within one that has passed comes with its end."""
    monkeypatch.setattr(streams, "_STEP_SECONDS", 0.0)
    stream = make(store, clock, every="10m")
    clock.now += 3 * HOUR
    for _ in range(3):
        stream.advance()
    assert [row[:2] for row in published(store)] == [("09:00", 1), ("10:00", 1), ("11:00", 1)]


def test_closing_waits_for_the_store_for_each_window_that_has_passed(store, clock, caplog):
    stream = make(store, clock)
    store.fail("before settle")
    clock.now += 2 * HOUR + 60
    with pytest.raises(StoreError):
        stream.close()
    stream.close()
    assert [row[:2] for row in published(store)] == [("09:00", 1), ("10:00", 1), ("11:00", 1)]
    assert "lost" not in caplog.text


@pytest.mark.long
def test_who_waits_for_many_windows_keeps_the_stream_from_nobody(store, clock, monkeypatch):
    monkeypatch.setattr(streams, "_STEP_SECONDS", 0.0)
    stream, seen = make(store, clock), set()
    clock.now += 30 * HOUR
    taking = threading.Thread(target=stream.take, args=(batch(1),))
    taking.start()
    while taking.is_alive():
        stream.state()
        seen.add(len(store.log))
    taking.join()
    assert len(seen & {*range(1, 30)}) >= 3
    stream.advance()
    assert len(published(store)) == 30
