"""A stream whose answer stands until it has moved: no change twice, none unpaid or too many."""

from __future__ import annotations

from fractions import Fraction

import pytest

from panprivacy.errors import PlanError
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.stream import Stream

from .doubles import HOUR, Crash, Store
from .running import Service, wait_until
from .test_stream import batch

MINUTE = 60
UNIVERSE = 4_000


def config(**given):
    """So much privacy loss that a share is exact to 0.01, but once in 1e12."""
    return StreamConfig(
        **{
            "stat": ({"name": "density", "universe": UNIVERSE},),
            "epsilon": Fraction(300), "window": "1h", "every": "1m", "releases": 4, "moves": 0.1,
            "ids": IdKind.integers, **given,
        }
    )  # fmt: skip


def make(store, clock, **given):
    return Stream("visits", config(**given), store, clock=clock)


def minutes(stream, clock, count=1):
    for _ in range(count):
        clock.now += MINUTE
        stream.advance()


def come(stream, clock, *users):
    """All users of a range come, and a minute passes."""
    stream.take(batch(*range(*users)))
    minutes(stream, clock)


def restarted(state, store, clock):
    after = make(store, clock)
    after.resume(state, released=after.states.released_in(state))
    return after


def told(store):
    return [(row.number, round(row.value, 1)) for row in store.answers()]


def paid(store):
    return [line.number for line in store.ledger()]


def test_an_answer_leaves_when_it_has_moved_and_at_the_end(store, clock):
    stream = make(store, clock)
    minutes(stream, clock, 5)
    assert told(store) == []
    come(stream, clock, 800)
    minutes(stream, clock, 5)
    assert told(store) == [(1, 0.2)]
    come(stream, clock, 800, 1_000)
    assert told(store) == [(1, 0.2)]
    come(stream, clock, 1_000, 2_000)
    assert told(store) == [(1, 0.2), (2, 0.5)]
    clock.now += HOUR
    stream.advance()
    assert told(store) == [(1, 0.2), (2, 0.5), (3, 0.5)]
    come(stream, clock, 400, 1_200)
    assert told(store)[-1] == (1, 0.2), "each window begins at 0"


def test_it_is_paid_for_whether_it_moves_or_not(store, clock):
    """Who sees the ledger, or a store that fails, learns nothing of a comparison."""
    stream = make(store, clock)
    minutes(stream, clock, 3)
    assert (told(store), paid(store)) == ([], [0, 1])
    come(stream, clock, 800)
    assert (told(store), paid(store)) == ([(1, 0.2)], [0, 1])
    minutes(stream, clock)
    assert paid(store) == [0, 1, 2]
    total = sum(line.epsilon for line in store.ledger() if line.number <= 1)
    assert total > 150, "the comparisons are paid with the state"


def test_a_store_that_fails_keeps_the_comparison_from_being_made(store, clock, monkeypatch):
    compared = []
    monkeypatch.setattr(
        "panprivacy.statistics.comparing.Comparisons.moved",
        lambda *told: compared.append(told) or True,
    )
    stream = make(store, clock)
    store.fail("before spend", times=2)
    clock.now += MINUTE
    for _ in range(2):
        with pytest.raises(StoreError):
            stream.advance()
    assert compared == []
    stream.advance()
    assert len(compared) == len(store.answers()) == 1


def test_it_stops_when_the_updates_are_used_up_and_says_so(store, clock):
    stream = make(store, clock)
    for place in range(6):
        come(stream, clock, 500 * place, 500 * (place + 1))
    assert told(store) == [(1, 0.1), (2, 0.2), (3, 0.4)]
    notes = [row.note for row in store.answers()]
    assert notes == [None, None, "the last of 3 updates: it stays, however the number moves"]
    clock.now += HOUR
    stream.advance()
    assert told(store)[-1] == (4, 0.8)


