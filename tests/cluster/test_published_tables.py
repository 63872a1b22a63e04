"""Tables that a stream of a cluster publishes: each shard its slice, together one sketch."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.service.sketch_client import SketchClient
from tests.cluster.releasing import PATIENCE, Cluster
from tests.cluster.running import COUNTS, RunningCluster, stream
from tests.service.doubles import HOUR
from tests.service.running import TOKENS, wait_until

pytestmark = [
    pytest.mark.filterwarnings("ignore:epsilon .* protects nobody"),
    pytest.mark.usefixtures("asks_again_at_once"),
]
SURE = 1 - 1e-9


@pytest.fixture
def cluster(tmp_path, clock):
    stat = ({"name": "overlap", "universe": 2_000},)
    found = Cluster(tmp_path, clock, stat=stat, epsilon=Fraction(12))
    yield found
    found.store.close()


def window(cluster, users):
    """Count a window to its end."""
    cluster.shards.send(users)
    cluster.clock.now += HOUR
    cluster.advance()


def sketches(cluster):
    listed = cluster.store.sketches(stream="visits", limit=10)
    return [pp.Sketch.read(cluster.store.sketch("visits", one.id)) for one in listed]


def test_each_window_publishes_one_table_and_windows_are_compared(cluster):
    window(cluster, range(1_000))
    window(cluster, range(500, 1_500))
    monday, tuesday = sketches(cluster)
    assert [one.name for one in monday.shards] == ["0", "1"]
    assert monday.layout.universe == 2_000
    assert monday.front.stream == "visits"
    answer = pp.overlap(monday, tuesday).intersection(confidence=SURE)
    assert answer.low < 500 < answer.high < 800
    rows = [row.value for row in cluster.store.answers()]
    assert rows == pytest.approx([1_000, 1_000], abs=200)
    assert sum(line.epsilon for line in cluster.store.ledger()) <= 2 * cluster.config.epsilon
    assert not cluster.cuts


@pytest.mark.parametrize("place", ["before settle", "after settle", "forgetting"])
def test_a_coordinator_that_ends_anywhere_publishes_one_table(cluster, place, monkeypatch):
    cluster.shards.send(range(1_000))
    cluster.clock.now += HOUR
    cluster.crash(place, monkeypatch)
    waiting = [one.sketch for cut in cluster.cuts for one in cut.tables]
    monkeypatch.undo()
    cluster.clock.now += 1
    cluster.begin()
    cluster.advance()
    (table,) = sketches(cluster)
    assert waiting in ([], [table.to_bytes()])
    assert not cluster.cuts


def test_a_table_without_the_users_of_a_shard_says_so(cluster):
    cluster.shards.away.add(1)
    cluster.shards.send(range(1_000))
    cluster.clock.now += HOUR
    cluster.advance()
    cluster.clock.now += PATIENCE + 1
    cluster.advance()
    (listed,) = cluster.store.sketches(stream="visits", limit=10)
    assert not listed.complete
    (row,) = cluster.store.answers()
    assert row.note.startswith("not complete: without")
    assert row.value == pytest.approx(500, abs=200)


def test_old_tables_are_deleted(tmp_path, clock):
    stat = ({"name": "overlap", "universe": 2_000},)
    cluster = Cluster(tmp_path, clock, stat=stat, epsilon=Fraction(12), keep_tables="2h")
    for _ in range(4):
        window(cluster, range(10))
    assert 1 <= len(sketches(cluster)) < 4
    cluster.store.close()


@pytest.mark.ray
def test_a_cluster_on_this_machine_publishes_tables_that_a_program_compares(tmp_path, nats):
    tables = stream("20s").replace(COUNTS, 'name = "overlap"\nuniverse = 2_000')
    with RunningCluster(tmp_path, nats.url, tables.replace("= 400", "= 12")) as cluster:
        cluster.start("--shards", "2")
        client = SketchClient(cluster.url(), TOKENS["read"])
        for number, users in enumerate((range(1_000), range(500, 1_500)), start=1):
            assert cluster.send(users, durable=True).status_code == 200
            wait_until(lambda least=number: len(counted(client)) >= least)
        compared = counted(client)
        assert len(compared) == 2
        assert {len(one.shards) for one in compared} == {2}
        shared = pp.overlap(*compared).intersection(confidence=SURE)
        assert shared.low < 500 < shared.high < 800
        assert cluster.health()["troubles"] == {}


def counted(client):
    """The published tables of windows in which somebody came."""
    found = client.sketches("visits")
    return [one for one in found if (one | one).count().value > 700]
