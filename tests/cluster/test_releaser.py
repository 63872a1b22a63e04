"""The releases of a stream: once each, whatever ends where, whoever is missing."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from datetime import UTC, datetime

import pytest

from panprivacy.cluster import announcing, asking
from panprivacy.cluster import releaser as releasers
from panprivacy.cluster.record import ClusterRecord, RecordFile, StreamRecord
from panprivacy.cluster.releaser import Releaser
from panprivacy.cluster.shard import ShardStream
from panprivacy.errors import BudgetError, InputError, PanPrivacyError
from panprivacy.sealing import seal
from panprivacy.service.outgoing.records import StoreError
from tests.cluster.shards import KEY, at, planned, queue, sealed
from tests.service.doubles import HOUR, START, Clock, Crash
from tests.service.doubles import Store as FailingStore

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")

PATIENCE = 600.0


class Store(FailingStore):
    """One that also fails around announcements."""

    def announce(self, line):
        self._due("before announce")
        super().announce(line)
        self._due("after announce")


class Shards:
    """Shards in this process, of which some are away, with what the vault would have of them."""

    def __init__(self, config, began, shards=2):
        self.all = [ShardStream(queue(one, shards), config, _slice(one, shards), began)
                    for one in range(shards)]  # fmt: skip
        self.away, self.log, self.sequence = set(), [], 0

    def send(self, users):
        """Have the shards count a body."""
        self.sequence += 1
        publics = [one.told()["public"] for one in self.all]
        for shard, (one, message) in enumerate(zip(self.all, sealed(publics, users), strict=True)):
            if shard not in self.away:
                one.take([(at(self.sequence), message)])

    def cut(self):
        return [at(self.sequence)] * len(self.all)

    def told(self):
        return {shard: one.told() for shard, one in enumerate(self.all) if shard not in self.away}

    def ask(self, shard, what, *arguments):
        found = Future()
        self.log.append((shard, what))
        if shard in self.away:
            found.set_exception(StoreError("does not answer"))
            return found
        try:
            found.set_result(getattr(self, f"_{what}")(self.all[shard], *arguments[1:]))
        except PanPrivacyError as error:
            found.set_exception(error)
        return found

    def _hold(self, one, window, number, through):
        pass

    def _contribute(self, one, window, number, through, last, next_start, recipient, announced):
        if one.position < through and one.position != at(0, 0):
            raise StoreError("not yet")
        one.contribute(window, number, last=last, next_start=next_start, announced=announced)
        return seal(one.contribution(window, number), recipient)

    def _settled(self, one, window, number):
        one.settle(window, number)

    def _announce(self, one, window, total):
        one.announce(window, total)


def _slice(shard, shards):
    return (
        ClusterRecord(shards=shards, key=KEY.hex(), streams={}).router(numbered=True).slice(shard)
    )


class Cluster:
    """A stream of a cluster, whose coordinator can end and begin again."""

    def __init__(self, folder, clock, **given):
        self.config, self.clock = planned(**given), clock
        self.store = Store(f"sqlite:///{folder}/releases.sqlite")
        self.path = folder / "coordinator.json"
        self.shards = Shards(self.config, clock.now)
        began = StreamRecord(window=clock.now, ends=clock.now + HOUR, last_release=clock.now)
        RecordFile(
            self.path, ClusterRecord(shards=2, key=KEY.hex(), streams={"visits": began})
        ).write()
        self.begin()

    def begin(self):
        """Go on from what is on the disk."""
        self.record = RecordFile.load(self.path)
        self.releaser = Releaser(
            "visits",
            self.config,
            self.record,
            self.store,
            self.shards,
            self.record.record.router(numbered=True),
            self.shards.cut,
            patience=PATIENCE,
            clock=self.clock,
        )

    def advance(self, times=6):
        for _ in range(times):
            self.releaser.advance(self.shards.told())

    @property
    def cuts(self):
        return self.record.record.streams["visits"].cuts

    @property
    def answers(self):
        """Of each release: when it began, its number, whether it is complete, users by state."""
        found = {}
        for row in self.store.answers():
            key = row.start.timestamp() - START, row.number, row.complete
            found.setdefault(key, []).append(round(row.value))
        return {key: values[1:] for key, values in found.items()}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(asking, "_AGAIN", 0.0)


def without_patience(patch):
    """No request waits for its release, or its announcement."""
    for module in (releasers, announcing):
        patch.setattr(module, "PATIENCE", 0.0)


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
    assert not any(told["pending"] for told in cluster.shards.told().values())
    costs = [line.epsilon for line in cluster.store.ledger()]
    assert sum(costs) <= cluster.config.epsilon
    cluster.shards.send(range(7))
    cluster.clock.now += HOUR
    cluster.advance()
    assert cluster.answers[HOUR, 1, True] == [7, 0, 0]


@pytest.mark.parametrize(
    "place",
    ["before released", "before spend", "after spend", "before publish", "after publish", "settle"],
)
def test_a_coordinator_that_ends_anywhere_makes_the_release_once(cluster, place, monkeypatch):
    cluster.shards.send(range(40))
    cluster.clock.now += HOUR
    cluster.store.fail(place, error=Crash())
    if place == "settle":
        monkeypatch.setattr(Releaser, "_settle", lambda *_: (_ for _ in ()).throw(Crash()))
    with pytest.raises(Crash):
        cluster.advance()
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
    given, publish = [], cluster.store.publish

    def unsure(rows):
        given.append({row.question: (row.value, row.low, row.high) for row in rows})
        raise error

    cluster.store.publish = unsure
    for _ in range(3):
        with pytest.raises(type(error)):
            cluster.advance()
        cluster.begin()
    cluster.store.publish = publish
    cluster.advance()
    shown = {row.question: (row.value, row.low, row.high) for row in cluster.store.answers()}
    assert given == [shown] * 3
    assert not cluster.cuts
    cluster.store.close()


def test_no_shard_is_asked_for_what_is_not_written_down(cluster, monkeypatch):
    cluster.clock.now += HOUR

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("panprivacy.cluster.record.replace_file", full)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            cluster.advance()
    assert {what for _, what in cluster.shards.log} <= {"hold"}
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
    cluster.clock.now += HOUR
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
    assert [one["window"] for one in cluster.shards.told().values()] == [began, began]


def test_windows_that_passed_are_answered_each_once(cluster):
    cluster.shards.send(range(10))
    cluster.clock.now += 3 * HOUR + 5
    cluster.advance(20)
    assert {key[0]: counts[0] for key, counts in cluster.answers.items()} == {
        0: 10,
        HOUR: 0,
        2 * HOUR: 0,
    }
    cluster.clock.now -= 5 * HOUR  # the clock is set back
    cluster.advance(20)
    assert cluster.releaser.began == datetime.fromtimestamp(cluster.clock.now, UTC)
    assert cluster.answers[3 * HOUR, 1, False] == [0, 0, 0]


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


def test_an_announcement_reaches_every_shard_once(tmp_path, clock):
    cluster = Cluster(tmp_path, clock, intrusions=2)
    cluster.shards.away = {1}
    with pytest.raises(StoreError, match="repeat it"):
        cluster.releaser.announce(b"a")
    assert cluster.shards.all[0].told()["announced"] == 1
    cluster.shards.away = set()
    assert cluster.releaser.announce(b"a").left == 1
    assert cluster.releaser.announce(b"a").left == 1
    assert [one.told()["announced"] for one in cluster.shards.all] == [1, 1]
    cluster.store.fail("after announce", error=Crash())
    with pytest.raises(Crash):
        cluster.releaser.announce(b"b")
    cluster.begin()
    cluster.advance()  # it is in the store, so it takes effect
    assert [one.told()["announced"] for one in cluster.shards.all] == [2, 2]
    with pytest.raises(BudgetError, match="all 2 announced"):
        cluster.releaser.announce(b"c")
    cluster.store.close()


def test_what_was_announced_to_some_shards_is_announced_to_all_before_they_contribute(
    tmp_path, clock
):
    cluster = Cluster(tmp_path, clock, intrusions=1)
    cluster.shards.away = {1}
    with pytest.raises(StoreError, match="repeat it"):
        cluster.releaser.announce(b"a")
    cluster.shards.away = set()
    clock.now += HOUR
    cluster.advance()  # slices of two epochs would not go together
    assert list(cluster.answers) == [(0, 1, True)]
    assert cluster.releaser.announce(b"a").left == 1
    cluster.store.close()


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_an_announcement_takes_effect_where_no_release_waits_and_is_confirmed_when_none_does(
    tmp_path, clock, monkeypatch, crash, late
):
    """Who looked before would find again what is held, and nothing in it is drawn anew."""
    without_patience(monkeypatch)
    cluster = Cluster(tmp_path, clock, intrusions=1, releases=2)
    announced = [one.told for one in cluster.shards.all]
    cluster.shards.send(range(30))
    cluster.shards.away = {1}
    with pytest.raises(StoreError, match="waits for a shard"):
        cluster.releaser.release()
    cluster.advance()
    with pytest.raises(StoreError, match=r"waits for shard 2 of 2, .* repeat it"):
        cluster.releaser.announce(b"a")
    assert [told()["announced"] for told in announced] == [1, 0]
    if crash:
        cluster.begin()
    if late:
        clock.now += PATIENCE + 1
        cluster.advance()
    cluster.shards.away = set()  # it answers again, but has not contributed what it was asked for
    with pytest.raises(StoreError, match=r"waits for shard (1, )?2 of 2"):
        cluster.releaser.announce(b"a")
    assert [told()["announced"] for told in announced] == [1, 0], "the slices are of one epoch"
    cluster.advance()
    assert not cluster.cuts
    assert cluster.releaser.announce(b"a").left == 0
    assert [told()["announced"] for told in announced] == [1, 1]
    clock.now += HOUR
    cluster.advance()
    first, last = cluster.answers.values()
    assert first == [30, 0, 0] or late
    assert last == [30, 0, 0]
    cluster.store.close()


def test_what_is_announced_while_the_window_before_waits_is_of_the_new_one(
    tmp_path, clock, monkeypatch
):
    without_patience(monkeypatch)
    cluster = Cluster(tmp_path, clock, intrusions=1)
    cluster.shards.send(range(30))
    cluster.shards.away = {1}
    with pytest.raises(StoreError, match="shard 2 of 2 does not answer"):
        cluster.releaser.announce(b"of the window before")
    clock.now += HOUR
    cluster.advance()
    with pytest.raises(StoreError, match="shard 2 of 2 does not answer"):
        cluster.releaser.announce(b"a")
    assert cluster.shards.all[0].told()["announced"] == 1
    cluster.begin()
    cluster.shards.away = set()  # its window of before is not drawn anew
    with pytest.raises(StoreError, match=r"waits for shard (1, )?2 of 2"):
        cluster.releaser.announce(b"a")
    cluster.advance()
    assert cluster.releaser.announce(b"a").left == 0
    cluster.shards.send(range(5))
    clock.now += HOUR
    cluster.advance()
    assert list(cluster.answers.values()) == [[30, 0, 0], [5, 0, 0]]
    cluster.store.close()


def test_who_announces_waits_for_a_release_and_for_the_shard_that_was_missing(
    tmp_path, clock, monkeypatch
):
    cluster = Cluster(tmp_path, clock, intrusions=1, releases=2)
    cluster.shards.away = {1}
    with monkeypatch.context() as hasty:
        without_patience(hasty)
        with pytest.raises(StoreError, match="waits for a shard"):
            cluster.releaser.release()
    monkeypatch.setattr(announcing.Announcing, "announce_again", lambda _: None)

    def come_back():
        cluster.shards.away = set()
        cluster.advance()

    back = threading.Timer(0.2, come_back)
    back.start()
    assert cluster.releaser.announce(b"a").left == 0
    back.join()
    assert [one.told()["announced"] for one in cluster.shards.all] == [1, 1]
    cluster.store.close()


def test_a_ledger_that_has_lost_what_was_paid_is_refused(cluster, tmp_path):
    cluster.clock.now += HOUR
    cluster.advance()
    cluster.store.close()
    cluster.store = Store(f"sqlite:///{tmp_path}/other.sqlite")
    with pytest.raises(InputError, match="put the store"):
        cluster.begin()
