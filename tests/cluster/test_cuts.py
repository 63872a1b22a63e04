"""The cuts of a stream: recorded before they are marked, and honest about windows that broke."""

from __future__ import annotations

import math

import pytest

from panprivacy.cluster.cuts import WindowCuts
from panprivacy.cluster.queues import BrokerError
from panprivacy.cluster.record import ClusterRecord, RecordFile, StreamRecord
from tests.cluster.shards import KEY, at, planned
from tests.service.doubles import HOUR


class Stream:
    """A stream whose queues are marked in memory, on the record of a file."""

    def __init__(self, path, clock, **given):
        self.path, self.clock, self.config = path, clock, planned(**given)
        self.marked, self.unmarkable, self.broken = [], None, 0.0
        began = StreamRecord(window=clock.now, ends=clock.now + HOUR, last_release=clock.now)
        RecordFile(path, ClusterRecord(shards=2, key=KEY.hex(), streams={"visits": began})).write()
        self.begin()

    def begin(self):
        """Go on from what is on the disk."""
        self.record = RecordFile.load(self.path)
        self.cuts = WindowCuts(
            "visits",
            self.config,
            self.record,
            2,
            self.mark,
            broken=lambda: self.broken,
            clock=self.clock,
        )

    def mark(self, release):
        if self.unmarkable is not None:
            raise self.unmarkable
        self.marked.append(release)
        return [at(len(self.marked))] * 2

    def advance(self):
        self.cuts.make_due()
        self.cuts.mark()

    @property
    def seen(self):
        """Of each cut: when its window began, its number, whether it ends it and is complete."""
        return [
            (one.window - self.began, one.number, one.last, one.complete)
            for one in self.record.record.streams["visits"].cuts
        ]

    began = 0.0


@pytest.fixture
def stream(tmp_path, clock):
    found = Stream(tmp_path / "coordinator.json", clock, releases=3)
    found.began = clock.now
    return found


def test_nothing_is_cut_before_a_window_has_ended(stream):
    stream.clock.now += HOUR - 1
    stream.advance()
    assert (stream.seen, stream.marked, stream.cuts.left) == ([], [], 3)
    assert stream.cuts.scheduled() == math.inf


def test_each_window_that_has_ended_is_cut_once_and_the_next_one_begins_at_its_end(stream):
    for _ in range(2):
        stream.clock.now += HOUR
        for _ in range(2):
            stream.advance()
    assert stream.seen == [(0, 1, True, True), (HOUR, 1, True, True)]
    assert stream.marked == [(stream.began, 1), (stream.began + HOUR, 1)]
    assert stream.cuts.own.window == stream.began + 2 * HOUR
    assert stream.cuts.through == [at(2)] * 2


def test_a_late_mark_spoils_the_next_window_even_if_that_has_been_cut_meanwhile(stream):
    """Rows between the end of a window and its mark are in that window, and miss in the next."""
    stream.clock.now += HOUR
    stream.unmarkable = BrokerError("the broker does not answer")
    for _ in range(2):
        with pytest.raises(BrokerError):
            stream.advance()
        stream.clock.now += HOUR
    stream.unmarkable = None
    stream.clock.now -= HOUR
    for _ in range(2):
        stream.advance()
        stream.clock.now += HOUR
    assert [complete for *_, complete in stream.seen] == [False, False, True]


def test_a_cut_within_a_window_takes_a_release_and_leaves_the_window_open(stream):
    stream.clock.now += 60
    with stream.record.changing():
        made = stream.cuts.make(stream.clock.now)
    assert (made.last, made.complete, made.until) == (False, False, stream.clock.now)
    assert made.held == [0, 1]
    assert (stream.cuts.left, stream.cuts.own.window) == (2, stream.began)


def test_a_cut_is_on_the_disk_before_any_queue_has_its_mark(stream):
    stream.clock.now += HOUR
    stream.unmarkable = BrokerError("the broker does not answer")
    with pytest.raises(BrokerError):
        stream.advance()
    stream.unmarkable = None
    stream.begin()
    assert [cut.through for cut in stream.cuts.own.cuts] == [[]]
    stream.advance()
    assert stream.marked == [(stream.began, 1)]
    stream.begin()
    assert [len(cut.through) for cut in stream.cuts.own.cuts] == [2]


def test_a_process_that_stood_still_leaves_its_window_incomplete(stream):
    stream.broken = stream.clock.now + 60
    for _ in range(2):
        stream.clock.now += HOUR
        stream.advance()
    assert [complete for *_, complete in stream.seen] == [False, True]


def test_a_release_is_late_by_what_this_process_has_waited_whatever_the_clock_says(stream):
    stream.clock.now += HOUR
    stream.advance()
    (cut,) = stream.cuts.own.cuts
    stream.clock.now += 5
    assert stream.cuts.late(cut) == 5
    stream.clock.now -= 100
    assert stream.cuts.late(cut) == 0
    stream.clock.now += 7
    assert stream.cuts.late(cut) == 7
    stream.begin()
    assert stream.cuts.late(cut) == 0
