"""The releases of a stream: once each, whatever ends where, whoever is missing."""

from __future__ import annotations

from collections import Counter

import pytest

from panprivacy.cluster import record
from panprivacy.cluster.queues import BrokerError
from panprivacy.errors import BudgetError, InputError
from panprivacy.service.outgoing.records import StoreError
from tests.cluster.releasing import PATIENCE, Cluster, Store, without_patience
from tests.service.doubles import HOUR, Crash

pytestmark = [
    pytest.mark.filterwarnings("ignore:epsilon .* protects nobody"),
    pytest.mark.usefixtures("asks_again_at_once"),
]


@pytest.fixture
def cluster(tmp_path, clock):
    found = Cluster(tmp_path, clock)
    yield found
    found.store.close()


def test_the_end_of_a_window_is_answered_by_all_shards_and_forgotten_by_them(cluster):
    cluster.shards.send(range(50))
    cluster.shards.send(range(20))
    cluster.advance()
    assert not cluster.answers
    cluster.clock.now += HOUR
    cluster.advance()
    assert cluster.answers == {(0, 1, True): [30, 20, 0]}
    assert not cluster.cuts
    assert not any(told["pending"] for told in cluster.shards.report().values())
    costs = [line.epsilon for line in cluster.store.ledger()]
    assert sum(costs) <= cluster.config.epsilon
    cluster.shards.send(range(7))
    cluster.clock.now += HOUR
    cluster.advance()
    assert cluster.answers[HOUR, 1, True] == [7, 0, 0]


@pytest.mark.parametrize(
    "place",
    [
        "before released",
        "before spend",
        "after spend",
        "before settle",
        "after settle",
        "forgetting",
    ],
)
def test_a_coordinator_that_ends_anywhere_makes_the_release_once(cluster, place, monkeypatch):
    cluster.shards.send(range(40))
    cluster.clock.now += HOUR
    cluster.crash(place, monkeypatch)
    monkeypatch.undo()
    cluster.clock.now += 1
    cluster.begin()
    cluster.advance()
    assert [line.number for line in cluster.store.ledger()] == [0, 1]
    assert cluster.answers == {(0, 1, True): [40, 0, 0]}
    assert not cluster.cuts
    cluster.shards.send(range(9))
    cluster.clock.now += HOUR
    cluster.advance()  # of a window that was begun before this coordinator was
    assert cluster.answers[HOUR, 1, False] == [9, 0, 0]


@pytest.mark.parametrize("error", [StoreError("the commit may have failed"), Crash()])
def test_noise_is_drawn_once_however_often_the_store_is_asked(tmp_path, clock, error):
    """What a store was given and does not show may be in its files: a second draw may not."""
    cluster = Cluster(tmp_path, clock, epsilon=40)
    cluster.shards.send(range(100))
    clock.now += HOUR
    given, settle = [], cluster.store.settle

    def unsure(_, rows, *__):
        given.append({row.question: (row.value, row.low, row.high) for row in rows})
        raise error

    cluster.store.settle = unsure
    for _ in range(3):
        with pytest.raises(type(error)):
            cluster.advance()
        cluster.begin()
    cluster.store.settle = settle
    cluster.advance()
    shown = {row.question: (row.value, row.low, row.high) for row in cluster.store.answers()}
    assert given == [shown] * 3
    assert not cluster.cuts
    cluster.store.close()


def test_a_coordinator_that_ends_before_it_has_marked_the_queues_marks_them_later(cluster):
    cluster.shards.send(range(40))
    cluster.clock.now += HOUR
    cluster.shards.broken = Crash()
    with pytest.raises(Crash):
        cluster.advance()
    assert [cut.through for cut in cluster.cuts] == [[]]
    assert not cluster.shards.log, "no shard is asked for what is not marked"
    cluster.shards.broken = None
    cluster.begin()
    cluster.advance()
    assert cluster.answers == {(0, 1, True): [40, 0, 0]}
    assert cluster.shards.marks[-1] == (cluster.clock.now - HOUR, 1)


