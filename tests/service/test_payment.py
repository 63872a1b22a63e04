"""What is paid before a release leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from panprivacy.service.outgoing.payment import Payment
from panprivacy.service.outgoing.records import Entry, StoreError
from tests.service.doubles import HOUR, START
from tests.service.test_stream import batch, make, planned, published


def test_a_line_that_another_service_pays_in_between_is_not_ours(store, clock, monkeypatch):
    stream = make(store, clock)
    clock.now += HOUR
    began = stream.windows.windowed.began
    store.spend([Entry("visits", began, None, 1, Fraction(1))])
    monkeypatch.setattr(store, "released", lambda *_: 0)
    stream.advance()
    assert published(store) == []
    assert not stream.windows.windowed.due


@pytest.mark.parametrize("hours", [(0, 1), (1, 0)])
def test_what_failed_for_one_window_does_not_pay_for_another(hours, store):
    counting = planned().make_counting()
    payment = Payment("visits", store, counting.guarantee)
    failed, made = (datetime.fromtimestamp(START + hour * HOUR, UTC) for hour in hours)
    store.fail("before spend")
    with pytest.raises(StoreError):
        payment.make(failed, failed + timedelta(hours=1), counting.internals.releasing, 1)
    assert payment.make(made, made + timedelta(hours=1), counting.internals.releasing, 1)
    assert {line.start for line in store.ledger()} == {made}


def test_a_line_that_was_paid_is_not_asked_for_again(store, clock, monkeypatch):
    stream = make(store, clock)
    stream.take(batch(1))
    clock.now += HOUR
    reads, released = [], store.released

    def once(*arguments):
        reads.append(arguments)
        if len(reads) > 1:
            message = "it is gone"
            raise StoreError(message)
        return released(*arguments)

    monkeypatch.setattr(store, "released", once)
    stream.advance()
    assert published(store) == [("09:00", 1, True, 1)]
