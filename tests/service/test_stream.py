"""A stream: paid before it is released, counted once, and never stuck."""

from __future__ import annotations

import math
import threading
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.service import stream_windows as streams
from panprivacy.service.batches import BusyError, HalvedError, Submission
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.outgoing.outbox import PLACES as PLACES_TO_WAIT
from panprivacy.service.outgoing.records import Entry, StoreError
from panprivacy.service.outgoing.tables import ANSWERS, LEDGER
from panprivacy.service.stream import Stream
from panprivacy.statistics.incidence.decoder import SharedModel
from tests.service.doubles import HOUR, START, Crash

USERS = 4_000


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """However busy the machine is, all windows that have passed are closed in one step."""
    monkeypatch.setattr(streams, "_STEP_SECONDS", 600.0)


def planned(epsilon=200, **given):
    """So much privacy loss that counts are exact, with a probability of 1 - 1e-12."""
    named = {"window": "1h", "releases": 3, "retries": 1_000, **given}
    return StreamConfig(
        stat=({"name": "incidence", "universe": USERS, "bound": 3, "exactly": "1:3"},),
        epsilon=Fraction(epsilon),
        ids=IdKind.integers,
        **named,
    )


def make(store, clock, *, durable=False, **given):
    return Stream("visits", planned(**given), store, durable=durable, clock=clock)


def take_at_once(stream, batches, batch_id=None):
    """As `take`, for a caller who does not wait."""
    (outcome,) = stream.take_together([Submission(batches, batch_id)], wait=False)
    return outcome


def batch(*users):
    return [pa.record_batch({"user": pa.array(users, pa.int64())})]


def paid(store):
    """Number of each line of the ledger, window by window."""
    return [line.number for line in store.ledger()]


def published(store):
    """Window, number and whether complete, and how many came exactly once."""
    return [
        (row.start.strftime("%H:%M"), row.number, row.complete, round(row.value))
        for row in store.answers()
        if row.argument == 1
    ]


def restarted(stream, store, clock, **given):
    after = make(store, clock, **given)
    state = stream if isinstance(stream, bytes) else stream.state()
    after.resume(state, released=after.states.released_in(state))
    return after


def forget(store, *, number=0):
    """Lose the lines of a ledger from some number on."""
    with store._transaction(writes=True) as connection:
        for table in (ANSWERS, LEDGER):
            connection.execute(table.delete().where(table.c.number >= number))


# Paid before it is released


def test_the_end_of_a_window_is_paid_then_published(store, clock, caplog):
    stream = make(store, clock)
    stream.take(batch(1, 2, 3))
    clock.now += HOUR
    stream.advance()
    assert "answers again" not in caplog.text, "they always had"
    assert store.log == [("settle", 1)]
    assert published(store) == [("09:00", 1, True, 3)]
    costs = {line.number: line.epsilon for line in store.ledger()}
    counting = stream.windows.windowed.current
    assert costs[0] + counting.internals.releasing.planned * costs[1] == counting.guarantee.epsilon


@pytest.mark.long
def test_a_sum_and_a_threshold_have_a_row_each_and_outlive_a_restart(store, clock):
    config = StreamConfig(
        stat=(
            {"name": "cropped-sum", "universe": USERS, "tau": 2},
            {"name": "heavy-hitters", "k": 500, "total": 2_000},
        ),
        epsilon=Fraction(80),
        window="1h",
        ids=IdKind.integers,
    )
    stream = Stream("sums", config, store, clock=clock)
    stream.take(batch(*[user for user in range(100) for _ in range(20)]))
    after = Stream("sums", config, store, clock=clock)
    after.resume(stream.state(), released=0)
    clock.now += HOUR
    after.advance()
    cropped, heavy = store.answers()
    assert (cropped.statistic, heavy.statistic) == ("cropped-sum", "heavy-hitters")
    assert (cropped.question, cropped.arguments) == ("cropped_sum", "tau=2")
    assert (heavy.question, heavy.arguments) == ("heavy_hitters", "k=500")
    assert cropped.value == pytest.approx(200, abs=2)
    assert heavy.low <= heavy.value <= heavy.high
    assert heavy.value == pytest.approx(100, abs=20)


def test_a_soft_threshold_has_a_row_and_outlives_a_restart(store, clock):
    config = StreamConfig(
        stat=({"name": "threshold", "universe": USERS, "threshold": 10},),
        epsilon=Fraction(80),
        window="1h",
        ids=IdKind.integers,
    )
    stream = Stream("busy", config, store, clock=clock)
    stream.take(batch(*[user for user in range(100) for _ in range(20)], *range(200, 900)))
    after = Stream("busy", config, store, clock=clock)
    after.resume(stream.state(), released=0)
    clock.now += HOUR
    after.advance()
    (busy,) = store.answers()
    assert (busy.statistic, busy.question, busy.argument) == ("threshold", "threshold", 10)
    assert busy.value == pytest.approx(100, abs=1)


MOMENTS = {"name": "incidence", "universe": USERS, "bound": 20, "cropped_moment": "10**1,10**2"}
SUMS = [{"name": "cropped-sum", "universe": USERS, "tau": tau, "as": f"sum{tau}"} for tau in (1, 3)]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("tables", "asked"),
    [
        (
            [MOMENTS],
            {
                ("incidence", "tau=10,power=1"): 100 * 2,
                ("incidence", "tau=10,power=2"): 100 * 4,
            },
        ),
        (SUMS, {("sum1", "tau=1"): 100, ("sum3", "tau=3"): 200}),
        (
            [MOMENTS, {**MOMENTS, "as": "again"}],
            {
                (label, f"tau=10,power={power}"): 100 * 2**power
                for label in ("incidence", "again")
                for power in (1, 2)
            },
        ),
    ],
    ids=["two moments of one tau", "one statistic twice", "both"],
)
def test_each_answer_that_was_paid_for_is_published_under_a_name_of_its_own(
    store, clock, tables, asked, grouped
):
    given = {"by": "page", "groups": ("home", "help"), "per_user": 2} if grouped else {}
    config = StreamConfig(
        stat=tuple(tables),
        epsilon=Fraction(1_000),
        window="1h",
        confidence=1 - 1e-9,
        ids=IdKind.integers,
        **given,
    )
    config.check()
    stream = Stream("visits", config, store, clock=clock)
    pages = ["home", "help"] if grouped else [None]
    for page in pages:
        rows = pa.array([user for user in range(100) for _ in range(2)], pa.int64())
        columns = {"user": rows} | ({} if page is None else {"page": pa.array([page] * len(rows))})
        stream.take([pa.record_batch(columns)])
    clock.now += HOUR
    stream.advance()
    rows = store.answers()
    found = {(row.statistic, row.arguments, row.group): row for row in rows}
    assert set(found) == {(*names, page) for names in asked for page in pages}
    assert len(rows) == len(found) == len(store.latest())
    for (statistic, arguments, _), row in found.items():
        truth = asked[statistic, arguments]
        assert row.low <= truth <= row.high
        assert row.value == pytest.approx(truth, rel=0.75)  # cells collide
    assert paid(store) == [0, 1]


