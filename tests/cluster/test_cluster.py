"""A cluster as its operator has it: real Ray, a real broker, processes that are killed."""

from __future__ import annotations

import json
import os
import re
import signal
import time

import pytest

from panprivacy.cluster.engine import check
from panprivacy.errors import PlanError
from panprivacy.service.config.loading import load
from tests.cluster.running import COUNTS, RunningCluster, recorded, stream
from tests.commands import run_command
from tests.service.running import wait_until

KEY = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")


def events(cluster):
    """How many events all answers tell of."""
    rows = cluster.releases()
    return sum(int(row["arguments"].removeprefix("state=")) * round(row["value"]) for row in rows)


def windows_end(cluster):
    """Wait until the window that is counted has ended."""
    known = json.loads((cluster.directory / "panprivacy-coordinator.json").read_text())
    wait_until(lambda: time.time() > known["streams"]["visits"]["ends"])


@pytest.mark.ray
def test_events_are_counted_once_whatever_is_killed_and_however_many_shards_there_are(
    tmp_path, nats
):
    with RunningCluster(tmp_path, nats.url, stream("10s")) as cluster:
        cluster.start("--shards", "2")
        assert cluster.send(range(300)).status_code == 202
        assert cluster.send(range(100), durable=True, key="a").status_code == 200
        second = run_command("cluster", cluster.config, "--shards", 2)
        assert (second.code, "another service, cluster," in second.stderr) == (2, True)
        os.kill(cluster.workers[0], signal.SIGKILL)
        assert cluster.send(range(300, 400), key="b").status_code == 202
        assert cluster.send(range(100), key="a").status_code == 202  # was counted, and is not again
        cluster.kill()
        windows_end(cluster)
        cluster.start("--shards", "3")
        wait_until(lambda: events(cluster) >= 500)
        assert cluster.send(range(300, 400), key="b").status_code == 202  # by the shards of before
        assert cluster.send(range(50), durable=True).status_code == 200
        wait_until(lambda: events(cluster) >= 550)
        assert events(cluster) == 550
        assert not list(tmp_path.glob("*-of-2.sealed"))
        assert cluster.health()["troubles"] == {}
        assert cluster.stop() in {0, -signal.SIGTERM}
        assert not cluster.said.count("does not work")


@pytest.mark.ray
def test_it_ends_where_ray_has_ended_and_goes_on_when_it_is_started_again(tmp_path, nats):
    with RunningCluster(tmp_path, nats.url, stream("1d", "releases = 2")) as cluster:
        cluster.start("--shards", "1")
        assert cluster.send(range(100), durable=True, key="a").status_code == 200
        os.kill(cluster.process("raylet/raylet"), signal.SIGKILL)
        assert cluster.ended() == 2
        assert cluster.said.endswith(
            "Ray has ended on this machine: start panprivacy cluster again\n"
        )
        cluster.start("--shards", "1")
        assert cluster.send(range(100), key="a").status_code == 202
        assert cluster.send(range(50), durable=True).status_code == 200
        assert cluster.release().status_code == 201
        assert events(cluster) == 150


def test_another_number_of_shards_waits_for_the_end_of_the_windows(tmp_path):
    cluster = RunningCluster(tmp_path, "nats://127.0.0.1:1", stream())
    recorded(tmp_path, time.time())
    result = run_command("cluster", cluster.config, "--shards", 3)
    assert result.code == 2
    assert re.search(r"the window of visits ends at .* start with --shards 2", result.stderr)
    cluster.client.close()


VISITED = """
[streams.visits]
epsilon = 1
window = "1d"
beacon.origins = ["https://example.org"]
[[streams.visits.stat]]
name = "distinct"
expected = 1_000
"""
LEARNS = 'name = "distinct"\nexpected = "learn"'
AMOUNTS = 'name = "incidence"\nexpected = 1_000\nbound = 9\nunit = 60'
RUNS = 'name = "running-distinct"\nhorizon = 1_000'


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("ids =", f'contribute = "{KEY}"\nids ='), "leave out contribute"),
        ((stream(), VISITED), "a cluster takes no beacon"),
        ((COUNTS, LEARNS), "a shard of a cluster has none"),
        ((COUNTS, RUNS), "running"),
        ((COUNTS, AMOUNTS), "unit= is for one machine"),
        (
            (COUNTS, 'name = "overlap"\nuniverse = 134_300_000\ncells = 134_300_000'),
            "its published tables take 16,787,500 bytes, and a cluster publishes up to 16,777,216",
        ),
    ],
)
def test_what_cannot_be_counted_in_shards_is_refused_with_the_reason(tmp_path, given, says):
    streams = stream().replace(*given)
    cluster = RunningCluster(tmp_path, "nats://127.0.0.1:1", streams)
    with pytest.raises(PlanError, match=says):
        check(load(cluster.config), 2)
    cluster.configure(stream(), checkpoint=None)
    with pytest.raises(PlanError, match=re.escape("needs [checkpoint]")):
        check(load(cluster.config), 2)
    with pytest.raises(PlanError, match="--shards must be 1 to"):
        check(load(cluster.config), 0)
    cluster.client.close()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('nats = ["127.0.0.1"]', "nats must name servers"),
        ('identity = "AGE SECRET"', "identity must be the name of a variable"),
        ("identity_command = []", "identity_command must be words"),
        ("queue_bytes = 10", "queue_bytes must be at least"),
        ('patience = "soon"', "patience must be a length of time"),
        ('name = "My Shop"', "the name of a cluster"),
    ],
)
def test_a_table_that_cannot_be_is_refused(tmp_path, line, says):
    cluster = RunningCluster(tmp_path, "nats://127.0.0.1:1", stream())
    text = re.sub(r'nats = .*\nname = "test.*\nqueue.*', line, cluster.config.read_text())
    cluster.config.write_text(text)
    with pytest.raises(PlanError, match=f"line [0-9]+: cluster: {says}"):
        load(cluster.config)
    cluster.client.close()


@pytest.mark.ray
def test_a_start_that_takes_longer_than_the_operator_waits_ends_in_one_line(tmp_path, nats):
    with RunningCluster(tmp_path, nats.url, stream()) as cluster:
        text = re.sub(
            "(?m)^start_patience = .*", 'start_patience = "1s"', cluster.config.read_text()
        )
        cluster.config.write_text(text)
        with pytest.raises(RuntimeError, match="the service has ended"):
            cluster.start("--shards", "2")
        *before, last = cluster.said.splitlines()
        assert re.search(r"within 1 seconds.* raise start_patience in \[cluster\]$", last)
        assert not any("Traceback" in line for line in before)
