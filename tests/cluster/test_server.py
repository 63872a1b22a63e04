"""What a cluster begins with, and what its operator is told where it cannot begin."""

from __future__ import annotations

import re

import pytest

from panprivacy.cluster.server import _Beginning, _broker
from panprivacy.errors import PlanError
from panprivacy.service.config.config import ClusterConfig, Config
from panprivacy.service.config.loading import load
from panprivacy.service.journal import write_to_stderr
from tests.cluster.nats import NatsServer, found_nats
from tests.cluster.running import RunningCluster
from tests.cluster.shards import planned
from tests.commands import run_command


def test_the_queues_of_another_cluster_are_not_taken_for_what_was_left(broker, tmp_path):
    def check(name):
        config = Config(streams={"visits": planned()}, cluster=ClusterConfig(name=name))
        _Beginning(config, None, tmp_path / "here.json", broker, None)._check_name()

    broker.tell("theirs", "visits", b"the directory of a cluster that keeps its states elsewhere")
    with pytest.raises(PlanError, match=r"the broker knows a cluster theirs .* --fresh"):
        check("theirs")
    check("ours")


def test_who_waits_for_the_broker_is_told_so_and_why_it_is_none(tmp_path):
    with NatsServer(found_nats(), memory=0) as server, RunningCluster(tmp_path, server.url) as one:
        result = run_command("cluster", one.config, "--shards", 2)
    waits, refuses = result.stderr.splitlines()
    assert (result.code, waits) == (2, "panprivacy: waits for the broker")
    assert refuses.endswith(
        "has no JetStream: start nats-server with -js, or with jetstream in its configuration"
    )


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("ray://10.0.0.1:10001", r"--address takes auto or HOST:PORT.* ray start --address"),
        ("10.0.0.1", r"--address takes auto or HOST:PORT"),
        ("127.0.0.1:1", "Ray cannot be reached at 127.0.0.1:1: Connection refused"),
        ("127.0.0.1:65536", "Ray cannot be reached at 127.0.0.1:65536"),
    ],
)
def test_a_cluster_of_ray_that_this_machine_has_not_joined_is_refused(tmp_path, address, says):
    with RunningCluster(tmp_path, "nats://127.0.0.1:1") as one:
        result = run_command("cluster", one.config, "--shards", 2, "--address", address)
    assert result.code == 2
    (line,) = result.stderr.splitlines()  # nothing was started for it
    assert re.search(says, line)


def test_the_line_of_the_start_comes_when_the_broker_is_there(tmp_path, shared_nats, capsys):
    write_to_stderr()
    with (
        RunningCluster(tmp_path, shared_nats.url) as one,
        _broker(load(one.config), 3) as broker,
    ):
        broker.wait()
    waits, starts = capsys.readouterr().err.splitlines()
    assert waits == "panprivacy: waits for the broker"
    assert starts == "panprivacy: shards are being started, which can take a minute shards=3"
