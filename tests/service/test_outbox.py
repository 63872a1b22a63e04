"""What was released and waits: it leaves once, in order, and nothing is lost on the way."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from panprivacy.errors import PanPrivacyError
from panprivacy.service.outgoing.outbox import PLACES, Outbox, settled
from panprivacy.service.outgoing.payment import Payment, entries
from panprivacy.service.outgoing.pending import Pending, PendingSlot
from panprivacy.service.outgoing.records import Moment, StoreError
from panprivacy.service.outgoing.results import published
from tests.service.test_stream import planned

BEGAN, ENDS = (datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (9, 10))
COUNTING = planned(releases=9).make_counting()


def release(number, payer=None, sealed=None):
    """A release of the first window, with a payer of its own."""
    lines = entries("visits", BEGAN, ENDS, number, payer or f"{number:016x}", (Fraction(1),) * 2)
    moment = Moment("visits", BEGAN, ENDS, number, complete=True, released=BEGAN)
    return Pending(
        lines,
        published(COUNTING.internals.releasing.lost(), COUNTING, 0.95, moment),
        number,
        sealed,
    )


class Folder:
    """A folder of contributions that fails where a test says."""

    def __init__(self):
        self.log, self.error = [], None

    def write(self, began, sealed):
        if self.error is not None:
            raise self.error
        self.log.append((began, sealed))


@pytest.fixture
def folder():
    return Folder()


@pytest.fixture
def make(store):
    """Makes an outbox; what it settled is in its list `settled`."""

    def made(*, durable=False, folder=None, room=20, now=lambda: ENDS):
        told = []
        place = PendingSlot("visits", COUNTING, 0.95, 0 if folder is None else room)
        outbox = Outbox(
            *(
                store,
                Payment("visits", store, COUNTING.guarantee),
                place,
                folder,
                now,
                told.append,
            ),
            durable=durable,
        )
        outbox.settled = told
        return outbox

    return made


def numbers(store):
    """Of the releases that are published, and those that are paid for."""
    shown = sorted({row.number for row in store.answers()})
    return shown, [line.number for line in store.ledger()]


def test_answers_leave_once_and_in_order_with_their_lines(make, store):
    outbox = make()
    outbox.send()
    for number in (1, 2):
        outbox.put(release(number))
    assert numbers(store) == ([], [])
    outbox.send()
    outbox.send()
    assert store.log == [("settle", 1), ("settle", 2)]
    assert numbers(store) == ([1, 2], [0, 1, 2])
    assert {row.released for row in store.answers()} == {ENDS}, "when it left"
    assert outbox.settled == [True, True]


def test_all_answers_of_a_release_have_one_moment(make, store):
    clock = itertools.count()
    outbox = make(now=lambda: ENDS + timedelta(microseconds=next(clock)))
    for number in (1, 2):
        outbox.put(release(number))
    outbox.send()
    rows = store.answers()
    moments = {number: {row.released for row in rows if row.number == number} for number in (1, 2)}
    assert len(rows) > 2
    assert [len(one) for one in moments.values()] == [1, 1]
    assert moments[1] != moments[2]


@pytest.mark.parametrize("place", ["before settle", "after settle"])
def test_what_the_store_does_not_take_waits_until_it_does(make, store, place):
    outbox = make()
    outbox.put(release(1))
    outbox.put(release(2))
    store.fail(place, times=1)
    with pytest.raises(StoreError, match="the disk is full"):
        outbox.send()
    assert outbox.waits
    outbox.send()
    assert numbers(store) == ([1, 2], [0, 1, 2])
    assert not outbox.waits


def test_a_release_of_which_another_has_the_line_is_lost_and_keeps_no_other_waiting(make, store):
    store.settle(release(1, "f" * 16).lines, ())
    outbox, one = make(), release(1)
    outbox.put(one)
    outbox.put(release(2))
    outbox.send()
    assert numbers(store) == ([2], [0, 1, 2])
    assert outbox.settled == [False, True]
    assert one.outcome is False


# Checkpoints


def test_a_release_waits_for_the_checkpoint_that_has_it(make, store):
    outbox = make(durable=True)
    outbox.put(release(1))
    outbox.packed()
    outbox.put(release(2))
    outbox.mark_stored()
    assert outbox.unkept
    outbox.send()
    assert numbers(store) == ([1], [0, 1])
    outbox.packed()
    outbox.mark_stored()
    assert not outbox.unkept
    outbox.send()
    assert numbers(store) == ([1, 2], [0, 1, 2])


def test_without_checkpoints_nothing_waits_for_one(make):
    outbox = make()
    outbox.put(release(1))
    assert not outbox.unkept


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_who_goes_on_publishes_the_same_once(make, store, before):
    """However many of three had left when it crashed, also twice."""
    outbox = make(durable=True)
    for number in (1, 2, 3):
        outbox.put(release(number))
    packed = outbox.packed()
    outbox.mark_stored()
    for _ in range(before):
        outbox.send()
    for _ in range(2):
        after = make(durable=True)
        after.go_on_from(after.unpacked(packed, COUNTING))
        assert not after.unkept, "a file has them"
        after.send()
        assert numbers(store) == ([1, 2, 3], [0, 1, 2, 3])
        assert after.settled == [True] * 3


def test_its_size_is_one_however_many_wait(make):
    outbox = make()
    for number in range(1, PLACES + 1):
        assert len(outbox.packed()) == outbox.state_bytes
        assert not outbox.full
        outbox.put(release(number))
    assert outbox.full
    assert len(outbox.packed()) == outbox.state_bytes


def test_a_place_is_made_by_what_can_leave(make, store):
    outbox = make(durable=True)
    for number in range(1, PLACES + 1):
        outbox.put(release(number))
    with pytest.raises(StoreError, match="4 answers wait for a checkpoint or the release store"):
        outbox.make_room()
    outbox.packed()
    outbox.mark_stored()
    store.fail("before settle")
    with pytest.raises(StoreError, match="the disk is full"):
        outbox.make_room()
    outbox.make_room()
    assert not outbox.waits


# Contributions


def test_no_answer_says_that_a_contribution_is_there_before_it_is(make, store, folder):
    outbox = make(folder=folder)
    outbox.put(release(1, sealed=b"first"))
    outbox.put(release(2, sealed=b"second"))
    folder.error = StoreError("no folder")
    with pytest.raises(StoreError, match="no folder"):
        outbox.send()
    assert numbers(store) == ([], [0, 1]), "it is paid for before it leaves"
    folder.error = None
    outbox.send()
    outbox.send()
    assert folder.log == [(BEGAN, b"first"), (BEGAN, b"second")]
    assert numbers(store) == ([1, 2], [0, 1, 2])


def test_a_contribution_whose_rows_are_there_is_not_written_again(make, store, folder):
    outbox = make(folder=folder)
    outbox.put(release(1, sealed=b"first"))
    packed = outbox.packed()
    store.fail("after settle")
    with pytest.raises(StoreError):
        outbox.send()
    after = make(folder=folder)
    after.go_on_from(after.unpacked(packed, COUNTING))
    after.send()
    assert folder.log == [(BEGAN, b"first")]


def test_a_contribution_of_which_another_has_the_line_is_not_written(make, store, folder):
    store.settle(release(1, "f" * 16).lines, ())
    outbox = make(folder=folder)
    outbox.put(release(1, sealed=b"first"))
    outbox.send()
    assert folder.log == []
    assert outbox.settled == [False]


# Refusals


def test_a_release_that_does_not_fit_is_refused(make, folder):
    outbox = make(folder=folder, room=3)
    with pytest.raises(PanPrivacyError, match="longer than its plan says"):
        outbox.put(release(1, sealed=b"four"))
    assert not outbox.waits


def test_what_the_store_refuses_is_told_and_keeps_no_other_waiting(store, caplog):
    one = release(1)
    assert settled(Payment("visits", store, COUNTING.guarantee), one.lines, [one.rows[0]] * 2)
    assert "an answer is not published" in caplog.text
    assert "visits" in caplog.text
    assert numbers(store) == ([], [])


def test_a_store_that_fails_is_no_refusal(store, caplog):
    store.fail("before settle")
    one = release(1)
    with pytest.raises(StoreError):
        settled(Payment("visits", store, COUNTING.guarantee), one.lines, one.rows)
    assert caplog.text == ""
