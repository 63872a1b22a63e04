"""A stream that counts events on from window to window: a tick each, none twice, epsilon once."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

from panprivacy.errors import InputError, PlanError
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.stream import Stream

from .doubles import HOUR, Crash, Store
from .running import Service, wait_until
from .test_stream import batch

WHO = [1, 2, 2]


def config(horizon=1_000, **given):
    return StreamConfig(
        **{
            "stat": ({"name": "running-count", "horizon": horizon},),
            "epsilon": Fraction(40), "window": "1h", "ids": IdKind.integers, **given,
        }
    )  # fmt: skip


def make(store, clock, *, durable=False, **given):
    return Stream("visits", config(**given), store, durable=durable, clock=clock)


def tick(stream, clock, events=3):
    stream.take(batch(*range(events)))
    clock.now += HOUR
    stream.advance()


def told(store):
    """Window, number and answer of each release."""
    return [(row.start.hour - 9, row.number, round(row.value)) for row in store.answers()]


def spent(store):
    return sum(line.epsilon for line in store.ledger())


def restarted(state, store, clock, **given):
    after = make(store, clock, **given)
    after.resume(state, released=after.states.released_in(state))
    return after


def test_the_end_of_each_window_is_a_tick_of_one_count(store, clock):
    stream = make(store, clock)
    for _ in range(4):
        tick(stream, clock, 100)
    assert told(store) == [
        (place, place + 1, pytest.approx(100 * (place + 1), abs=3)) for place in range(4)
    ]
    assert spent(store) == 40, "epsilon once, not for each window"
    assert [row.epsilon for row in store.answers()] == [0] * 4
    assert stream.windows.windowed.loss(24, seen=24) == 40
    assert "adding or removing one event" in stream.described()["guarantee"]


def test_groups_count_on_too(store, clock):
    stream = make(store, clock, by="page", groups=("a", "b"))
    for _ in range(2):
        stream.take([pa.record_batch({"page": ["a", "a", "b"]})])
        clock.now += HOUR
        stream.advance()
    rows = [(row.group, row.number, round(row.value)) for row in store.answers()]
    assert sorted(rows) == [("a", 1, 2), ("a", 2, 4), ("b", 1, 1), ("b", 2, 2)]
    assert spent(store) == 40


def test_it_goes_on_at_its_tick_from_a_checkpoint(store, clock):
    stream = make(store, clock)
    tick(stream, clock, 70)
    stream.take(batch(*range(30)))
    after = restarted(stream.state(), store, clock)
    tick(after, clock, 5)
    assert [number for _, number, _ in told(store)] == [1, 2]
    assert told(store)[-1][2] == pytest.approx(105, abs=3)
    assert spent(store) == 40


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("ndjson", b'{}\n{"user": "ada"}\n{"x": [1]}\n'),
        ("json", b'[{}, {"user": 7}, {"user": null}]'),
        ("csv", b"time,path\n1,/\n2,/a\n,\n"),
        ("int64", bytes(24)),
    ],
)
def test_no_user_column_is_needed(store, clock, kind, body):
    stream = make(store, clock, ids=IdKind.text)
    stream.config.check()
    assert stream.columns.wanted() == []
    stream.take(stream.columns.body_reader.read(kind, body))
    clock.now += HOUR
    stream.advance()
    assert told(store) == [(0, 1, pytest.approx(3, abs=1))]


def test_a_column_of_groups_alone_will_do(store, clock):
    stream = make(store, clock, by="page", groups=("a", "b"))
    body = b'{"page": "a"}\n{"page": "b", "user": "ada"}\n{"page": "a"}\n'
    stream.take(stream.columns.body_reader.read("ndjson", body))
    clock.now += HOUR
    stream.advance()
    assert sorted((row.group, round(row.value)) for row in store.answers()) == [("a", 2), ("b", 1)]


VISITORS = ({"name": "running-distinct", "horizon": 100, "expected": "100:10_000"},)


@pytest.mark.parametrize("behind", [False, True])
def test_different_users_are_counted_on_too(store, clock, behind):
    """From an older checkpoint the bits of that time are counted anew; no tick is made again."""
    stream = make(store, clock, stat=VISITORS)
    state = None
    for most in (200, 500, 500):
        tick(stream, clock, most)
        state = state or stream.state()
    if behind:
        stream = restarted(state, store, clock, stat=VISITORS)
    tick(stream, clock, 300)
    users = [200, 500, 500, 300 if behind else 500]
    near = [(at, at + 1, pytest.approx(truth, abs=60)) for at, truth in enumerate(users)]
    assert told(store) == near
    assert spent(store) == 40


SKETCHES = [
    ({"name": "running-cropped-sum", "tau": 2, "horizon": 100, "universe": 900}, 700, 20),
    ({"name": "running-heavy-hitters", "k": 64, "total": 12_800, "horizon": 100}, 40, 4),
]


@pytest.mark.parametrize(("stat", "truth", "near"), SKETCHES)
@pytest.mark.parametrize("behind", [False, True])
def test_sums_of_users_are_counted_on_too(store, clock, stat, truth, near, behind):
    """350 of the users come twice; or 40 have 200 events each, and 1/64 of all is 200."""
    users = [*range(350)] if "tau" in stat else [*range(40)] * 100
    stream = make(store, clock, stat=(stat,))
    for _ in range(2):
        stream.take(batch(*users))
        clock.now += HOUR
        stream.advance()
        state = stream.state()
    if behind:
        tick(stream, clock, 0)
        stream = restarted(state, store, clock, stat=(stat,))
    tick(stream, clock, 0)
    assert [number for _, number, _ in told(store)] == [1, 2, 3, 4][: 3 + behind]
    assert told(store)[-1][2] == pytest.approx(truth, abs=near)
    assert spent(store) == 40


@pytest.mark.parametrize("after_it", [1, 2])
def test_a_tick_that_left_after_the_checkpoint_is_never_made_again(store, clock, after_it):
    stream = make(store, clock)
    tick(stream, clock, 50)
    stream.take(batch(*range(30)))
    state = stream.state()
    before = [told(store)]
    for _ in range(after_it):
        tick(stream, clock, 20)
    before = told(store)
    after = restarted(state, store, clock)
    after.advance()
    assert told(store) == before
    assert after.windows.windowed.current.releases == 1 + after_it
    tick(after, clock, 8)
    assert told(store)[:-1] == before
    assert told(store)[-1][1:] == (2 + after_it, pytest.approx(58, abs=4))
    lines = [(line.start, line.number) for line in store.ledger()]
    assert len(set(lines)) == len(lines)
    assert spent(store) == 40


@pytest.mark.parametrize("place", ["before settle", "after settle"])
def test_a_crash_at_any_point_makes_no_tick_twice(store, clock, place):
    stream = make(store, clock)
    tick(stream, clock, 60)
    stream.take(batch(*range(40)))
    state = stream.state()
    clock.now += HOUR
    store.fail(place, error=Crash())
    with pytest.raises(Crash):
        stream.advance()
    after = restarted(state, store, clock)
    after.advance()
    tick(after, clock, 1)
    numbers = [number for _, number, _ in told(store)]
    paid = [line.number for line in store.ledger() if line.number]
    assert numbers == paid == [1, 2, 3]
    assert spent(store) == 40


@pytest.mark.parametrize("place", ["before settle", "after settle"])
def test_a_tick_that_was_seen_is_never_gone_back_behind(store, clock, place):
    """The checkpoint has the tick before anybody sees it, and the count goes on after it."""
    stream = make(store, clock, durable=True)
    stream.take(batch(*WHO))
    clock.now += HOUR
    stream.advance()
    assert told(store) == []
    state = stream.state()
    stream.mark_stored()
    store.fail(place, error=Crash())
    with pytest.raises(Crash):
        stream.advance()
    after = restarted(state, store, clock, durable=True)
    assert after.state() == state
    after.advance()
    assert after.windows.windowed.current.releases == 1
    assert told(store) == [(0, 1, pytest.approx(3, abs=3))]
    assert spent(store) == 40


def test_after_the_last_step_a_new_count_begins(store, clock):
    stream = make(store, clock, horizon=2)
    for _ in range(5):
        tick(stream, clock, 10)
    assert told(store) == [
        (place, number, pytest.approx(10 * number, abs=3))
        for place, number in enumerate([1, 2, 1, 2, 1])
    ]
    assert spent(store) == 3 * 40, "an event is in one of them"
    state = stream.state()
    tick(stream, clock, 10)
    after = restarted(state, store, clock, horizon=2)
    after.advance()
    tick(after, clock, 7)
    assert told(store)[-1][1:] == (1, pytest.approx(7, abs=3))


def test_a_store_that_fails_at_the_end_of_a_window_loses_nothing(store, clock):
    stream = make(store, clock)
    tick(stream, clock, 10)
    store.fail("before settle")
    with pytest.raises(StoreError):
        tick(stream, clock, 10)
    tick(stream, clock, 10)
    assert [(number, value) for _, number, value in told(store)] == [
        (number, pytest.approx(10 * number, abs=3)) for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("given", [{"releases": 2}, {"releases": 3, "every": "10m"}])
def test_the_window_is_the_step(given):
    with pytest.raises(PlanError, match="releases at the end of each"):
        config(**given).check()


def test_no_tick_is_made_within_a_window(store, clock):
    stream = make(store, clock)
    stream.take(batch(*WHO))
    with pytest.raises(PlanError, match="at the end of each window alone"):
        stream.release()
    assert (told(store), spent(store)) == ([], 0)


def test_mixing_with_users_and_amounts_that_are_not_hidden(store, clock):
    both = StreamConfig(
        stat=({"name": "running-count", "horizon": 9}, {"name": "distinct"}),
        epsilon=Fraction(1),
        window="1h",
    )
    with pytest.raises(PlanError, match="one event and one user"):
        both.check()
    stream = make(store, clock, delta="n")
    with pytest.raises(InputError, match="delta must be 0 to 1"):
        stream.take([pa.record_batch({"n": [1, 2]})])
    clock.now += HOUR
    stream.advance()
    assert told(store) == [(0, 1, pytest.approx(0, abs=3))]


COUNTED = """
[streams.visits]
epsilon = 40
window = "1s"
ids = "integers"
[[streams.visits.stat]]
name = "running-count"
horizon = 100_000
"""


@pytest.mark.long
def test_a_service_that_is_killed_again_and_again_makes_no_tick_twice(tmp_path):
    """Wherever it is killed, ticks go on, each once, and dashboards can draw them."""
    with Service(tmp_path, COUNTED, checkpoint='every = "1s"') as service:
        for life in range(3):
            service.begin()
            made = len(service.releases())
            for _ in range(3):
                assert service.send(range(200), durable=True).status_code == 200
            wait_until(lambda made=made, life=life: len(service.releases()) >= made + 2 + life)
            if life == 2:
                answers = service.releases()
                metrics = service.client.get(
                    service.url("/metrics"), headers=service.headers("read")
                ).text
            service.kill()
    numbers = [one["number"] for one in answers]
    assert len(numbers) >= 9
    assert sorted(numbers) == sorted(set(numbers))
    ordered = sorted(answers, key=lambda one: one["number"])
    assert [one["start"] for one in ordered] == sorted(one["start"] for one in answers)
    assert ordered[-1]["value"] < 1_800 + 50
    assert "panprivacy_release_value{" in metrics
    assert 'question="running_count"' in metrics
    assert "waiting" in metrics
    store = Store(f"sqlite:///{next(tmp_path.glob('*.sqlite'))}")
    lines = store.ledger()
    store.close()
    assert sum(line.epsilon for line in lines) == 40, "one count, and one epsilon"
