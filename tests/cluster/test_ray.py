"""Workers that Ray runs on several nodes: killed, moved, cut off from the vault, and searched.

One cluster of Ray with three nodes on this machine, and one cluster of this package in it, serve
all tests; the nodes' health is looked at often, so that a dead one is noticed soon.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from operator import gt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyrage
import pytest
import ray
from ray.cluster_utils import Cluster
from ray.exceptions import RayError

from panprivacy.cluster import actors
from panprivacy.cluster.actors import RayShards
from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import seal
from panprivacy.cluster.messages import Round
from panprivacy.cluster.queues import Position, Queue
from panprivacy.cluster.routing import Router
from panprivacy.cluster.waiting import Patience
from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.service.config.config import CheckpointConfig, ClusterConfig, Config
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.records import StoreError
from tests.cluster import publishing
from tests.cluster.shards import BEGAN, KEY, MOST, NEXT, USERS, batch, merged, planned
from tests.forensic.memory import (
    Needles,
    needs_administrator,
    pieces,
    processes_below,
    search_files,
    search_process,
    search_process_for_each,
)

SHARDS = 3
NAME = "raytest"
NAMES = StreamConfig(
    stat=({"name": "distinct", "expected": "100:10000"},), epsilon=planned().epsilon / 400,
    window="1h", retries=16,
)  # fmt: skip
_STORE_BYTES = 80 << 20
_QUEUE_BYTES = 1 << 22
_HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 1_000,
    "health_check_failure_threshold": 2,
}

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore:epsilon .* protects nobody"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of Ray
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Ray on three nodes, of which the first one has the vault; and where Ray writes."""
    folder = tmp_path_factory.mktemp("identity")
    key = pyrage.x25519.Identity.generate()
    (folder / "key").write_text(f"{key}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        head = {"num_cpus": 1, "object_store_memory": _STORE_BYTES, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args={**head, "_system_config": _HEALTH})
        others = [
            cluster.add_node(num_cpus=cpus, object_store_memory=_STORE_BYTES) for cpus in (0, 1)
        ]
        with actors.connected(cluster.address, Patience(0)):
            yield SimpleNamespace(
                cluster=cluster,
                others=others,
                key=key,
                command=("cat", str(folder / "key")),
                logs=cluster.head_node.get_session_dir_path(),
            )
        cluster.shutdown()


@pytest.fixture(scope="module")
def scene(nodes, shared_nats, tmp_path_factory):
    """A worker for each node, with a stream of numbers and one of texts."""
    path = str(tmp_path_factory.mktemp("vault") / "panprivacy.sealed")
    config = Config(
        streams={"visits": planned(), "names": NAMES},
        cluster=ClusterConfig(
            nats=(shared_nats.url,),
            name=NAME,
            queue_bytes=_QUEUE_BYTES,
            identity_command=nodes.command,
        ),
        checkpoint=CheckpointConfig(recipient=str(nodes.key.to_public()), path=path),
    )
    vault, broker = actors.start_vault(path), Broker(shared_nats.url)
    shards = started(config, vault, SHARDS)
    found = Scene(nodes, shared_nats.url, broker, vault, shards.workers, config)
    wait_until(lambda: len(found.report()) == SHARDS)
    yield found
    broker.close()


class Scene:
    """What a coordinator knows."""

    def __init__(self, nodes, url, broker, vault, shards, config):
        self.nodes, self.vault, self.shards, self.config = nodes, vault, shards, config
        self.broker, self.url = broker, url
        self._keys = {}
        self.last = {}

    def report(self):
        return {part.shard: told for part, (_, told) in asked(self.vault.report).items()}

    def incarnations(self):
        return [asked(one.__ray_call__, lambda worker: worker._incarnation) for one in self.shards]

    def send(self, stream, users, name=None):
        """Publish a body; it is in the broker when this returns."""
        self._keys.update(self.report())  # a vault that was started again knows nothing at first
        sent = Round(Router(SHARDS, KEY, numbered=True), 0, MOST)
        sent.add([batch(users)], name)
        for plains in sent.pack():
            queues = [Queue(NAME, stream, SHARDS, shard) for shard in range(SHARDS)]
            keys = [self._keys[shard][stream]["public"] for shard in range(SHARDS)]
            each = zip(queues, plains, keys, strict=True)
            sealed = [(one, seal(plain, key, one.subject)) for one, plain, key in each]
            self.last[stream] = self.broker.publish(sealed)

    def contributed(self, stream="visits", window=BEGAN):
        """The contributions of all shards through what was sent last."""
        key = pyrage.x25519.Identity.generate()
        public = str(key.to_public())
        packed = []
        for shard, cut in zip(self.shards, self.last[stream], strict=True):
            call = shard.contribute
            given = stream, window, 1, cut, True, window + 1_000.0, public
            packed.append(pyrage.decrypt(asked(call, *given), [key]))
        return packed

    def pid(self, actor):
        return asked(actor.__ray_call__, lambda _: os.getpid())

    def node(self, actor):
        return asked(actor.__ray_call__, lambda _: ray.get_runtime_context().get_node_id())


def started(config, vault, number):
    """Shards that Ray starts."""
    router = Router(number, KEY, numbered=True)
    return RayShards(config, router, dict.fromkeys(config.streams, BEGAN), vault, {})


def asked(method, *arguments):
    """What an actor answers, though it may have to be started again first."""
    until = time.monotonic() + 60.0
    while True:
        try:
            return ray.get(method.remote(*arguments), timeout=20.0)
        except (RayError, StoreError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def wait_until(true, seconds=60.0):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_shards_are_spread_evenly_over_the_nodes(scene):
    nodes = [scene.nodes.cluster.head_node, *scene.nodes.others]
    assert sorted(map(scene.node, scene.shards)) == sorted(one.node_id for one in nodes)


def test_workers_are_hardened_and_told_no_secret(scene):
    for shard in scene.shards:
        troubles = asked(shard.troubles)
        assert not {"allocator", "dumps", "swap", "beginning"} & troubles.keys()


def test_what_goes_wrong_crosses_ray_as_words_of_ours(scene):
    position = Position(0, 0)
    given = "visits", BEGAN + 7, 1, position, True, NEXT, str(scene.nodes.key.to_public())
    with pytest.raises(PlanError, match="its next one is number 1"):
        ray.get(scene.shards[0].contribute.remote(*given))
    with pytest.raises(PanPrivacyError, match="failed with KeyError"):
        ray.get(scene.shards[0].announce.remote("canary-of-nobody", BEGAN, 1))


def test_nothing_is_lost_or_counted_twice_whatever_is_killed(scene):
    """A shard, the vault and a whole node are killed while bodies come; some are sent twice."""
    sent, stopping = [], threading.Event()
    places = [scene.node(one) for one in scene.shards]

    def sending():
        for number in range(0, USERS - 4, 4):
            users = range(number, number + 4)
            scene.send("visits", users, b"%d" % number)
            sent.extend(users)
            if not number % 16:
                scene.send("visits", users, b"%d" % number)
            if stopping.wait(0.2):
                return

    sender = threading.Thread(target=sending)
    sender.start()
    try:
        before = scene.incarnations()
        for actor in (scene.shards[0], scene.vault):
            os.kill(scene.pid(actor), signal.SIGKILL)
        wait_until(lambda: all(map(gt, scene.incarnations(), before)))
        assert [scene.node(one) for one in scene.shards] == places, "each stays where it was"
        gone = scene.nodes.others[1]
        scene.nodes.cluster.remove_node(gone, allow_graceful=False)
        moved = scene.shards[places.index(gone.node_id)]
        wait_until(lambda: scene.node(moved) != gone.node_id)
    finally:
        stopping.set()
        sender.join()
    assert merged(scene.contributed()) == [len(sent), 0, 0]
    assert len(sent) > 20


def test_no_call_is_in_progress_once_shards_are_closed(scene):
    """One that is when Ray is shut down never ends, and keeps the process from ending."""
    shards = started(scene.config, scene.vault, SHARDS + 1)
    calls = [shards.ask(shard, "troubles") for shard in range(SHARDS + 1) for _ in range(8)]
    shards.close()
    assert all(one.done() for one in calls)
    assert any(isinstance(one.exception(), StoreError) for one in calls if not one.cancelled())


@needs_administrator
def test_nothing_of_ids_or_the_identity_is_left_in_any_process_or_file_of_ray(scene, tmp_path):
    """The workers have had the identity, when they went on. An object of Ray is the control."""
    drawn, told = tmp_path / "ids", scene.report()
    keys = [told[shard]["names"]["public"].hex() for shard in range(SHARDS)]
    command = [sys.executable, "-m", "tests.cluster.publishing", scene.url, NAME, "names"]
    subprocess.run([*command, str(drawn), *keys], check=True)
    cuts = [scene.broker.last(Queue(NAME, "names", SHARDS, shard)) for shard in range(SHARDS)]
    wait_until(lambda: [one["names"]["position"] for one in ordered(scene.report())] == cuts)
    scene.last["names"] = cuts
    assert all(scene.contributed("names"))
    pids = {scene.pid(one) for one in [*scene.shards, scene.vault]}
    time.sleep(0.5)  # the keeper wipes after each state
    names = np.fromfile(drawn, f"V{publishing.BYTES}").tolist()
    needles = Needles.of(pieces(names), pieces([str(scene.nodes.key).encode()[16:48]]))
    assert pids <= set(ray_processes())
    found = [search_process_for_each(pid, needles).tolist() for pid in ray_processes()]
    assert not np.any(found), found
    assert not search_files(Path(scene.nodes.logs), needles)
    control = ray.put(names[0] * 1_000)
    assert any(search_process(pid, needles) for pid in ray_processes())
    del control


def ordered(told):
    return [told[shard] for shard in range(SHARDS)]


def ray_processes():
    """All that this Ray runs."""
    return [
        pid
        for pid in processes_below(os.getpid())[1:]
        if b"ray" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