def test_of_several_answers_one_that_is_lost_takes_no_other_with_it(store, clock, monkeypatch):
    """All are paid for with one line: the others are published, and the lost one says so."""
    monkeypatch.setattr(SharedModel, "is_full", lambda *_: True)  # as too many users make it
    few = {"name": "incidence", "expected": 40, "bound": 2, "exactly": "1:2", "as": "often"}
    config = StreamConfig(
        stat=({"name": "distinct", "expected": 1_000}, few),
        epsilon=Fraction(100),
        window="1h",
        ids=IdKind.integers,
    )
    stream = Stream("visits", config, store, clock=clock)
    stream.take(batch(*range(USERS)))
    clock.now += HOUR
    stream.advance()
    rows = {(row.statistic, row.arguments): row for row in store.answers()}
    assert set(rows) == {("distinct", ""), ("often", "state=1"), ("often", "state=2")}
    assert rows["distinct", ""].value is not None
    for state in (1, 2):
        lost = rows["often", f"state={state}"]
        assert (lost.question, lost.argument, lost.value, lost.low, lost.high) == (
            *("exactly", state),
            *(None, None, None),
        )
        assert lost.epsilon > 0
    assert paid(store) == [0, 1]


PLACES = ["before settle", "after settle"]
RELEASES = {
    "the end": (lambda clock: setattr(clock, "now", START + HOUR), lambda one: one.advance(), {}),
    "the clock": (
        lambda clock: setattr(clock, "now", START + 600),
        lambda one: one.advance(),
        {"every": "10m"},
    ),
    "a request": (lambda clock: None, lambda one: one.release(), {}),
    "a batch": (
        lambda clock: setattr(clock, "now", START + HOUR),
        lambda one: one.take(batch()),
        {},
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", RELEASES)
def test_a_store_that_fails_once_costs_nothing(store, clock, place, way):
    """Whether the transaction was lost, or only the word that it was committed."""
    wait, release, given = RELEASES[way]
    stream = make(store, clock, **given)
    stream.take(batch(1, 2))
    wait(clock)
    store.fail(place)
    if way == "a batch":  # which does not wait for the store
        release(stream)
    else:
        with pytest.raises(StoreError):
            release(stream)
    stream.advance()
    assert paid(store) == [0, 1]
    assert published(store) == [("09:00", 1, way in {"the end", "a batch"}, 2)]


@pytest.mark.parametrize("way", ["the clock", "a request"])
def test_a_ledger_that_cannot_be_read_once_costs_nothing(store, clock, way):
    wait, release, given = RELEASES[way]
    stream = make(store, clock, **given)
    stream.take(batch(1, 2))
    wait(clock)
    store.fail("before released")
    with pytest.raises(StoreError):
        release(stream)
    release(stream)
    assert paid(store) == [0, 1]
    assert published(store) == [("09:00", 1, False, 2)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", RELEASES)
def test_a_crash_before_or_after_the_commit_pays_once_and_loses_nothing(store, clock, place, way):
    wait, release, given = RELEASES[way]
    stream = make(store, clock, **given)
    stream.take(batch(1, 2), b"a")
    state = stream.state()
    wait(clock)
    store.fail(place, error=Crash())
    with pytest.raises(Crash):
        release(stream)
    there = int(place == "after settle")
    after = restarted(state, store, clock, **given)
    assert after.described()["releases_made"] == there, "what the ledger says"
    clock.now = START + HOUR
    after.advance()
    at_end = way in {"the end", "a batch"}
    ends = [True] if at_end and there else [False]
    rows = [False] * (there and not at_end) + ends
    assert published(store) == [("09:00", n, whole, 2) for n, whole in enumerate(rows, 1)]
    assert paid(store) == [0, *range(1, len(rows) + 1)]


def test_a_crash_before_paying_costs_nothing(store, clock):
    stream = make(store, clock)
    stream.take(batch(1))
    state = stream.state()
    store.fail("before settle", error=Crash())
    with pytest.raises(Crash):
        stream.release()
    after = restarted(state, store, clock)
    after.release()
    assert paid(store) == [0, 1]
    assert published(store) == [("09:00", 1, False, 1)]


@pytest.mark.parametrize("place", PLACES)
def test_a_crash_at_the_end_of_the_last_release_loses_no_window(store, clock, caplog, place):
    stream = make(store, clock, releases=1)
    stream.take(batch(1))
    state = stream.state()
    clock.now += HOUR
    store.fail(place, error=Crash())
    with pytest.raises(Crash):
        stream.advance()
    after = restarted(state, store, clock, releases=1)
    after.advance()
    assert paid(store) == [0, 1]
    assert [row[-1] for row in published(store)] == [1]
    assert "lost" not in caplog.text
    after.take(batch(2))
    clock.now += HOUR
    after.advance()
    assert published(store)[1:] == [("10:00", 1, True, 1)]


# A store that stays away


def fill(stream, clock):
    """End as many windows as answers may wait, while the store fails."""
    for _ in range(PLACES_TO_WAIT):
        clock.now += HOUR
        with pytest.raises(StoreError):
            stream.advance()


def test_answers_wait_for_the_store_and_no_batch_does(store, clock, caplog):
    stream = make(store, clock)
    store.fail("before settle", times=1_000)
    for window in range(PLACES_TO_WAIT):
        stream.take(batch(*range(window + 1)))
        clock.now += HOUR
    assert (
        take_at_once(stream, batch()) if not stream.windows.windowed.due else stream.take(batch())
    )
    assert store.answers() == []
    store.fails.clear()
    stream.advance()
    assert [row[-1] for row in published(store)] == [1, 2, 3, 4]
    assert all(complete for _, _, complete, _ in published(store))
    assert "lost" not in caplog.text


def test_a_window_that_has_no_place_loses_its_answer_after_a_while(store, clock, caplog):
    stream = make(store, clock)
    store.fail("before settle", times=1_000)
    fill(stream, clock)
    stream.take(batch(1), b"a")
    clock.now += HOUR
    began = clock.now
    for seconds in (0, 1, 28, 0.9):
        clock.now += seconds
        with pytest.raises(StoreError):
            stream.take(batch(2), b"b")
        with pytest.raises(BusyError):
            take_at_once(stream, batch(2), b"b")
    clock.now += 0.2
    assert stream.take(batch(2), b"b")
    assert 'the answer of a window is lost stream=visits reason="the disk is full"' in caplog.text
    assert paid(store) == []
    store.fails.clear()
    clock.now = began + HOUR
    stream.advance()
    assert published(store) == [
        *((f"{hour:02}:00", 1, True, 0) for hour in range(9, 13)), ("14:00", 1, False, 1)
    ]  # fmt: skip


def test_a_window_that_is_marked_is_not_complete_and_the_next_one_is(store, clock):
    stream = make(store, clock)
    stream.mark_incomplete()
    for _ in range(2):
        clock.now += HOUR
        stream.advance()
    assert [complete for _, _, complete, _ in published(store)] == [False, True]


def test_a_window_that_kept_batches_out_is_not_complete_however_many_passed_before_it(store, clock):
    stream = make(store, clock)
    store.fail("before settle", times=1_000)
    fill(stream, clock)
    clock.now += 3 * HOUR
    for _ in range(2):
        with suppress(StoreError):
            stream.take(batch(1))
        clock.now += 31
    store.fails.clear()
    clock.now = START + 8 * HOUR
    stream.advance()
    assert published(store)[-1] == ("16:00", 1, False, 1)


# A checkpoint before the answer of a window


def test_what_a_window_released_is_counted_in_no_other_after_a_crash(store, clock):
    """The answer waits for a checkpoint that has it, and the ids of its batches."""
    stream = make(store, clock, durable=True)
    stream.take(batch(1, 2), b"a")
    keep(stream)
    stream.take(batch(3), b"b")
    clock.now += HOUR
    stream.mark_not_stored()
    stream.advance()
    assert store.log == []
    assert stream.unkept
    state = keep(stream)
    assert not stream.unkept
    stream.advance()
    assert published(store) == [("09:00", 1, True, 3)]
    after = restarted(state, store, clock, durable=True)
    assert not after.take(batch(3), b"b"), "it was in the answer"
    clock.now += HOUR
    after.advance()
    keep(after)
    after.advance()
    assert published(store) == [("09:00", 1, True, 3), ("10:00", 1, False, 0)]


@pytest.mark.parametrize("place", PLACES)
def test_wherever_it_crashes_at_the_end_of_a_window_nothing_is_counted_twice(
    store, clock, place, caplog
):
    stream = make(store, clock, durable=True)
    stream.take(batch(1, 2), b"a")
    clock.now += HOUR
    stream.advance()
    state = keep(stream)
    for _ in range(2):
        store.fail(place, error=Crash())
        with pytest.raises(Crash):
            stream.advance()
        stream = restarted(state, store, clock, durable=True)
        stream.take(batch(1, 2), b"a")
    stream.advance()
    clock.now += HOUR
    stream.advance()
    keep(stream)
    stream.advance()
    assert [(row[0], row[1], row[-1]) for row in published(store)] == [
        ("09:00", 1, 2), ("10:00", 1, 0)
    ]  # fmt: skip
    assert paid(store) == 2 * [0, 1]
    assert "lost" not in caplog.text


def test_a_release_that_waits_is_the_same_in_each_checkpoint_and_after_it(store, clock):
    """What an intruder may see of it is what everybody sees, however often it crashes."""
    stream = make(store, clock, durable=True, epsilon=1)
    stream.take(batch(*range(40)))
    clock.now += HOUR
    stream.advance()
    (before,) = {one.rows[0].value for one in stream._releases.outbox._waiting}
    state = keep(stream)
    for _ in range(3):
        stream = restarted(state, store, clock, durable=True, epsilon=1)
        state = stream.state()
    stream.advance()
    assert store.answers()[0].value == before


def test_a_checkpoint_of_before_a_release_is_not_enough(store, clock):
    """It is being written while the window ends."""
    stream = make(store, clock, durable=True)
    stream.take(batch(1))
    stream.state()
    clock.now += HOUR
    stream.advance()
    stream.mark_stored()
    assert stream.unkept
    assert store.log == []
    keep(stream)
    assert not stream.unkept


def test_windows_that_passed_together_need_one_checkpoint(store, clock):
    stream = make(store, clock, durable=True)
    stream.take(batch(1))
    clock.now += PLACES_TO_WAIT * HOUR
    stream.advance()
    keep(stream)
    stream.advance()
    assert [row[-1] for row in published(store)] == [1, 0, 0, 0]


def test_more_windows_than_may_wait_need_as_many_checkpoints_as_it_takes(store, clock, caplog):
    stream = make(store, clock, durable=True)
    stream.take(batch(1))
    clock.now += 10 * HOUR
    for waiting in (4, 4, 2):
        stream.advance()
        stream.advance()
        assert len(stream._releases.outbox._waiting) == waiting
        keep(stream)
    stream.advance()
    assert [row[-1] for row in published(store)] == [1, *9 * [0]]
    assert caplog.text == ""


@pytest.mark.parametrize("given", [{}, {"every": "20m"}])
def test_a_batch_waits_for_the_checkpoint_that_has_a_release(store, clock, given):
    """Whoever looks meanwhile sees the release, and no row that came after it."""
    stream = make(store, clock, durable=True, **given)
    stream.take(batch(1))
    clock.now += HOUR / 3 if given else HOUR
    outcomes = []
    sender = threading.Thread(target=lambda: outcomes.append(stream.take(batch(2))))
    stream.advance()
    state = stream.windows.windowed.state()
    sender.start()
    sender.join(0.05)
    with pytest.raises(BusyError):
        take_at_once(stream, batch(2))
    assert outcomes == []
    assert stream.windows.windowed.state() == state
    keep(stream)
    sender.join(60)
    assert outcomes == [True]
    stream.advance()
    clock.now += HOUR
    for _ in range(2):
        stream.advance()
        keep(stream)
    assert [row[-1] for row in published(store)][:2] == ([1, 2] if given else [1, 1])


def test_counting_goes_on_where_no_checkpoint_can_be_written(store, clock):
    stream = make(store, clock, durable=True)
    clock.now += HOUR
    stream.advance()
    with pytest.raises(BusyError):
        take_at_once(stream, batch(2))
    stream.mark_not_stored()
    assert take_at_once(stream, batch(2))


def test_a_release_on_request_waits_for_its_checkpoint_and_is_published(store, clock):
    stream = make(store, clock, durable=True)
    stream.take(batch(1))
    thread = threading.Thread(target=stream.release)
    thread.start()
    while not stream.unkept:
        thread.join(0.001)
    assert store.log == []
    keep(stream)
    thread.join(60)
    assert published(store) == [("09:00", 1, False, 1)]


def test_a_batch_waits_for_the_checkpoint_that_makes_room(store, clock):
    stream = make(store, clock, durable=True)
    clock.now += (PLACES_TO_WAIT + 1) * HOUR
    outcomes = []
    sender = threading.Thread(target=lambda: outcomes.append(stream.take(batch(2))))
    sender.start()
    sender.join(0.05)
    assert outcomes == []
    for _ in range(2):
        while not stream.unkept:
            sender.join(0.001)
        keep(stream)
        stream.publish()
    sender.join(60)
    assert outcomes == [True]


def test_a_disk_that_fails_keeps_no_answer_from_those_that_may_wait(store, clock, caplog):
    stream = make(store, clock, durable=True)
    for window in range(PLACES_TO_WAIT):
        stream.take(batch(*range(window)))
        clock.now += HOUR
        stream.advance()
        stream.mark_not_stored()
    keep(stream)
    stream.advance()
    assert [row[-1] for row in published(store)] == [0, 1, 2, 3]
    assert caplog.text == ""


def test_a_window_that_no_disk_takes_loses_its_answer_after_a_while(store, clock, caplog):
    stream = make(store, clock, durable=True)
    clock.now += PLACES_TO_WAIT * HOUR
    stream.mark_not_stored()
    stream.take(batch(1), b"a")
    clock.now += HOUR
    for seconds in (0, 29):
        clock.now += seconds
        with pytest.raises(StoreError, match="wait for a checkpoint"):
            stream.advance()
    clock.now += 2
    stream.advance()
    assert "the answer of a window is lost stream=visits" in caplog.text
    assert paid(store) == []
    assert not stream.take(batch(1), b"a"), "lost, and never counted twice"


def keep(stream):
    """Write a checkpoint, as the keeper does."""
    state = stream.state()
    stream.mark_stored()
    return state


def ended(store, clock, **given):
    """A stream whose first window was answered, and the checkpoint of its end."""
    stream = make(store, clock, durable=True, **given)
    stream.take(batch(1), b"a")
    clock.now += HOUR
    stream.advance()
    state = keep(stream)
    stream.advance()
    return stream, state


@pytest.fixture
def no_waiting(monkeypatch):
    """Nobody writes a checkpoint while a release waits for one."""
    monkeypatch.setattr(streams, "_WAIT", 0.0)


def release(stream):
    """Make a release, with the checkpoint that it waits for."""
    with pytest.raises(StoreError, match="is published after that"):
        stream.release()
    keep(stream)
    stream.advance()


@pytest.mark.usefixtures("no_waiting")
def test_a_window_whose_state_is_lost_goes_on_with_the_next_number(store, clock):
    """It goes on from an older checkpoint, and what it released is in the ledger."""
    stream, state = ended(store, clock)
    clock.now += 10
    stream.take(batch(2), b"b")
    release(stream)
    after = restarted(state, store, clock, durable=True)
    after.advance()
    assert after.take(batch(2), b"b")
    assert after.described()["releases_made"] == 1
    release(after)
    with pytest.raises(BudgetError, match="no release is left"):
        after.release()
    clock.now = START + 2 * HOUR
    after.advance()
    keep(after)
    after.advance()
    assert published(store)[1:] == [("10:00", n, False, 1) for n in (1, 2, 3)]
    assert paid(store) == [0, 1, 0, 1, 2, 3]


def test_a_window_whose_state_is_lost_keeps_its_schedule(store, clock):
    stream, state = ended(store, clock, every="10m")
    clock.now += 601
    for _ in range(2):
        stream.advance()
        keep(stream)
    after = restarted(state, store, clock, durable=True, every="10m")
    for _ in range(61):
        clock.now += 60
        after.advance()
        keep(after)
        after.advance()
    assert [row[:2] for row in published(store)][:4] == [
        ("09:00", 1), ("10:00", 1), ("10:00", 2), ("10:00", 3)
    ]  # fmt: skip


@pytest.mark.parametrize("comes", [False, True])
def test_each_end_of_a_window_needs_a_checkpoint_whether_or_not_anything_came(store, clock, comes):
    stream, _ = ended(store, clock)
    for window in range(3):
        if comes:
            stream.take(batch(), b"%d" % window)
        clock.now += HOUR
        stream.advance()
        assert stream.unkept
        keep(stream)
        stream.advance()


def test_answers_that_left_before_a_crash_are_not_called_lost(store, clock, caplog):
    """Also where it goes on from an older checkpoint than the last one."""
    stream = make(store, clock, durable=True, releases=1)
    older = keep(stream)
    clock.now += 4 * HOUR
    stream.advance()
    state = keep(stream)
    stream.advance()
    assert len(published(store)) == 4
    for one in (state, older):
        after = restarted(one, store, clock, durable=True, releases=1)
        after.advance()
        assert len(published(store)) == 4
    assert "lost" not in caplog.text


def test_a_clock_behind_the_end_of_an_answered_window_loses_no_batch_in_silence(
    store, clock, caplog
):
    stream = make(store, clock, durable=True, releases=1)
    stream.take(batch(1), b"a")
    state = keep(stream)
    clock.now += HOUR
    for _ in range(2):
        stream.advance()
        keep(stream)
    clock.now -= 600
    after = restarted(state, store, clock, durable=True, releases=1)
    after.take(batch(2, 3), b"b")  # it counts in the next window
    clock.now += 700
    for _ in range(2):
        after.advance()
        keep(after)
    assert "the clock was set back" in caplog.text
    clock.now += HOUR
    for _ in range(2):
        after.advance()
        keep(after)
    assert [round(row.value) for row in store.answers()][::3] == [1, 2]


def test_a_batch_hears_at_once_that_there_is_no_room(store, clock):
    stream = make(store, clock, durable=True)
    clock.now += (PLACES_TO_WAIT + 1) * HOUR
    outcomes = []

    def send():
        with suppress(StoreError):
            outcomes.append(stream.take(batch(2)))
        outcomes.append("told")

    sender = threading.Thread(target=send)
    sender.start()
    stream.mark_not_stored()
    sender.join(5)
    assert outcomes == ["told"]
    with pytest.raises(StoreError):
        stream.take(batch(2))


@pytest.mark.usefixtures("no_waiting")
def test_a_checkpoint_that_hangs_does_not_stop_counting_for_ever(store, clock):
    stream = make(store, clock, durable=True)
    clock.now += (PLACES_TO_WAIT + 1) * HOUR
    with pytest.raises(StoreError):
        stream.take(batch(2), b"b")
    clock.now += 31
    assert stream.take(batch(2), b"b")


def test_short_windows_go_on_without_a_disk_and_are_not_complete(store, clock):
    stream = make(store, clock, durable=True, window="20s")
    stream.take(batch(0))
    counted = 0
    for second in range(200):
        clock.now += 1
        stream.mark_not_stored()
        with suppress(StoreError):
            stream.advance()
        with suppress(BusyError):
            counted += take_at_once(stream, batch(second + 1))
    assert counted >= 150, "a quarter of each window is spent on waiting, once the places are full"
    keep(stream)
    clock.now += 20
    stream.advance()
    keep(stream)
    stream.advance()
    complete = [complete for _, _, complete, _ in published(store)]
    assert complete == [True] * PLACES_TO_WAIT + [False] * 2


def test_what_comes_while_an_answer_is_published_waits_for_the_next_window(
    store, clock, monkeypatch
):
    stream = make(store, clock)
    clock.now += HOUR
    settle = store.settle

    def slow(*release):
        clock.now = START + 2 * HOUR + 9
        return settle(*release)

    monkeypatch.setattr(store, "settle", slow)
    stream.take(batch(2), b"b")
    monkeypatch.undo()
    stream.advance()
    assert [row[-1] for row in published(store)] == [0, 1]


def test_an_error_in_the_last_release_is_called_a_lost_answer(store, clock, caplog, monkeypatch):
    stream = make(store, clock)
    clock.now += HOUR

    def fails(*_, **__):
        raise ValueError

    monkeypatch.setattr(type(stream.windows.windowed.current), "release", fails)
    stream.advance()
    assert 'lost stream=visits reason="failed with ValueError"' in caplog.text


def test_advancing_waits_for_the_checkpoint_without_a_word(store, clock):
    """The keeper may look just before the end, and advance just after it."""
    stream = make(store, clock, durable=True)
    clock.now += HOUR
    stream.advance()
    assert stream.unkept
    assert published(store) == []


def test_a_window_that_ended_while_the_service_was_down_waits_for_the_store(store, clock):
    stream = make(store, clock)
    stream.take(batch(1))
    state = stream.state()
    clock.now += 1.5 * HOUR
    after = restarted(state, store, clock)
    store.fail("before settle")
    with pytest.raises(StoreError):
        after.advance()
    clock.now += 20
    after.advance()
    assert published(store) == [("09:00", 1, False, 1)]


def test_within_a_window_batches_do_not_need_the_store(store, clock):
    stream = make(store, clock)
    store.fail("before released", times=1_000)
    store.fail("before spend", times=1_000)
    assert take_at_once(stream, batch(1))


# Schedules


def test_releases_on_a_schedule_come_in_time_and_the_last_at_the_end(store, clock):
    stream = make(store, clock, every="10m")
    for minute in range(61):
        clock.now = START + 60 * minute
        stream.take(batch(minute))
        stream.advance()
    assert published(store) == [
        ("09:00", 1, False, 11),
        ("09:00", 2, False, 21),
        ("09:00", 3, True, 60),
    ]
    with pytest.raises(PlanError, match="on a clock, every 10m"):
        stream.release()


def test_releases_that_were_due_meanwhile_are_not_made_up_for(store, clock):
    stream = make(store, clock, every="10m")
    stream.take(batch(1))
    clock.now = START + 2_000
    after = restarted(stream, store, clock, every="10m")
    after.advance()
    assert paid(store) == []
    assert after.deadline() == START + 2_400
    clock.now = START + 3_001  # it hung, and makes one for both
    after.advance()
    after.advance()
    assert paid(store) == [0, 1]
    assert after.deadline() == START + HOUR


def test_the_deadline_is_when_something_is_due(store, clock):
    stream = make(store, clock, every="10m")
    for due in (600, 1_200, HOUR):
        assert stream.deadline() == START + due
        clock.now = START + due - 0.001
        stream.advance()
        assert stream.deadline() == START + due
        clock.now = START + due
        stream.advance()
    assert stream.deadline() == START + HOUR + 600


def at(text):
    return datetime.fromisoformat(text).timestamp()


PARIS = {"window": "1d", "zone": "Europe/Paris"}
SUMMER, WINTER = at("2026-03-29T00:00:00+01:00"), at("2026-10-25T00:00:00+02:00")
"""Midnights before the clock is set, at one o'clock UTC."""


@pytest.mark.parametrize(("midnight", "hours"), [(SUMMER, 23), (WINTER, 25)])
def test_days_of_23_and_25_hours_have_their_releases_as_the_clock_shows_them(
    store, clock, midnight, hours
):
    clock.now = midnight
    stream = make(store, clock, every="6h", releases=4, **PARIS)
    assert stream.described()["zone"] == "Europe/Paris"
    for hour in range(hours + 24):
        clock.now = midnight + hour * HOUR
        stream.advance()
        stream.take(batch(hour))
    clock.now += HOUR
    stream.advance()
    rows = [row for row in store.answers() if row.argument == 1]
    shown = [row.end.astimezone(ZoneInfo("Europe/Paris")).hour for row in rows]
    assert shown == [6, 12, 18, 0] * 2
    assert [row.number for row in rows] == [1, 2, 3, 4] * 2
    assert [row.complete for row in rows] == [False, False, False, True] * 2
    first, _, third, fourth, *_, last = (round(row.value) for row in rows)
    assert (first, third, fourth, last) == (hours - 18, hours - 6, hours, 24)


@pytest.mark.long
@pytest.mark.parametrize(("midnight", "hours"), [(SUMMER, 23), (WINTER, 25)])
def test_of_an_answer_each_hour_a_short_day_has_one_less(store, clock, midnight, hours):
    clock.now = midnight
    stream = make(store, clock, every="1h", releases=24, **PARIS)
    for hour in range(hours + 1):
        clock.now = midnight + hour * HOUR
        stream.advance()
    rows = [row for row in store.answers() if row.argument == 1]
    assert [row.number for row in rows] == [*range(1, min(hours, 24) + 1)]
    ends = [(row.end.timestamp() - midnight) / HOUR for row in rows]
    assert ends == [*range(1, min(hours, 24)), hours]


@pytest.mark.parametrize(("midnight", "hours"), [(SUMMER, 23), (WINTER, 25)])
@pytest.mark.parametrize(("left", "back"), [(1, 2), (1, 9), (9, 10)])
def test_a_day_goes_on_after_a_restart_before_and_after_the_clock_is_set(
    store, clock, midnight, hours, left, back
):
    clock.now = midnight
    stream = make(store, clock, **PARIS)
    clock.now = midnight + left * HOUR
    stream.take(batch(1, 2), b"once")
    state = stream.state()
    clock.now = midnight + back * HOUR
    after = restarted(state, store, clock, **PARIS)
    assert not after.take(batch(1, 2), b"once")
    after.take(batch(3))
    assert after.deadline() == midnight + hours * HOUR
    clock.now = midnight + hours * HOUR
    after.advance()
    (row,) = (row for row in store.answers() if row.argument == 1)
    assert (row.start.timestamp(), row.end.timestamp()) == (midnight, clock.now)
    assert (round(row.value), row.complete) == (3, False)


def test_a_checkpoint_of_another_zone_is_refused(store, clock):
    stream = make(store, clock, window="1d")
    with pytest.raises(InputError) as refused:
        restarted(stream, store, clock, **PARIS)
    assert str(refused.value) == "the state is of Windowed, with another zone"


def test_on_request_the_last_release_is_kept_for_the_end(store, clock):
    stream = make(store, clock)
    stream.release()
    stream.release()
    with pytest.raises(BudgetError, match="end of the window"):
        stream.release()
    clock.now += HOUR
    stream.advance()
    assert paid(store) == [0, 1, 2, 3]
    assert [number for _, number, *_ in published(store)] == [1, 2, 3]
    stream.release()
    assert paid(store) == [0, 1, 2, 3, 0, 1]


# Restarts


def test_a_restart_from_an_older_state_pays_for_what_was_released_since(store, clock):
    stream = make(store, clock)
    stream.take(batch(1))
    state = stream.state()
    stream.release()
    stream.release()
    after = restarted(state, store, clock)
    with pytest.raises(BudgetError, match="end of the window"):
        after.release()
    clock.now += HOUR
    after.advance()
    assert paid(store) == [0, 1, 2, 3]
    assert published(store)[-1] == ("09:00", 3, False, 1)


def test_a_window_that_ended_while_it_was_down_is_released_at_once(store, clock):
    stream = make(store, clock)
    stream.take(batch(1, 2), b"a")
    state = stream.state()
    clock.now += 1.25 * HOUR
    after = restarted(state, store, clock)
    assert not after.take(batch(1, 2), b"a")
    assert published(store) == [("09:00", 1, False, 2)]
    clock.now = START + 2 * HOUR
    after.advance()
    assert published(store)[-1] == ("10:00", 1, False, 0), "a part of it was not counted"
    clock.now = START + 3 * HOUR
    after.advance()
    assert published(store)[-1] == ("11:00", 1, True, 0)


@pytest.mark.parametrize("named", [{"released": 4}, {"announced": 1}])
def test_a_state_of_which_more_is_known_than_was_planned_is_refused(store, clock, named):
    state = make(store, clock).state()
    for attempt in (make(store, clock).check_state, make(store, clock).resume):
        with pytest.raises(PanPrivacyError):
            attempt(state, **named)


# A clock that is set


def test_a_clock_that_is_set_back_a_little_changes_nothing(store, clock):
    stream = make(store, clock)
    clock.now -= HOUR / 2
    stream.take(batch(1))
    stream.release()
    assert published(store) == [("09:00", 1, False, 1)]
    assert all(row.end >= row.start for row in store.answers())


def test_windows_never_go_back(store, clock, caplog):
    """What comes before the clock is where it was counts in the window that is open."""
    stream = make(store, clock)
    for _ in range(3):
        clock.now += HOUR
        stream.advance()
    before = published(store)
    clock.now = START - 100 * HOUR
    stream.advance()
    stream.take(batch(1))
    clock.now = START + HOUR / 2  # in the window of 9:00, again
    stream.take(batch(2))
    stream.release()
    clock.now = START + 4 * HOUR
    stream.advance()
    assert sorted(published(store)) == [*before, ("12:00", 1, False, 2), ("12:00", 2, True, 2)]
    assert all(row.end >= row.start for row in store.answers())
    assert "lost" not in caplog.text


def test_a_stream_that_begins_anew_begins_behind_its_answers(store, clock, caplog):
    stream = make(store, clock)
    clock.now += HOUR
    stream.advance()
    before = published(store)
    clock.now = START - 100 * HOUR
    for _ in range(3):  # also behind windows that were closed before the clock had come to them
        again = make(store, clock)
        again.begin()
        again.take(batch(1))
        again.close()
    assert caplog.text.count("the clock was set back") == 3
    assert sorted(published(store)) == [*before, *[("10:00", 1, False, 1)] * 3]
    assert len({row.start for row in store.answers()}) == 4


def test_windows_that_another_service_has_paid_for_are_told_once(store, clock, caplog):
    stream, other = make(store, clock), make(store, clock)
    for _ in range(3):
        clock.now += HOUR
        other.advance()
        stream.advance()
    assert caplog.text.count("the answer of a window is lost") == 1
    assert "windows have answers again" not in caplog.text
    for _ in range(2):
        clock.now += HOUR
        stream.advance()
    assert caplog.text.count("windows have answers again") == 1
    assert len(published(store)) == 5


def test_answers_of_windows_that_passed_are_in_each_state_that_others_take_meanwhile(
    store, clock, monkeypatch
):
    """A checkpoint that is written then holds a later window: a crash must not lose them."""
    monkeypatch.setattr(streams, "_STEP_SECONDS", 0.0)
    stream = make(store, clock, durable=True)
    stream.take(batch(1, 2, 3))
    clock.now += PLACES_TO_WAIT * HOUR
    for closed in range(1, PLACES_TO_WAIT + 1):
        stream.advance()
        after = restarted(stream.state(), store, clock, durable=True)
        assert len(after._releases.outbox._waiting) == closed
        assert after.windows.windowed.began.timestamp() == START + closed * HOUR
    after.advance()
    assert [row[-1] for row in published(store)] == [3, 0, 0, 0]


def test_a_disk_that_fails_is_waited_for_once_however_many_windows_pass(store, clock):
    stream = make(store, clock, durable=True)
    stream.take(batch(1))
    clock.now += 5 * HOUR
    stream.mark_not_stored()
    with pytest.raises(StoreError):
        stream.take(batch(2))
    clock.now += 31
    assert stream.take(batch(2))


def test_another_service_with_the_same_ledger_takes_nothing_away(store, clock, caplog):
    """Of two that were configured to share it by mistake, one publishes; neither stands still."""
    one, other = make(store, clock), make(store, clock)
    one.take(batch(1, 2))
    other.take(batch(3))
    clock.now += HOUR
    one.advance()
    other.advance()
    assert published(store) == [("09:00", 1, True, 2)]
    assert paid(store) == [0, 1]
    assert "the answer of a window is lost" in caplog.text
    assert take_at_once(other, batch(4))


def test_a_ledger_that_has_lost_a_line_pays_for_nothing_more(store, clock):
    stream = make(store, clock, releases=3, every="10m")
    clock.now += 600
    stream.advance()
    forget(store)
    clock.now += 600
    for _ in range(2):
        with pytest.raises(StoreError, match="lost what was paid"):
            stream.advance()
    assert paid(store) == []


# Batches


def test_of_two_services_on_one_ledger_one_releases_though_the_other_tried_first(store, clock):
    first, second = make(store, clock), make(store, clock)
    store.fail("before settle")
    with pytest.raises(StoreError):
        first.release()
    second.release()
    first.publish()
    assert paid(store) == [0, 1]
    assert len(published(store)) == 1


def test_each_of_several_windows_waits_for_the_store(store, clock):
    stream = make(store, clock)
    stream.take(batch(1))
    clock.now += 3 * HOUR
    for place in ("before settle", "after settle", "before settle"):
        store.fail(place)
        with pytest.raises(StoreError):
            stream.advance()
    stream.advance()
    assert paid(store) == 3 * [0, 1]
    assert len(published(store)) == 3


def test_windows_that_were_begun_before_are_known(store, clock):
    make(store, clock).close()
    clock.now += 60
    assert make(store, clock).begun() == 1
    clock.now += HOUR
    assert make(store, clock).begun() == 0


def test_a_batch_is_counted_once_and_whole_or_not_at_all(store, clock):
    stream = make(store, clock)
    assert stream.take(batch(1, 2), b"a")
    assert not stream.take(batch(3, 4), b"a")
    with pytest.raises(InputError):
        stream.take(batch(5, 6) + batch(7, USERS), b"b")
    assert stream.take(batch(8), b"b"), "what was refused was not counted"
    stream.close()
    assert published(store) == [("09:00", 1, False, 3)]


def test_of_what_comes_together_each_has_its_own_outcome(store, clock):
    stream = make(store, clock)
    sent = [
        Submission(batch(1, 2), b"a"), Submission(batch(3), b"a"),
        Submission(batch(4) + batch(5, USERS), b"b"), Submission([]),
        Submission(batch(6) + batch(7)), Submission(batch(8), b"b"), Submission(batch(1)),
    ]  # fmt: skip
    outcomes = stream.take_together(sent)
    assert [*outcomes[:2], *outcomes[3:]] == [True, False, True, True, True, True]
    refusal = outcomes[2]
    assert isinstance(refusal, InputError)
    assert "row 3 " in str(refusal)
    assert refusal.__traceback__ is refusal.__context__ is refusal.__cause__ is None, "holds ids"
    assert stream.take_together([]) == []
    assert stream.take_together(sent[:1]) == [False]
    stream.close()
    assert published(store) == [("09:00", 1, False, 4)], "2, 6, 7 and 8 came once"


def test_a_fault_in_one_of_several_leaves_the_others_as_they_are(store, clock):
    stream = make(store, clock)
    outcomes = stream.take_together(
        [Submission(batch(1), b"a"), Submission([None], b"b"), Submission(batch(2))]
    )
    assert [outcomes[0], outcomes[2]] == [True, True]
    assert isinstance(outcomes[1], AttributeError)
    assert stream.take_together([Submission(batch(1), b"a"), Submission(batch(3), b"b")]) == [
        False,
        True,
    ]
    stream.close()
    assert published(store) == [("09:00", 1, False, 3)]


def test_a_scheduled_release_that_is_due_keeps_no_batch_out(store, clock):
    """Another service has taken its line in the ledger."""
    stream = make(store, clock, every="20m", releases=3)
    stream.take(batch(1))
    clock.now += HOUR
    stream.advance()
    began = stream.windows.windowed.began
    store.spend([Entry(stream.name, began, began + timedelta(hours=1), 1, Fraction(1), "other")])
    clock.now += HOUR / 3 + 1
    assert stream.take(batch(2))
    stream.advance()
    assert published(store) == [("09:00", 1, True, 1)], "it is left out"


def test_batch_ids_outlive_a_window_and_a_restart(store, clock):
    stream = make(store, clock)
    stream.take(batch(1), b"a")
    clock.now += HOUR
    assert not stream.take(batch(1), b"a")
    assert not restarted(stream, store, clock).take(batch(1), b"a")


def test_ids_of_another_kind_are_refused(store, clock):
    stream = make(store, clock)
    with pytest.raises(InputError, match="whole numbers"):
        stream.take([pa.record_batch({"user": ["7"]})])


def test_who_does_not_wait_is_told_that_it_is_busy(store, clock):
    stream, held, done = make(store, clock), threading.Event(), threading.Event()

    def batches():
        held.set()
        done.wait()
        yield from batch(1)

    thread = threading.Thread(target=stream.take, args=(batches(),))
    thread.start()
    held.wait()
    try:
        with pytest.raises(BusyError):
            take_at_once(stream, batch(2), b"b")
    finally:
        done.set()
        thread.join()
    assert take_at_once(stream, batch(2), b"b"), "nothing of it was kept when it was busy"


def test_closing_releases_once_and_what_comes_later_is_a_window_of_its_own(store, clock):
    stream = make(store, clock)
    stream.take(batch(1, 2))
    clock.now += 10.5
    stream.close()
    assert published(store) == [("09:00", 1, False, 2)]
    assert paid(store) == [0, 1]


def test_the_size_of_the_state_tells_nothing(store, clock):
    stream = make(store, clock)
    sizes = {len(stream.state()), stream.state_bytes}
    for number in range(1_500):
        stream.take(batch(number), str(number).encode())
    stream.release()
    clock.now += HOUR
    stream.advance()
    assert sizes | {len(stream.state())} == {stream.state_bytes}


class Threads:
    """Threads that are all ended before a test goes on, and fail it if they fail."""

    def __init__(self):
        self._failures, self._threads, self.ended = [], [], threading.Event()

    def start(self, work, *arguments):
        thread = threading.Thread(target=self._guarded, args=(work, *arguments))
        self._threads.append(thread)
        thread.start()
        return thread

    def repeat(self, work):
        """Do something until all is ended."""

        def repeated():
            while not self.ended.is_set():
                work()

        self.start(repeated)

    def end(self):
        self.ended.set()
        for thread in self._threads:
            thread.join()
        assert not self._failures, "one of them did not come to its end"

    def _guarded(self, work, *arguments):
        self._failures.append(work)
        work(*arguments)
        self._failures.remove(work)


@pytest.mark.parametrize(
    "act", ["begin", "publish", "deadline", "advance", "mark_stored", "mark_not_stored"]
)
def test_while_one_thread_changes_it_another_waits(store, clock, act):
    stream = make(store, clock)
    thread = threading.Thread(target=getattr(stream, act))
    with stream.windows.lock:
        thread.start()
        thread.join(0.02)
        assert thread.is_alive()
    thread.join()


@pytest.mark.long
def test_from_many_threads_each_batch_is_in_one_window_and_once(store, clock):
    """Batches, retries, releases, states and the clock, all at once; every count is exact."""
    stream, threads, batches = make(store, clock, releases=50, epsilon=8_000), Threads(), 800

    def send(first):
        for number in range(first, batches, 4):
            for take in (take_at_once, Stream.take, Stream.take):
                with suppress(BusyError):
                    take(stream, batch(number), str(number).encode())

    def tick():
        clock.now += 25
        stream.advance()

    def release():
        with suppress(BudgetError):
            stream.release()

    senders = [threads.start(send, first) for first in range(4)]
    for work in (tick, stream.state, release, stream.described, stream.deadline):
        threads.repeat(work)
    for sender in senders:
        sender.join()
    threads.end()
    stream.close()
    assert totals(store) == {1: batches, 2: 0, 3: 0}
    lines = Counter((line.start, line.number) for line in store.ledger())
    assert set(lines.values()) == {1}


@pytest.mark.long
def test_every_state_lies_between_two_batches(store, clock):
    """What is in the tables is what the batch ids say, whenever a state is taken."""
    stream, threads, parts, states = make(store, clock), Threads(), 20, []

    def send():
        for first in range(0, USERS, parts):
            one_by_one = [row for user in range(parts) for row in batch(first + user)]
            stream.take(one_by_one, str(first).encode())

    sender = threads.start(send)
    threads.repeat(lambda: states.append(stream.state()))
    sender.join()
    threads.end()
    chosen = states[:: max(1, len(states) // 100)]
    seen = set()
    for state in chosen:
        after = restarted(state, store, clock)
        counts = after.windows.windowed.current.release().counts
        assert counts[1] == parts * len(after.reception.batch_ids._hashes)
        seen.add(int(counts[1]))
    assert len(seen) > 5, "the states were all taken before or after"


def totals(store):
    """How many users came so often, by the last releases of all windows together."""
    last = {
        (row.start, row.argument): round(row.value)
        for row in store.answers(limit=1_000_000)
        if row.argument in {1, 2, 3}
    }
    found = Counter({1: 0, 2: 0, 3: 0})
    for (_, state), value in last.items():
        found[state] += value
    return found


# Batch ids


def test_a_batch_of_which_a_part_was_counted_is_never_acknowledged(store, clock, monkeypatch):
    """Its name is kept before its rows are counted: it is neither counted again nor said to be."""
    stream = make(store, clock)
    counting = type(stream.windows.windowed.current.internals.memory)
    apply = counting.apply

    def half(self, *batches):
        apply(self, *batches)
        raise MemoryError

    monkeypatch.setattr(counting, "apply", half)
    with pytest.raises(HalvedError, match="memory ran out"):
        stream.take(batch(1, 2), b"name")
    monkeypatch.setattr(counting, "apply", apply)
    with pytest.raises(HalvedError, match="do not send it again"):
        stream.take(batch(1, 2), b"name")
    assert stream.take(batch(3), b"other")
    clock.now += HOUR
    stream.advance()
    assert published(store) == [("09:00", 1, False, 3)], "and the window is not complete"


@pytest.mark.parametrize("where", ["room", "rows"])
def test_without_memory_nothing_is_counted_and_the_same_batch_counts_later(
    store, clock, monkeypatch, where
):
    stream = make(store, clock)

    def fails(*_):
        raise MemoryError

    with monkeypatch.context() as tight:
        if where == "room":
            tight.setattr("panprivacy.service.batches.check_room", fails)
        else:
            tight.setattr(type(stream.windows.windowed.current.internals.memory), "prepare", fails)
        before = stream.state()
        with pytest.raises(MemoryError):
            stream.take_together([Submission(batch(1, 2), b"name"), Submission(batch(3))])
        assert stream.state() == before
    assert stream.take_together([Submission(batch(1, 2), b"name"), Submission(batch(3))]) == [
        True,
        True,
    ]
    assert not stream.take(batch(1, 2), b"name")
    clock.now += HOUR
    stream.advance()
    assert published(store) == [("09:00", 1, True, 3)]


# Windows that learn


def learning(store, clock, **given):
    stat = {"name": "distinct", "expected": "learn:100:100000", "memory": 1_024}
    config = StreamConfig(stat=(stat,), epsilon=Fraction(10), window="1h", ids=IdKind.integers)
    return Stream("visitors", config, store, clock=clock, **given)


def learned(store, clock):
    """A stream in the window after one of 5,000 visitors."""
    stream = learning(store, clock)
    stream.take(batch(*range(5_000)))
    clock.now += HOUR
    stream.advance()
    stream.take(batch(*range(4_000)))
    return stream


def test_a_window_is_planned_around_what_the_last_one_published(store, clock):
    stream = learned(store, clock)
    (row,) = store.answers()
    (expected,) = stream.windows.windowed.current.internals.windows.expects
    assert expected == (math.floor(row.low / 4), math.ceil(4 * row.high))
    assert stream.state_bytes == len(stream.state())
    assert stream.described()["state_bytes"] == stream.state_bytes


def test_a_restored_window_goes_on_as_it_was_planned(store, clock):
    stream = learned(store, clock)
    state, after = stream.state(), learning(store, clock)
    after.resume(state, released=after.states.released_in(state))
    assert after.state() == state
    assert after.state_bytes == len(state)
    clock.now += HOUR
    after.advance()
    assert store.answers()[-1].value == pytest.approx(4_000, rel=0.2)


def test_an_answer_that_is_lost_leaves_the_plan_as_it_is(store, clock):
    stream = learned(store, clock)
    before = stream.windows.windowed.current.internals.windows.expects
    began = stream.windows.windowed.began
    store.spend([Entry(stream.name, began, began + timedelta(hours=1), 1, Fraction(1), "other")])
    clock.now += HOUR
    stream.advance()
    assert stream.windows.windowed.began.timestamp() == START + 2 * HOUR
    assert stream.windows.windowed.current.internals.windows.expects == before


def test_what_a_window_learned_is_not_seen_before_its_answer_is_on_a_disk(store, clock):
    """A crash before that makes another answer, and what is seen must be of one."""
    stream = learning(store, clock, durable=True)
    stream.take(batch(*range(5_000)))
    before = stream.described()
    clock.now += HOUR
    stream.advance()
    assert stream.described() == before
    keep(stream)
    assert stream.described()["window_began"] != before["window_began"]
    stream.advance()
    assert len(store.answers()) == 1
