"""What was released and waits: it leaves once, in order, and nothing is lost on the way."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from panprivacy.errors import PanPrivacyError
from panprivacy.service.outgoing.outbox import Outbox, publish
from panprivacy.service.outgoing.records import StoreError

EARLY, LATE = (datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (9, 10))
FULL = StoreError("the disk is full")


class Place:
    """A store, and a folder of contributions, that fail where a test says."""

    def __init__(self):
        self.log, self.error = [], None

    def publish(self, answers):
        self._take(answers)

    def write(self, began, sealed):
        self._take((began, sealed))

    def _take(self, what):
        if self.error is not None:
            raise self.error
        self.log.append(what)


@pytest.fixture
def place():
    return Place()


@pytest.fixture
def folder():
    return Place()


def test_answers_leave_once_and_in_order(place):
    outbox = Outbox("visits", place, None)
    outbox.send()
    outbox.put(["first"])
    outbox.put(["second"])
    assert place.log == []
    outbox.send()
    outbox.send()
    assert place.log == [["first"], ["second"]]


def test_what_the_store_does_not_take_waits_until_it_does(place):
    outbox = Outbox("visits", place, None)
    outbox.put(["first"])
    outbox.put(["second"])
    place.error = FULL
    for _ in range(2):
        with pytest.raises(StoreError, match="the disk is full"):
            outbox.send()
    place.error = None
    outbox.send()
    assert place.log == [["first"], ["second"]]


def test_no_answer_says_that_a_contribution_is_there_before_it_is(place, folder):
    outbox = Outbox("visits", place, folder)
    outbox.put(["row of the first"])
    for began, sealed in ((EARLY, b"first"), (LATE, b"second")):
        outbox.put_sealed(began, sealed)
    folder.error = FULL
    with pytest.raises(StoreError):
        outbox.send()
    assert place.log == []
    folder.error = None
    outbox.send()
    outbox.send()
    assert folder.log == [(EARLY, b"first"), (LATE, b"second")]
    assert place.log == [["row of the first"]]


def test_a_contribution_is_written_once_though_the_store_fails(place, folder):
    outbox = Outbox("visits", place, folder)
    outbox.put_sealed(EARLY, b"first")
    outbox.put(["row"])
    place.error = FULL
    with pytest.raises(StoreError):
        outbox.send()
    place.error = None
    outbox.send()
    assert folder.log == [(EARLY, b"first")]
    assert place.log == [["row"]]


def test_answers_that_are_there_already_are_told_and_keep_no_others_waiting(place, caplog):
    outbox = Outbox("visits", place, None)
    outbox.put(["there"])
    place.error = PanPrivacyError("an answer is published once")
    outbox.send()
    place.error = None
    outbox.put(["next"])
    outbox.send()
    assert place.log == [["next"]]
    assert "an answer is published once" in caplog.text
    assert "visits" in caplog.text


def test_a_store_that_fails_is_no_answer_that_is_there(place, caplog):
    place.error = FULL
    with pytest.raises(StoreError):
        publish(place, "visits", ["row"])
    assert caplog.text == ""