@pytest.mark.parametrize("place", [None, "before settle", "after settle"])
def test_after_a_restart_no_change_is_published_twice(store, clock, place):
    stream = make(store, clock)
    stream.take(batch(*range(1_200)))
    state = stream.state()
    if place is not None:
        store.fail(place, error=Crash())
        with pytest.raises(Crash):
            minutes(stream, clock)
    else:
        minutes(stream, clock)
    before = told(store)
    after = restarted(state, store, clock)
    minutes(after, clock, 5)
    if place == "before settle":  # nobody has seen that change
        assert (before, told(store)) == ([], [(2, 0.3)])
    else:
        assert told(store) == before == [(1, 0.3)]
    come(after, clock, 1_200, 2_000)
    assert told(store)[-1][1] == 0.5
    numbers = [number for number, _ in told(store)]
    assert numbers == sorted(set(numbers))


def test_restarts_never_make_more_than_the_updates(store, clock):
    stream = make(store, clock)
    state = stream.state()
    for place in range(8):
        minutes(stream, clock)
        stream = restarted(state, store, clock)
        come(stream, clock, 500 * (place + 1))
    assert max(paid(store)) <= 3, "the last release is the end's"
    assert len(told(store)) <= 3
    clock.now += HOUR
    stream.advance()
    assert told(store)[-1][0] == 4
    assert sum(line.epsilon for line in store.ledger() if line.start.hour == 9) <= 300


def test_a_window_that_is_begun_again_goes_on_from_what_stands(store, clock):
    """The checkpoint is of the window before: what was counted since is gone, what left is not."""
    stream = make(store, clock)
    state = stream.state()
    clock.now += HOUR
    come(stream, clock, 1_200)
    assert told(store)[-1] == (1, 0.3)
    after = restarted(state, store, clock)
    come(after, clock, 1_200)
    minutes(after, clock, 3)
    assert [row.number for row in store.answers() if row.start.hour == 10] == [1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"every": None}, "moves needs every"),
        ({"releases": 1}, "every needs releases of at least 2"),
        ({"moves": 0.0}, "moves must be"),
        ({"moves": -1.0}, "moves must be"),
        ({"moves": float("nan")}, "moves must be"),
        ({"moves": 0.0001, "epsilon": Fraction(1)}, "would be reached by noise"),
        ({"by": "page", "groups": ("a", "b")}, "without groups"),
        ({"stat": ({"name": "density", "universe": 99}, {"name": "distinct"})}, "one statistic"),
        ({"stat": ({"name": "running-count", "horizon": 9},)}, "one statistic of users"),
        ({"stat": ({"name": "incidence", "universe": 99, "bound": 2},)}, "several answers"),
    ],
)
def test_what_cannot_move_is_refused(given, message):
    with pytest.raises(PlanError, match=message):
        config(**given).check()


SHARE = f"""
[streams.visits]
epsilon = 300
window = "1d"
every = "1s"
releases = 4
moves = 0.1
ids = "integers"
[[streams.visits.stat]]
name = "density"
universe = {UNIVERSE}
"""


@pytest.mark.long
def test_a_service_that_is_killed_again_and_again_publishes_no_change_twice(tmp_path):
    with Service(tmp_path, SHARE, checkpoint='every = "1s"') as service:
        for life in range(2):
            service.begin()
            if life == 0:
                assert service.send(range(1_200), durable=True).status_code == 200
                wait_until(lambda: len(service.releases()) == 1)
            answers = service.releases()
            assert [round(one["value"], 1) for one in answers] == [0.3]
            metrics = service.client.get(service.url("/metrics"), headers=service.headers("read"))
            assert "panprivacy_release_value{" in metrics.text
            service.kill()
    store = Store(f"sqlite:///{next(tmp_path.glob('*.sqlite'))}")
    lines = [line.number for line in store.ledger()]
    store.close()
    assert sorted(set(lines)) == sorted(lines)
    assert max(lines) <= 3
