"""What several threads count is what one counts, and nothing of it stays."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.ground.hygiene import threads
from panprivacy.ground.hygiene.threads import cores, side_by_side
from panprivacy.tables import addressing
from panprivacy.tables.addressing import CellBatch, Hashed, Levelled, Sampled
from panprivacy.tables.ids import read_ids
from panprivacy.testing import SeededCoins

KEY = bytes(range(16))
CELLS = 1_000
ROWS = 5_000
NUMBERS = np.random.default_rng(1).integers(0, 50_000, ROWS)
TEXTS = pa.array([f"user {number}" for number in NUMBERS.tolist()])
BATCHES = {
    "numbers": NUMBERS,
    "chunks": pa.chunked_array([NUMBERS[:1_700], NUMBERS[1_700:1_701], NUMBERS[1_701:]]),
    "texts": TEXTS,
    "a dictionary": TEXTS.dictionary_encode(),
    "both": pa.chunked_array(
        [TEXTS[:3_000].dictionary_encode(), TEXTS[3_000:].dictionary_encode()]
    ),
}
ADDRESSINGS = {
    "levelled": Levelled(4, CELLS // 4, KEY),
    "hashed": Hashed(CELLS, KEY),
    "sampled": Sampled(50_000, CELLS, KEY),
}


@pytest.fixture
def begun(monkeypatch):
    """A thread takes a hundred rows, on a machine of three cores; what threads were begun."""
    found, start = [], threading.Thread.start

    def noted(thread):
        found.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    monkeypatch.setattr(addressing, "THREAD_ROWS", 100)
    monkeypatch.setattr(addressing, "cores", lambda: 3)
    return found


def marked(one, users):
    touched = np.zeros(-(-CELLS // 64), np.uint64)
    CellBatch(one, read_ids(users)).mark(touched)
    return np.flatnonzero(np.unpackbits(touched.view(np.uint8), bitorder="little"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in ADDRESSINGS
        for kind in BATCHES
        if name != "sampled" or kind in ("numbers", "chunks")
    ],
)
def test_the_cells_of_a_batch_are_the_same_for_any_number_of_threads(
    name, kind, begun, monkeypatch
):
    one, users = ADDRESSINGS[name], BATCHES[kind]
    slots = np.concatenate(list(one.slots(read_ids(users))))
    expected = np.unique(slots[slots >= 0]).tolist()
    assert 0 < len(expected) < CELLS
    for number in (1, 2, 3, 7):
        monkeypatch.setattr(addressing, "cores", lambda: number)  # noqa: B023
        begun.clear()
        assert marked(one, users).tolist() == expected
        assert len(begun) == number - 1


@pytest.mark.parametrize(
    "make",
    [
        lambda coins: pp.DistinctCount(epsilon=1, expected=(10, 10_000), memory=512, coins=coins),
        lambda coins: pp.Density(universe=50_000, cells=1_000, epsilon=1, coins=coins),
    ],
    ids=["distinct", "density"],
)
def test_each_outcome_of_the_coins_gives_the_same_state(make, begun, monkeypatch):
    """So the law of the state is that of one thread, for which the exact audit walks it."""
    states = set()
    for number in (1, 2, 3):
        monkeypatch.setattr(addressing, "cores", lambda: number)  # noqa: B023
        statistic = make(SeededCoins(1))
        statistic.update(NUMBERS)
        statistic.update(NUMBERS[:300] + 7)
        states.add(statistic.state())
    assert len(states) == 1
    assert begun


def test_rows_in_order_decide_where_users_leave(begun):
    """The last delta of a cell decides, so those batches stay in one thread."""
    statistic = pp.Density(universe=50_000, epsilon=20)
    statistic.update(np.repeat(NUMBERS, 2), np.tile([-1, 1], ROWS))
    assert not begun


def test_a_thread_takes_no_fewer_rows_than_a_bitmap_has_words(begun):
    one = Hashed(64 * 2_000, KEY)
    CellBatch(one, read_ids(NUMBERS)).mark(np.zeros(2_000, np.uint64))
    assert len(begun) == 1


def test_bitmaps_and_stacks_are_overwritten(begun, monkeypatch):
    bitmaps, wiped, mark = [], [], Levelled.mark

    def noted(one, batch, touched):
        mark(one, batch, touched)
        bitmaps.append(touched)
        assert touched.any()

    monkeypatch.setattr(Levelled, "mark", noted)
    monkeypatch.setattr(threads, "wipe_stack", lambda: wiped.append(threading.current_thread()))
    pp.DistinctCount(epsilon=1, expected=1_000).update(NUMBERS)
    assert len(bitmaps) == 3
    assert not any(one.any() for one in bitmaps)
    assert {*wiped} == {*begun}
    assert len(wiped) == 2


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_a_thread_raises_is_raised_once_all_have_ended(place, begun, monkeypatch):
    mark, calls = Levelled.mark, []

    def fails(one, batch, touched):
        calls.append(touched)
        mark(one, batch, touched)
        if batch[0].values[0] == NUMBERS[place * ROWS // 3]:
            message = "no memory"
            raise MemoryError(message)

    statistic = pp.DistinctCount(epsilon=1, expected=1_000)
    before = statistic.state()
    monkeypatch.setattr(Levelled, "mark", fails)
    with pytest.raises(MemoryError, match="no memory"):
        statistic.update(NUMBERS)
    assert len(calls) == 3
    assert not any(one.any() for one in calls)
    assert not any(thread.is_alive() for thread in begun)
    assert statistic.state() == before


def test_where_no_thread_can_be_started_one_does_it_all(monkeypatch):
    def refuses(_thread):
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuses)
    done = []
    side_by_side([lambda: done.append(1), lambda: done.append(2)])
    assert sorted(done) == [1, 2]


def test_threads_are_not_numbered():
    """The next number would tell how many large batches there have been."""
    before = repr(threading._counter)
    side_by_side([lambda: None] * 3)
    assert repr(threading._counter) == before


def test_only_the_cores_that_the_process_may_use_count(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {3, 5})
    assert cores() == 2
