"""The releases of a stream: each is paid for, then leaves, and is told if it is lost.

What they do within a stream, and where it crashes, is in `test_stream`.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from panprivacy.errors import BudgetError
from panprivacy.service.outgoing.pending import costs
from panprivacy.service.outgoing.records import Entry, StoreError
from panprivacy.service.releases import PAID, Releases
from tests.service.doubles import HOUR, START
from tests.service.test_stream import batch, paid, planned, published


@pytest.fixture
def make(store, clock, tmp_path):
    """Begins the releases of a stream."""

    def made(**given):
        config = planned(**given)
        found = Releases("visits", config, store, tmp_path, lambda: 0.0, clock, durable=False)
        found.begin()
        return found

    return made


def count(releases, *users):
    for each in batch(*users):
        releases.windowed.update(each["user"])


def end(releases):
    """The end of the current window, as a stream has it."""
    releases.make_room()
    releases.completeness.end(releases.windowed.began)
    releases.windowed.advance_once()
    releases.collect()
    releases.begin_window()
    releases.outbox.send()


def make_one(releases):
    """A release within the window, which leaves at once."""
    one = releases.make()
    releases.outbox.send()
    return one


def test_a_release_is_paid_and_then_left_and_the_last_is_kept_for_the_end(make, store, clock):
    releases = make(releases=3)
    count(releases, 1, 2)
    assert [releases.number(releases.windowed.current), releases.left()] == [1, 3]
    assert make_one(releases).outcome
    assert [releases.number(releases.windowed.current), releases.left()] == [2, 2]
    assert store.log == [("settle", 1)]
    clock.now += HOUR
    end(releases)
    assert paid(store) == [0, 1, 2]
    assert published(store) == [("09:00", 1, False, 2), ("09:00", 2, True, 2)]
    assert [releases.number(releases.windowed.current), releases.left()] == [1, 3]


def test_what_another_has_paid_is_not_released_and_told_once(make, store, caplog):
    releases = make(releases=5)
    began = releases.windowed.began
    store.spend([Entry("visits", began, None, number, Fraction(1)) for number in (0, 1)])
    for _ in range(2):
        with pytest.raises(BudgetError, match="in the ledger already"):
            releases.make()
    assert caplog.text.count(PAID) == 1
    assert published(store) == []


def test_an_answer_that_cannot_be_published_is_published_next_time(make, store):
    releases = make()
    count(releases, 1)
    store.fail("before settle")
    with pytest.raises(StoreError):
        make_one(releases)
    assert published(store) == []
    releases.outbox.send()
    releases.outbox.send()
    assert published(store) == [("09:00", 1, False, 1)]


def test_a_window_without_a_place_for_its_answer_pays_for_nothing_and_is_lost(
    make, store, clock, caplog
):
    releases = make(releases=9)
    store.fail("before settle", times=99)
    for _ in range(4):
        releases.make()
    clock.now += HOUR
    with pytest.raises(StoreError, match="disk is full"):
        releases.make_room()
    releases.windowed.advance_once()
    releases.collect()
    assert paid(store) == []
    assert "the answer of a window is lost" in caplog.text
    store.fails.clear()
    releases.outbox.send()
    assert [row[1] for row in published(store)] == [1, 2, 3, 4]


def test_a_price_is_that_of_the_release_of_that_place(make, store):
    releases = make(releases=3)
    counting = releases.windowed.current
    for place in (1, 2, 3):
        assert costs(counting, place) == (
            counting.internals.releasing.state_epsilon,
            counting.internals.releasing.release_epsilon,
        )
        releases.make()
    releases.outbox.send()
    assert sum(line.epsilon for line in store.ledger()) == counting.guarantee.epsilon


def test_what_goes_wrong_in_a_release_is_told_without_its_words(
    make, store, clock, caplog, monkeypatch
):
    releases = make()
    clock.now += HOUR

    def fails(*_, **__):
        raise ValueError("7 users")

    monkeypatch.setattr(type(releases.windowed.current), "release", fails)
    end(releases)
    assert "failed with ValueError" in caplog.text
    assert "7 users" not in caplog.text
    assert published(store) == []


@pytest.mark.parametrize(("every", "due"), [(None, float("inf")), ("20m", START + 1_200)])
def test_a_release_is_due_where_there_is_a_schedule(make, every, due):
    given = {} if every is None else {"every": every}
    assert make(releases=3, **given).scheduled() == due


def test_a_release_that_is_put_off_is_due_at_the_next_time(make, clock):
    releases = make(releases=3, every="20m")
    clock.now += 1_300
    assert releases.scheduled() == START + 1_200
    releases.put_off()
    assert releases.scheduled() == START + 2_400


def test_the_last_release_of_a_window_is_due_at_no_time_within_it(make, clock):
    releases = make(releases=3, every="20m")
    for _ in range(2):
        clock.now += 1_200
        make_one(releases)
    assert releases.left() == 1
    assert releases.scheduled() == float("inf")


def test_a_window_that_was_answered_before_is_not_answered_again(make, store, clock):
    first = make()
    clock.now += HOUR
    end(first)
    clock.now -= HOUR
    again = make()
    clock.now += HOUR + 1
    again.begin()
    before = paid(store)
    end(again)
    assert paid(store) == before
    assert published(store) == [("09:00", 1, True, 0)]


def test_a_window_that_was_begun_before_is_numbered_on(make, store, clock):
    first, again = make(releases=3), make(releases=3)
    clock.now += HOUR
    end(first)
    make_one(first)
    clock.now += 60
    again.begin()
    again.windowed.advance_once()
    again.begin_window()
    assert again.windowed.began.timestamp() == START + HOUR
    assert again.number(again.windowed.current) == 2
    assert make_one(again)
    assert [row[1] for row in published(store) if row[0] == "10:00"] == [1, 2]