@pytest.mark.parametrize(("late", "complete"), [(0.5, True), (15, False)])
def test_where_queues_are_marked_late_neither_window_is_complete(cluster, late, complete):
    cluster.clock.now += HOUR
    cluster.shards.broken = BrokerError("the broker does not answer")
    with pytest.raises(BrokerError):
        cluster.advance()
    cluster.clock.now += late
    cluster.shards.broken = None
    cluster.advance()
    for _ in range(2):
        cluster.clock.now += HOUR - (late if not _ else 0)
        cluster.advance()
    assert list(cluster.answers) == [(0, 1, complete), (HOUR, 1, complete), (2 * HOUR, 1, True)]


def test_a_window_that_is_marked_is_not_complete_and_the_next_one_is(cluster):
    cluster.releaser.mark_incomplete()
    for _ in range(2):
        cluster.clock.now += HOUR
        cluster.advance()
    assert list(cluster.answers) == [(0, 1, False), (HOUR, 1, True)]


def test_no_shard_is_asked_for_what_is_not_written_down(cluster, monkeypatch):
    cluster.clock.now += HOUR

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("panprivacy.cluster.record.replace_file", full)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            cluster.advance()
    assert not cluster.shards.log
    assert not cluster.shards.marks
    monkeypatch.undo()
    cluster.advance()
    assert list(cluster.answers) == [(0, 1, True)]


def test_a_release_waits_for_a_shard_and_says_then_that_it_is_missing(cluster):
    cluster.shards.send(range(100))
    cluster.shards.away = {1}
    cluster.clock.now += HOUR
    cluster.advance()
    assert not cluster.answers
    cluster.clock.now += 20
    cluster.advance()
    assert cluster.releaser.missing == {1}
    cluster.clock.now += PATIENCE
    cluster.advance()
    ((key, counts),) = cluster.answers.items()
    assert key == (0, 1, False)
    assert 0 < counts[0] < 100
    notes = [row.note for row in cluster.store.answers()]
    assert all(one.startswith("not complete: without shard 2 of 2 and its users") for one in notes)
    assert not cluster.releaser.missing
    assert cluster.cuts
    cluster.shards.away = set()
    cluster.advance()
    assert not cluster.cuts
    cluster.shards.send(range(30))
    cluster.clock.now += HOUR - PATIENCE - 20
    cluster.advance()
    assert cluster.answers[HOUR, 1, True] == [30, 0, 0]  # and nobody of the window before


def test_what_stands_in_for_a_shard_knows_of_as_many_announcements(tmp_path, clock):
    cluster = Cluster(tmp_path, clock, intrusions=1, releases=1)
    assert cluster.releaser.announce(b"a").left == 0
    cluster.shards.send(range(100))
    cluster.shards.away = {1}
    clock.now += HOUR
    cluster.advance()
    clock.now += PATIENCE + 1
    cluster.advance()
    ((_, counts),) = cluster.answers.items()
    assert 0 < counts[0] < 100
    cluster.store.close()


def test_a_clock_that_is_set_back_does_not_end_the_wait_for_a_shard(cluster):
    cluster.shards.send(range(100))
    cluster.shards.away = {0, 1}
    cluster.clock.now += HOUR
    cluster.advance()
    cluster.clock.now -= 1
    cluster.advance()
    assert not cluster.answers
    cluster.shards.away = set()
    cluster.advance()
    assert cluster.answers == {(0, 1, True): [100, 0, 0]}


def test_a_shard_that_misses_two_windows_goes_on_with_the_third(cluster):
    cluster.shards.away = {1}
    for _ in range(2):
        cluster.clock.now += HOUR
        cluster.advance()
        cluster.clock.now += PATIENCE + 1
        cluster.advance()
    assert len(cluster.answers) == 2
    cluster.shards.away = set()
    cluster.advance()
    assert not cluster.cuts
    began = cluster.releaser.began.timestamp()
    assert [one["window"] for one in cluster.shards.report().values()] == [began, began]


def test_windows_that_passed_are_answered_each_once(cluster):
    cluster.shards.send(range(10))
    cluster.clock.now += 3 * HOUR + 5
    cluster.advance(20)
    assert {key[0]: counts[0] for key, counts in cluster.answers.items()} == {
        0: 10,
        HOUR: 0,
        2 * HOUR: 0,
    }
    began = cluster.releaser.began
    cluster.clock.now -= 29 * HOUR  # the clock is set back: the window that is open lasts
    cluster.advance(20)
    cluster.shards.send(range(7))
    cluster.clock.now += 4 * HOUR
    cluster.advance(20)
    assert cluster.releaser.began == began
    cluster.clock.now += 26 * HOUR
    cluster.advance(20)
    assert cluster.answers[3 * HOUR, 1, False][0] == 7
    assert max(Counter(line.start for line in cluster.store.ledger()).values()) == 2


