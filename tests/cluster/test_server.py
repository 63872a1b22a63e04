"""What a cluster begins with, and what its operator is told where it cannot begin."""

from __future__ import annotations

import re
import time
from concurrent.futures import Future

import pytest

from panprivacy.cluster import server
from panprivacy.cluster.record import RecordFile
from panprivacy.cluster.server import _Beginning, _broker
from panprivacy.cluster.vault import Vault
from panprivacy.cluster.waiting import Patience
from panprivacy.errors import PlanError
from panprivacy.service.config.config import ClusterConfig, Config, ReleasesConfig
from panprivacy.service.config.loading import load
from panprivacy.service.journal import write_to_stderr
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.server import alone
from tests.cluster.nats import NatsServer, found_nats
from tests.cluster.running import RunningCluster, recorded, stream
from tests.cluster.shards import planned
from tests.commands import run_command
from tests.service.doubles import Crash


def test_the_queues_of_another_cluster_are_not_taken_for_what_was_left(broker, tmp_path):
    def check(name):
        config = Config(streams={"visits": planned()}, cluster=ClusterConfig(name=name))
        _Beginning(config, None, tmp_path / "here.json", broker, None, Patience(0))._check_name()

    broker.tell("theirs", "visits", b"the directory of a cluster that keeps its states elsewhere")
    with pytest.raises(PlanError, match=r"the broker knows a cluster theirs .* --fresh"):
        check("theirs")
    check("ours")


def test_who_waits_for_the_broker_is_told_so_and_why_it_is_none(tmp_path):
    with NatsServer(found_nats(), memory=0) as nats, RunningCluster(tmp_path, nats.url) as one:
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


def test_a_folder_for_sealed_states_that_cannot_be_used_is_told_before_anything_starts(tmp_path):
    nowhere, used = tmp_path / "nowhere", tmp_path / "used"
    used.mkdir()
    with (
        alone(used / "panprivacy-coordinator.lock"),
        RunningCluster(tmp_path, "nats://127.0.0.1:1") as one,
    ):
        for folder, says in (
            (nowhere, f"cannot write in {nowhere}: No such file or directory"),
            (used, f"another service, cluster, collector or aggregator runs in {used}"),
        ):
            path = f'every = "1s"\npath = "{folder}/panprivacy.sealed"'
            one.configure(stream(), server='listen = "127.0.0.1:0"', checkpoint=path)
            result = run_command("cluster", one.config, "--shards", 2)
            assert (result.code, says in result.stderr) == (2, True)


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


def test_names_of_batches_outlive_a_coordinator_that_dies_before_the_new_shards_seal(
    broker, tmp_path, monkeypatch
):
    started = []

    class Engine:
        """Ends the process where the new shards are to begin, once."""

        def __init__(self, *given):
            self.shards = self
            if len(started) == 2:
                raise Crash

        def finish(self):
            pass

        def stop(self):
            pass

        def ask(self, shard, what, stream):
            told = Future()
            told.set_result(f"{what} of {stream}".encode())
            return told

    monkeypatch.setattr(server, "call_actor", lambda method, *given: method(*given))
    monkeypatch.setattr(server, "RayShards", lambda _, router, *given: started.append(given[2]))
    monkeypatch.setattr(server, "ClusterEngine", Engine)
    store = f"sqlite:///{tmp_path}/releases.sqlite"
    ReleaseStore(store).close()
    config = Config(
        streams={"visits": planned()},
        cluster=ClusterConfig(name="renumbered"),
        releases=ReleasesConfig(store=store),
    )
    recorded(tmp_path, time.time())
    vault = Vault(tmp_path / "panprivacy.sealed")
    path = tmp_path / "panprivacy-coordinator.json"
    for shard in (1, 2, 3):
        (tmp_path / f"panprivacy-{shard}-of-2.sealed").touch()
        (tmp_path / f"panprivacy-{shard}-of-3.sealed").touch()
    begin = _Beginning(config, None, path, broker, vault, Patience(0)).engine
    with pytest.raises(Crash):
        begin(RecordFile.load(path), 3, fresh=False)
    assert vault.found() == []
    begin(RecordFile.load(path), 3, fresh=False)
    assert started == [{}, {"visits": b"names of visits"}, {"visits": b"names of visits"}]
    vault.close()
