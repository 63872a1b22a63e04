"""Announced intrusions: they reach each shard once, and are confirmed once nothing old is held."""

from __future__ import annotations

import threading

import pytest

from panprivacy.cluster import announcing
from panprivacy.cluster.announcing import has_not_contributed, named
from panprivacy.cluster.record import Cut
from panprivacy.errors import BudgetError
from panprivacy.service.outgoing.records import StoreError
from tests.cluster.releasing import PATIENCE, Cluster, without_patience
from tests.service.doubles import HOUR, Crash

pytestmark = [
    pytest.mark.filterwarnings("ignore:epsilon .* protects nobody"),
    pytest.mark.usefixtures("asks_again_at_once"),
]


def test_an_announcement_reaches_every_shard_once(tmp_path, clock):
    cluster = Cluster(tmp_path, clock, intrusions=2)
    cluster.shards.away = {1}
    with pytest.raises(StoreError, match="repeat it"):
        cluster.releaser.announce(b"a")
    assert cluster.shards.all[0].report()["announced"] == 1
    cluster.shards.away = set()
    assert cluster.releaser.announce(b"a").left == 1
    assert cluster.releaser.announce(b"a").left == 1
    assert [one.report()["announced"] for one in cluster.shards.all] == [1, 1]
    cluster.store.fail("after announce", error=Crash())
    with pytest.raises(Crash):
        cluster.releaser.announce(b"b")
    cluster.begin()
    cluster.advance()  # it is in the store, so it takes effect
    assert [one.report()["announced"] for one in cluster.shards.all] == [2, 2]
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
    announced = [one.report for one in cluster.shards.all]
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
    assert cluster.shards.all[0].report()["announced"] == 1
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
    assert [one.report()["announced"] for one in cluster.shards.all] == [1, 1]
    cluster.store.close()


def test_without_intrusions_planned_for_none_is_announced_and_nothing_is_asked(tmp_path, clock):
    cluster = Cluster(tmp_path, clock)
    with pytest.raises(BudgetError):
        cluster.releaser.announce(b"a")
    cluster.advance()
    assert not any(what == "announce" for _, what in cluster.shards.log)
    cluster.store.close()


def test_shards_are_called_by_numbers_from_1():
    assert named([1], 2) == "shard 2 of 2"
    assert named([0, 2], 3) == "shard 1, 3 of 3"


CUT = Cut(
    window=5.0,
    ends=9.0,
    until=6.0,
    number=2,
    last=False,
    next_start=9.0,
    complete=True,
    made=6.0,
    payer="",
    through=[],
    held=[0],
)


@pytest.mark.parametrize(
    ("window", "released", "pending", "waits"),
    [
        (5.0, 1, [], True),
        (5.0, 2, [(5.0, 2)], False),
        (5.0, 1, [(5.0, 2)], False),
        (5.0, 2, [], False),
        (5.0, 0, [], False),
        (9.0, 1, [], False),
    ],
)
def test_a_shard_has_yet_to_contribute_that_has_made_the_release_before(
    window, released, pending, waits
):
    told = {"window": window, "released": released, "pending": pending}
    assert has_not_contributed(CUT, told) is waits
