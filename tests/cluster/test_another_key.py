"""Keys that change while processes are killed: those of messages, and that of states."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field

import httpx
import pyrage
import pytest

from panprivacy.cluster.queues import Position
from panprivacy.cluster.vault import Vault
from panprivacy.cluster.worker import Worker, WorkerConfig
from panprivacy.service.config.config import ClusterConfig
from panprivacy.statistics.merging import Merger
from panprivacy.tables.slices import Slice
from tests.cluster.running import RunningCluster, stream
from tests.cluster.shards import BEGAN, KEY, USERS, merged, planned, queue, sealed
from tests.service.running import wait_until

pytestmark = [
    pytest.mark.filterwarnings("ignore:epsilon .* protects nobody"),
    pytest.mark.long,
]
KEY_SECONDS = 2.0
"""For which messages are sealed to one key: senders hear of another one much sooner."""


# Keys of messages


@dataclass(frozen=True)
class Told:
    """What a process is to do, in its arguments.

    Args:
        folder: of the vault.
        url: of the broker.
        name: of the cluster.
        recipient: of the states.
    """

    folder: str
    url: str
    name: str
    recipient: str


class Telling(Vault):
    """A vault that prints what it was told last."""

    def keep(self, part, incarnation, number, sealed, report):
        super().keep(part, incarnation, number, sealed, report)
        one = report["visits"]
        position = one["position"].born, one["position"].sequence
        tell([one["public"].hex(), *position])


def tell(what):
    """Tell the test, in a line."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def work(told):
    """Be a shard and its vault; at a line of the input, print a contribution through a position."""
    config = WorkerConfig(
        part=Slice(0, 1, KEY),
        streams={"visits": planned()},
        begins={"visits": BEGAN},
        cluster=ClusterConfig(nats=(told.url,), name=told.name, queue_bytes=1 << 22),
        recipient=told.recipient,
        every=0.02,
        key_seconds=KEY_SECONDS,
    )
    worker = Worker(config, Telling(told.folder + "/panprivacy.sealed"))
    asked = json.loads(input())
    packed = worker.contribute(
        "visits", BEGAN, 1, Position(*asked["through"]), True, BEGAN + 1_000.0, asked["recipient"]
    )
    worker.stop()
    tell(packed.hex())


@dataclass
class Shard:
    """A process that counts; as its sender knows it.

    Args:
        told: its arguments.
        environment: with the private key.
    """

    told: Told
    environment: dict[str, str]
    publics: list[bytes] = field(default_factory=list)
    position: Position | None = None
    contribution: bytes | None = None

    def start(self):
        """Start it, and wait until it has stored a state."""
        program = "import json, sys; from tests.cluster.test_another_key import Told, work; "
        program += "work(Told(**json.loads(sys.argv[1])))"
        self.position = None
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(asdict(self.told))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
            text=True,
        )
        self._hearing = threading.Thread(target=self._hear, args=(self._process,))
        self._hearing.start()
        wait_until(lambda: self.position is not None)

    def kill(self):
        """End it at once."""
        self._process.send_signal(signal.SIGKILL)
        self._wait()

    def contribute(self, through, recipient):
        """Have it count through a position, contribute, and end."""
        asked = {"through": [through.born, through.sequence], "recipient": recipient}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        wait_until(lambda: self.contribution is not None)
        self._wait()
        return self.contribution

    def _wait(self):
        self._process.wait()
        self._process.stdin.close()
        self._hearing.join()

    def _hear(self, process):
        with process.stdout as lines:
            for line in lines:
                said = json.loads(line)
                if isinstance(said, str):
                    self.contribution = bytes.fromhex(said)
                    continue
                public = bytes.fromhex(said[0])
                if public not in self.publics[-1:]:
                    self.publics.append(public)
                self.position = Position(*said[1:])


@contextmanager
def sending(broker, shard):
    """Send a user at a time, each to the key that the shard has told of last, until it ends."""
    sent, stopping = [], threading.Event()

    def send():
        for user in range(USERS):
            body = sealed([shard.publics[-1]], [user])
            sent.extend(broker.publish([(queue(0, 1), *body)]))
            if stopping.wait(0.1):
                return

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        stopping.set()
        thread.join()


def test_no_message_is_lost_or_doubled_by_kills_while_its_key_changes(
    tmp_path, shared_nats, broker, monkeypatch
):
    name = f"test-{os.getpid()}-keys"
    monkeypatch.setattr("tests.cluster.shards.NAME", name)
    ours, coordinator = (pyrage.x25519.Identity.generate() for _ in range(2))
    told = Told(str(tmp_path), shared_nats.url, name, str(ours.to_public()))
    shard = Shard(told, {**os.environ, "PANPRIVACY_IDENTITY": str(ours)})
    seed = random.Random(43)
    shard.start()
    with sending(broker, shard) as sent:
        for _ in range(4):
            known = len(shard.publics)
            wait_until(lambda known=known: len(shard.publics) > known)
            time.sleep(seed.choice([0.0, 0.02, KEY_SECONDS - 0.02]))
            shard.kill()
            shard.start()
    packed = shard.contribute(sent[-1], str(coordinator.to_public()))
    packed = pyrage.decrypt(packed, [coordinator])
    assert len(set(shard.publics)) >= 4, "no key has changed"
    assert merged([packed]) == [len(sent), 0, 0]
    assert Merger([packed]).complete


# The key of states


def insist(cluster, ids, key):
    """Send a batch until it is acknowledged: a shard may take long to start."""

    def sent():
        with suppress(httpx.TimeoutException):
            return cluster.send(ids, durable=True, key=key).status_code == 200
        return False

    wait_until(sent, 600)


@pytest.mark.ray
@pytest.mark.timeout(1_800)  # four starts of Ray
def test_a_cluster_goes_on_with_another_recipient_though_it_is_killed_in_between(tmp_path, nats):
    with RunningCluster(tmp_path, nats.url, stream("1d", "releases = 2")) as cluster:
        before = cluster.identity.read_text()
        cluster.start("--shards", "2")
        assert cluster.send(range(100), durable=True, key="a").status_code == 200
        cluster.kill()
        after = pyrage.x25519.Identity.generate()
        text = cluster.config.read_text()
        cluster.config.write_text(text.replace(cluster.recipient, str(after.to_public())))
        cluster.identity.write_text(f"{after}\n")
        with pytest.raises(RuntimeError, match="the service has ended"):
            cluster.start("--shards", "2")
        assert cluster.said.endswith(
            "after a change of recipient, give the private key of before too\n"
        )
        assert "Traceback" not in cluster.said
        cluster.identity.write_text(f"{before}{after}\n")
        cluster.start("--shards", "2")
        assert cluster.send(range(100), durable=True, key="a").status_code == 200  # counted once
        assert cluster.send(range(100, 150), durable=True, key="b").status_code == 200
        cluster.kill()
        cluster.identity.write_text(f"{after}\n")
        cluster.start("--shards", "2")
        os.kill(cluster.workers[0], signal.SIGKILL)
        insist(cluster, range(100, 150), "b")
        insist(cluster, range(150, 170), "c")
        assert cluster.release().status_code == 201
        counted = {row["argument"]: round(row["value"]) for row in cluster.releases()}
        assert counted == {1: 170, 2: 0}
