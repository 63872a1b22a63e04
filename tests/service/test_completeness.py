"""Which windows are complete, and for how long that is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from panprivacy.service.completeness import Completeness


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
