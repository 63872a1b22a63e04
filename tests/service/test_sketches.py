"""Tables that are published at the end of each window, and the place where one waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.intake.programs.counting import Grouping, make_counting
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.outgoing.payment import entries
from panprivacy.service.outgoing.pending import Pending, PendingSlot, costs
from panprivacy.service.outgoing.records import Moment
from panprivacy.service.outgoing.results import published
from panprivacy.service.outgoing.sketches import SketchRoom, sketch_rows
from panprivacy.service.stream import Stream
from panprivacy.statistics.specification import Specification
from tests.service.doubles import HOUR

BEGAN, ENDS = (datetime(2026, 11, 16, at, 0, 0, at, tzinfo=UTC) for at in (9, 10))
MOMENT = Moment("visits", BEGAN, ENDS, 1, complete=True, released=ENDS)
KEY = b"sixteen bytes or more"
TEXTS = ["overlap,expected=500", "overlap,universe=99,covers=publication,as=who"]


def made(text, groups=None):
    """Statistics, and a release of theirs that waits."""
    grouping = None if groups is None else Grouping(groups)
    counting = make_counting(
        [Specification.from_text(one) for one in ("distinct,expected=500", text)],
        epsilon=Fraction(4), grouping=grouping, table_key=KEY,
    )  # fmt: skip
    answers = counting.release(confidence=0.95)
    lines = entries("visits", BEGAN, ENDS, 1, "0123456789abcdef", costs(counting, 1))
    rows = published(answers, counting, 0.95, MOMENT)
    return counting, Pending(lines, rows, 1, tables=sketch_rows(answers, MOMENT))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("groups", [None, ["a", "\N{SNOWMAN}"]])
def test_a_table_comes_back_as_it_was_and_the_size_of_its_place_tells_nothing(text, groups):
    counting, one = made(text, groups)
    slot = PendingSlot("visits", counting, 0.95, 0)
    slot.check(one)
    assert len(one.tables) == len(groups or [None])
    packed = slot.packed(one)
    assert len(packed) == len(slot.packed(None)) == slot.size
    found = slot.unpacked(packed, counting)
    assert found.rows == one.rows
    assert [replace(each, released=ENDS) for each in found.tables] == list(one.tables)
    for row in one.tables:
        front = pp.Sketch.read(row.sketch).front
        assert (front.stream, front.statistic, front.group) == ("visits", row.statistic, row.group)
        assert (front.start, front.end) == (BEGAN, ENDS)


def test_a_release_that_is_lost_publishes_no_table():
    counting, _ = made(TEXTS[0])
    assert sketch_rows(counting.internals.releasing.lost(), MOMENT) == []


def test_a_longer_text_of_another_version_fits_the_same_place(monkeypatch):
    counting, one = made(TEXTS[0])
    slot = PendingSlot("visits", counting, 0.95, 0)
    monkeypatch.setattr("panprivacy.statistics.overlaps.sketch.VERSION", "10.20.30rc4+local")
    assert PendingSlot("visits", counting, 0.95, 0).size == slot.size
    _, later = made(TEXTS[0])
    slot.check(later)
    assert later.tables[0].size > one.tables[0].size


def test_a_table_of_another_plan_does_not_fit():
    counting, one = made(TEXTS[0])
    room = SketchRoom(counting, one.rows)
    room.check(one.tables)
    for wrong in ({"group": "a"}, {"statistic": "other"}, {"size": room.size}):
        with pytest.raises(PanPrivacyError, match="other tables than its plan says"):
            room.check([replace(one.tables[0], **wrong)])


def test_a_damaged_table_is_refused():
    counting, one = made(TEXTS[0])
    slot = PendingSlot("visits", counting, 0.95, 0)
    packed = slot.packed(one)
    at = packed.index(b"PPSKETCH")
    for place, byte in ((at - 1, 0xFF), (at, 0), (at + 300, packed[at + 300] ^ 1)):
        spoilt = packed[:place] + bytes([byte]) + packed[place + 1 :]
        with pytest.raises(InputError, match="the state is damaged"):
            slot.unpacked(spoilt, counting)


def begun(store, clock, name="visits", **given):
    """A stream that publishes tables."""
    plain = {"stat": ({"name": "overlap", "expected": 1_000},), "window": "1h", "retries": 9}
    config = StreamConfig(**{**plain, "ids": IdKind.integers, "epsilon": Fraction(6), **given})
    config.check()
    stream = Stream(name, config, store, clock=clock)
    stream.begin()
    return stream


def count(stream, clock, *windows):
    """Count users, a window each."""
    for users in windows:
        stream.take([pa.record_batch({"user": pa.array(users, pa.int64())})])
        clock.now += HOUR
        stream.advance()


def sketches(store, **asked):
    return [pp.Sketch.read(store.sketch(one.stream, one.id)) for one in store.sketches(**asked)]


def test_tables_of_windows_restarts_and_streams_of_a_store_are_compared(store, clock):
    stream, other = begun(store, clock), begun(store, clock, "shop")
    count(stream, clock, range(1_000), range(500, 1_500))
    restarted = begun(store, clock)
    count(restarted, clock, range(500, 1_500))
    other.advance()
    count(other, clock, range(1_000))
    first, second, third = sketches(store, stream="visits")
    assert pp.overlap(first, second).return_rate().value == pytest.approx(0.5, abs=0.2)
    assert pp.overlap(second, third).return_rate().value == pytest.approx(1, abs=0.2)
    bought = sketches(store, stream="shop")[-1]
    assert pp.overlap(first, bought).jaccard().value == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("stat", [{"name": "overlap", "expected": 1_000},
                                  {"name": "distinct", "expected": 1_000}])  # fmt: skip
def test_a_window_that_was_published_before_a_crash_and_a_clock_set_back_takes_no_rows(
    store, clock, stat
):
    """They are counted in the next window: this one has no release left for them."""
    stream = begun(store, clock, stat=(stat,), epsilon=Fraction(12))
    stream.take([pa.record_batch({"user": pa.array(range(900), pa.int64())})])
    saved = stream.state()
    clock.now += HOUR
    stream.advance()
    clock.now -= HOUR / 2
    restarted = begun(store, clock, stat=(stat,), epsilon=Fraction(12))
    restarted.resume(saved, released=restarted.states.released_in(saved), announced=0)
    restarted.begin()
    restarted.take([pa.record_batch({"user": pa.array(range(800), pa.int64())})])
    clock.now += 3 * HOUR / 2
    restarted.advance()
    first, second = store.answers()
    assert (second.start, second.complete) == (first.end, False)
    assert second.value == pytest.approx(800, abs=400)
    assert [line.number for line in store.ledger()] == [0, 1, 0, 1]


def test_a_key_of_the_configuration_is_that_of_other_stores_too(store, clock):
    count(begun(store, clock, key="drawn once, public"), clock, [1])
    (found,) = sketches(store)
    same = pp.OverlapSketch(epsilon=6, expected=1_000, key=b"drawn once, public")
    assert found.key == same.release().sketch.key


def test_other_statistics_beside_it_have_keys_of_their_own(store, clock):
    counted = {"name": "distinct", "expected": 1_000}
    stream = begun(store, clock, stat=({"name": "overlap", "expected": 1_000}, counted))
    keys = []
    for _ in range(2):
        members = stream.windows.windowed.current.statistics
        keys.append([one.internals.memory.now.key for one in members.values()])
        count(stream, clock, [1])
    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]


def test_tables_are_kept_as_long_as_the_configuration_says(store, clock):
    stream = begun(store, clock, keep_tables="2h")
    count(stream, clock, *([at] for at in range(5)))
    kept = store.sketches()
    ends = [clock.now - hours * HOUR for hours in (2, 1, 0)]
    assert [one.end.timestamp() for one in kept] == ends
    assert len(store.answers()) == 5


def test_a_publication_that_costs_nothing_more_has_its_line(store, clock):
    stat = ({"name": "overlap", "universe": 99, "covers": "publication"},)
    stream = begun(store, clock, stat=stat)
    count(stream, clock, np.arange(9), np.arange(9))
    assert [(line.number, line.epsilon) for line in store.ledger()] == [(0, 6), (1, 0)] * 2
    assert [row.epsilon for row in store.answers()] == [0, 0]
    (begun_,) = store.begun("visits", BEGAN.replace(hour=0))
    assert begun_.windows == 2
    assert begun_.promise.over(2, seen=0).epsilon == 12