def test_releases_within_a_window_go_on_counting(tmp_path, clock):
    cluster = Cluster(tmp_path, clock, releases=3, every="20m")
    cluster.shards.send(range(10))
    clock.now += HOUR // 3
    cluster.advance()
    cluster.shards.send(range(25))
    clock.now += HOUR // 3
    cluster.advance()
    clock.now += HOUR // 3
    cluster.advance()
    assert cluster.answers == {
        (0, 1, False): [10, 0, 0],
        (0, 2, False): [15, 10, 0],
        (0, 3, True): [15, 10, 0],
    }
    costs = [line.epsilon for line in cluster.store.ledger()]
    assert sum(costs) <= cluster.config.epsilon
    cluster.store.close()


def test_a_release_on_request_is_there_when_it_returns_or_says_why_not(
    tmp_path, clock, monkeypatch
):
    cluster = Cluster(tmp_path, clock, releases=2)
    without_patience(monkeypatch)
    with pytest.raises(StoreError, match="waits for a shard"):
        cluster.releaser.release()
    cluster.advance()
    assert list(cluster.answers) == [(0, 1, False)]
    with pytest.raises(BudgetError, match="no release is left"):
        cluster.releaser.release()
    cluster.store.close()


def test_a_ledger_that_has_lost_what_was_paid_is_refused(cluster, tmp_path):
    cluster.clock.now += HOUR
    cluster.advance()
    cluster.store.close()
    cluster.store = Store(f"sqlite:///{tmp_path}/other.sqlite")
    with pytest.raises(InputError, match="put the store"):
        cluster.begin()


class Steps:
    """Numbers what a coordinator does to store, file and shards, and ends it at one of them."""

    def __init__(self, cluster, monkeypatch, deadly):
        self.done, self.deadly = 0, deadly
        for name in ("spend", "settle", "released", "payer"):
            monkeypatch.setattr(cluster.store, name, self._around(getattr(cluster.store, name)))
        for name in ("ask", "mark"):
            monkeypatch.setattr(cluster.shards, name, self._around(getattr(cluster.shards, name)))
        write = self._around(record.replace_file)
        monkeypatch.setattr("panprivacy.cluster.record.replace_file", write)

    def _around(self, act):
        def stepping(*given, **named):
            self._step()
            found = act(*given, **named)
            self._step()
            return found

        return stepping

    def _step(self):
        self.done += 1
        if self.done == self.deadly:
            raise Crash


def lived_through(cluster, monkeypatch, deadly):
    """Two windows, of which the first has two releases; how many steps there were."""
    steps = Steps(cluster, monkeypatch, deadly)
    for users, passed in ((40, HOUR / 2), (3, HOUR / 2), (7, HOUR)):
        cluster.shards.send(range(users))
        cluster.clock.now += passed
        for _ in range(2):
            try:
                cluster.advance()
            except Crash:
                cluster.begin()
    monkeypatch.undo()
    cluster.advance()
    return steps.done


@pytest.mark.long
def test_wherever_a_coordinator_dies_each_release_is_made_and_paid_for_once(
    tmp_path, clock, monkeypatch
):
    """Before and after commits, files and messages: every third of them all."""
    began, deadly, steps = clock.now, 0, 4
    while deadly + 3 < steps:
        deadly += 3
        clock.now = began
        folder = tmp_path / f"{deadly}"
        folder.mkdir()
        cluster = Cluster(folder, clock, releases=2, every="30m")
        steps = lived_through(cluster, monkeypatch, deadly)
        rows = {(begins, number): found for (begins, number, _), found in cluster.answers.items()}
        assert rows == {(0, 1): [40, 0, 0], (0, 2): [37, 3, 0], (HOUR, 1): [7, 0, 0]}, deadly
        lines = [line.number for line in cluster.store.ledger()]
        assert lines == [0, 1, 2, 0, 1]
        assert not cluster.cuts
        cluster.store.close()
    assert deadly > 40
