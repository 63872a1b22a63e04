"""Which windows are complete, and for how long that is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from panprivacy.service import stream_windows as streams
from panprivacy.service.completeness import Completeness
from panprivacy.service.outgoing.outbox import PLACES
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.stream import Stream
from tests.service.doubles import HOUR, START
from tests.service.test_stream import batch, make, paid, planned, published, restarted


def at(second):
    return datetime.fromtimestamp(second, UTC)


@pytest.fixture
def broken():
    """When the process stood still last, in a list of one."""
    return [0.0]


@pytest.fixture
def made(broken):
    return Completeness(lambda: broken[0], at(100))


def ended(made, second):
    """Whether a window is complete that began then and has ended."""
    made.end(at(second))
    return made.holds(at(second))


def test_a_window_is_complete_that_began_once_it_was_counted(made):
    assert not ended(made, 99)
    assert ended(made, 100)
    assert ended(made, 101)


def test_what_is_counted_from_now_on_makes_windows_of_before_not_complete(made):
    made.begin(at(200))
    assert not ended(made, 199)
    assert ended(made, 200)


def test_a_window_in_which_the_process_stood_still_is_not_complete(made, broken):
    made.note_what_broke(at(110))
    assert made.holds(at(110))
    broken[0] = 150.0
    made.note_what_broke(at(120))
    assert not made.holds(at(120))
    assert not ended(made, 149)
    assert ended(made, 150)


def test_what_broke_once_is_noted_once(made, broken):
    broken[0] = 150.0
    made.note_what_broke(at(120))
    made.note_what_broke(at(160))
    assert made.holds(at(160))


def test_what_broke_before_it_was_made_is_no_news(broken):
    broken[0] = 50.0
    made = Completeness(lambda: broken[0], at(10))
    made.note_what_broke(at(20))
    assert ended(made, 20)


def test_a_clock_that_was_ahead_leaves_later_windows_complete(made, broken):
    made.begin(at(900))
    broken[0] = 150.0  # it was set back
    made.note_what_broke(at(900))
    assert not made.holds(at(900))
    assert ended(made, 160)


def test_one_that_lacks_what_came_is_not_complete_and_no_other_is(made):
    made.spoil(at(110))
    assert not made.holds(at(110))
    assert made.holds(at(120))


def test_once_its_answers_have_left_nothing_is_known_of_a_window(made):
    made.spoil(at(110))
    assert made.leave(at(110)) is False
    assert made.holds(at(110))
    assert made.leave(at(120)) is True


# Of a stream


@pytest.fixture
def patience(monkeypatch):
    """However busy the machine is, all windows that have passed are closed in one step."""
    monkeypatch.setattr(streams, "_STEP_SECONDS", 600.0)


@pytest.mark.usefixtures("patience")
def test_a_window_in_which_it_stood_still_is_not_complete(store, clock):
    broken = [0.0]
    stream = Stream("visits", planned(), store, broken=lambda: broken[0], clock=clock)
    for hour in range(5):
        if hour == 1:
            clock.now += HOUR / 2
            broken[0] = clock.now
            stream.take(batch(1))
            clock.now += HOUR / 2
        elif hour == 2:  # through the end of this one, and all of the next
            clock.now += 2 * HOUR
            broken[0] = clock.now + 1
        else:
            clock.now += HOUR
        stream.advance()
    complete = {start: complete for start, _, complete, _ in published(store)}
    assert complete == {
        "09:00": True,
        "10:00": False,
        "11:00": False,
        "12:00": False,
        "13:00": False,
        "14:00": True,
    }


@pytest.mark.usefixtures("patience")
def test_a_pause_while_a_place_is_made_is_noticed(store, clock):
    """A suspended laptop stands still anywhere, and later windows have passed when it goes on."""
    broken = [0.0]
    stream = Stream("visits", planned(), store, broken=lambda: broken[0], clock=clock)
    settle = store.settle

    def suspended(*release):
        store.settle = settle
        clock.now += 2 * HOUR + 60
        broken[0] = clock.now
        return settle(*release)

    store.fail("before settle", times=PLACES)
    for _ in range(PLACES):
        clock.now += HOUR
        with pytest.raises(StoreError):
            stream.advance()
    store.settle = suspended
    clock.now += HOUR
    stream.advance()
    clock.now += 2 * HOUR
    stream.advance()
    assert {start: complete for start, _, complete, _ in published(store)} == {
        **{f"{hour:02}:00": True for hour in range(9, 13)},
        **{f"{hour:02}:00": False for hour in range(13, 17)},
        "17:00": True,
    }


@pytest.mark.usefixtures("patience")
def test_after_a_clock_that_was_ahead_windows_are_complete_again(store, clock):
    broken = [0.0]
    clock.now += 50 * HOUR
    stream = Stream("visits", planned(), store, broken=lambda: broken[0], clock=clock)
    stream.begin()
    clock.now += 60
    stream.advance()
    clock.now -= 50 * HOUR
    broken[0] = clock.now
    stream.advance()
    for _ in range(53):
        clock.now += HOUR
        stream.advance()
    assert [complete for *_, complete, _ in published(store)][-2:] == [True, True]


@pytest.mark.usefixtures("patience")
def test_a_window_that_began_before_anything_was_taken_in_is_not_complete(store, clock):
    """To compile and to plan takes a while, in which nobody could send anything."""
    stream = make(store, clock)
    clock.now += 2 * HOUR + 60
    stream.begin()
    clock.now += 2 * HOUR
    stream.advance()
    assert {start: complete for start, _, complete, _ in published(store)} == {
        "09:00": False,
        "10:00": False,
        "11:00": False,
        "12:00": True,
    }


@pytest.mark.usefixtures("patience")
def test_a_window_that_was_begun_late_is_not_complete(store, clock):
    clock.now += 1
    stream = make(store, clock)
    clock.now = START + HOUR
    stream.advance()
    assert published(store) == [("09:00", 1, False, 0)]


@pytest.mark.usefixtures("patience")
def test_windows_that_passed_while_it_was_down_are_not_complete(store, clock):
    stream = make(store, clock)
    stream.take(batch(1, 2))
    state = stream.state()
    clock.now += 4.5 * HOUR
    restarted(state, store, clock).advance()
    assert published(store) == [
        ("09:00", 1, False, 2),
        ("10:00", 1, False, 0),
        ("11:00", 1, False, 0),
        ("12:00", 1, False, 0),
    ]
    assert paid(store) == [0, 1] * 4


@pytest.mark.usefixtures("patience")
def test_a_window_that_began_while_nobody_counted_is_not_complete(store, clock):
    state, after = make(store, clock).state(), make(store, clock)
    clock.now += HOUR + 600
    after.resume(state, released=after.states.released_in(state))
    after.advance()
    clock.now += 2 * HOUR
    after.advance()
    found = {start: complete for start, _, complete, _ in published(store)}
    assert found == {"09:00": False, "10:00": False, "11:00": True}
