"""States of a stream: what they say, and which are refused."""

from __future__ import annotations

from contextlib import closing

import pytest

from panprivacy.errors import InputError
from tests.service.doubles import START, Store
from tests.service.test_stream import batch, forget, make, restarted


def test_a_restored_state_says_how_old_it_is(store, clock):
    stream = make(store, clock, durable=True)
    assert stream.described()["missing_from"] is None
    clock.now += 600
    stream.state(), stream.mark_stored()
    clock.now += 1
    state = stream.state()
    clock.now += 900
    after = restarted(state, store, clock, durable=True)
    assert after.state() == state
    written, now = after.states.missing
    assert (written.timestamp(), now.timestamp()) == (START + 600, START + 1501)
    described = after.described()
    assert described["missing_from"] == "2026-11-16T09:10:00+00:00"
    assert described["missing_to"] == "2026-11-16T09:25:01+00:00"


def test_a_state_that_does_not_fit_changes_nothing(store, clock):
    stream, other = make(store, clock), make(store, clock, retries=7)
    stream.take(batch(1), b"a")
    before = stream.state()
    for state, reason in (
        (other.state(), "batch_ids"),
        (before[:-1], "cut off"),
        (b"", "no state"),
    ):
        for attempt in (stream.check_state, stream.resume, stream.states.released_in):
            with pytest.raises(InputError, match=reason):
                attempt(state)
    assert stream.state() == before


def test_what_is_missing_ends_after_it_begins_although_the_clock_was_ahead(store, clock):
    stream = make(store, clock, durable=True)
    stream.state()
    clock.now += 1_000
    stream.mark_stored()
    clock.now -= 1_000
    state = stream.state()
    again = make(store, clock, durable=True)
    again.resume(state, released=again.states.released_in(state))
    assert again.states.missing[0] <= again.states.missing[1]


def test_a_checkpoint_is_refused_where_the_ledger_has_not_what_was_paid_before(store, clock):
    stream = make(store, clock, releases=3)
    for _ in range(2):
        stream.release()
        state = stream.state()
    after = make(store, clock, releases=3)
    assert after.states.released_in(state) == 2
    forget(store, number=2)
    with pytest.raises(InputError, match=r"stream visits had paid .*: put the store back"):
        after.states.released_in(state)
    after.take(batch(1))
    assert after.begun() == 1


def test_a_checkpoint_is_refused_beside_another_store_also_before_anything_was_paid(
    store, clock, tmp_path
):
    state = make(store, clock).state()
    with closing(Store(f"sqlite:///{tmp_path}/other.db")) as other:
        for refusing in (make(other, clock), make(other, clock)):
            with pytest.raises(InputError, match="spent twice: put the store back as it was"):
                refusing.states.released_in(state)
    restarted(state, store, clock)


def test_what_was_paid_is_known_over_several_restarts(store, clock):
    stream = make(store, clock, releases=3)
    stream.release()
    again = restarted(restarted(stream, store, clock, releases=3), store, clock, releases=3)
    assert again.state() == stream.state()
    forget(store)
    with pytest.raises(InputError, match="put the store back"):
        make(store, clock, releases=3).states.released_in(again.state())
