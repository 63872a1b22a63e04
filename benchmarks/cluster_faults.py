"""What each fault costs a cluster: `python -m benchmarks.cluster_faults [FAULT ...]`, as root.

Senders post bodies under an Idempotency-Key and repeat each until it is taken: half of them wait
for `durable=1`. No id is sent in two bodies, and epsilon is so large that answers are exact. So the
answers of all windows tell what was lost, and what was counted twice; and each window that is
`complete` must have the rows that were taken in it. While they send, something breaks just before
the end of a window, or just after it. Ray, NATS and the cluster are real; the second node of Ray
has a network namespace of its own, and another way to NATS than to Ray, which can be cut.

Prints a line for each fault, and then what senders, `/healthz` and the journal said. The script
exits with 1 where an acknowledged event is lost, counted twice, or in a wrong window.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx
import msgspec
from tests.cluster.nats import NatsServer, found_nats
from tests.cluster.running import RunningCluster
from tests.service.running import HARDENED, TOKENS, rows_of, wait_until

from panprivacy.cluster.record import ClusterRecord
from panprivacy.cluster.vault import LEASE

WINDOW = 15
SHARDS = 2
SENDERS = 4
PAUSE = 0.2
PATIENCE = 60.0
"""Seconds that a sender waits for an answer."""
RELEASE_PATIENCE = 240
"""Seconds that a release waits for a shard: on a crowded machine one takes a minute to start."""
START_PATIENCE = 600
"""Seconds for a start, on a machine that may be crowded."""
CUT_SECONDS, FULL_SECONDS, AWAY_SECONDS = 20.0, 12.0, 12.0
SHORT_SECONDS, LONG_SECONDS = 0.7 * LEASE, 2 * LEASE
"""Within the lease of a shard, and beyond it."""
NOTHING = "rate", "8kbit", "burst", "10", "limit", "10"
"""A bucket that holds no packet: all are dropped, and nobody is told."""
LITTLE = "rate", "256kbit", "burst", "8kb", "latency", "1s"
SMALL = 3 << 20
"""Bytes of a disk that becomes full."""
_QUEUED, _SEALED = "queued", "sealed"
STREAMS = "".join(
    f"""
[streams.{stream}]
epsilon = 200
window = "{WINDOW}s"
ids = "integers"
[[streams.{stream}.stat]]
name = "incidence"
universe = 20_000
bound = 3
exactly = "1:3"
"""
    for stream in (_QUEUED, _SEALED)
)
_ARGUMENT = re.compile(r"state=(\d+)")
_LINE = re.compile(r"^panprivacy: (.*)$", re.MULTILINE)


@dataclass
class Submission:
    """What a sender has sent, and was told."""

    events: int = 0
    taken: list[tuple[float, float, int]] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)


class Senders:
    """Post bodies until they are taken; every fifth is repeated after that."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url, self._ids = url, {_QUEUED: itertools.count(), _SEALED: itertools.count()}
        self.sent = {_QUEUED: Submission(), _SEALED: Submission()}
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(one, (_QUEUED, _SEALED)[one % 2]), daemon=True)
            for one in range(SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send no more bodies; those that are under way are repeated until they are taken."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(START_PATIENCE)
            if thread.is_alive():
                sys.exit("a body is not taken")

    def _run(self, sender: int, stream: str) -> None:
        with httpx.Client(trust_env=False, verify=False, timeout=PATIENCE) as client:
            for number in itertools.count():
                if self._stopping.is_set():
                    return
                rows = 3 + (37 * number + 11 * sender) % 23
                with self._lock:
                    ids = list(itertools.islice(self._ids[stream], rows))
                began = time.time()
                self._insist(client, stream, f"{sender}-{number}", ids)
                with self._lock:
                    self.sent[stream].events += rows
                    self.sent[stream].taken.append((began, time.time(), rows))
                if number % 5 == 0:
                    self._insist(client, stream, f"{sender}-{number}", ids)
                self._stopping.wait(PAUSE)

    def _insist(self, client: httpx.Client, stream: str, key: str, ids: list[int]) -> None:
        while not self._post(client, stream, key, ids):
            time.sleep(0.3)

    def _post(self, client: httpx.Client, stream: str, key: str, ids: list[int]) -> bool:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        headers["Authorization"] = f"Bearer {TOKENS['ingest']}"
        try:
            answer = client.post(
                f"{self._url()}/v1/streams/{stream}/updates",
                params={"durable": int(stream == _SEALED)},
                content=rows_of(ids),
                headers=headers,
            )
            told = str(answer.status_code)
        except httpx.HTTPError as error:
            told = "no answer" if isinstance(error, httpx.TimeoutException) else "no connection"
        sent = self.sent[stream]
        with self._lock:
            sent.told[told] += 1
            if told in {"200", "202"}:
                sent.acknowledged.append(time.time())
        return told in {"200", "202"}


class Scene:
    """A cluster, its broker, its folders and its senders.

    Args:
        folder: of its own.
        shards: how many there are.
        ways: network namespaces, for a second node of Ray; None for one node.
        patience: seconds that a release waits for a shard.
    """

    def __init__(self, folder: Path, shards: int, ways: Ways | None, patience: int) -> None:
        self.folder, self.shards, self.ways = folder, shards, ways
        host = "127.0.0.1" if ways is None else ways.broker
        self.nats = NatsServer(found_nats(), host=host)
        self.store = folder / "store"
        self.store.mkdir()
        url = f'[releases]\nstore = "sqlite:///{self.store}/releases.sqlite"\n'
        (folder / "vault").mkdir()
        (folder / "r").mkdir()
        self.cluster = RunningCluster(folder, self.nats.url, STREAMS, command=HARDENED)
        self.cluster.configure(
            f'[cluster]\nnats = ["{self.nats.url}"]\nname = "faults"\nqueue_bytes = 33_554_432\n'
            f'patience = "{patience}s"\nstart_patience = "{START_PATIENCE}s"\n'
            + url + STREAMS,
            server='listen = "127.0.0.1:0"\n',
            checkpoint=f'every = "1s"\npath = "{folder}/vault/panprivacy.sealed"',
        )  # fmt: skip
        self.troubles: Counter[str] = Counter()
        self.journal: list[str] = []
        self._address = "http://127.0.0.1:1"
        self.began = self.broke = self.healed = 0.0
        self._watching = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """All of it; what is left of it ends."""
        os.environ["RAY_TMPDIR"] = str(self.folder / "r")
        os.environ["RAY_AUTH_MODE"] = "disabled"  # nobody else reaches these nodes
        watcher = threading.Thread(target=self._watch, daemon=True)
        with self.nats, self.cluster:
            try:
                self.start()
                self.began, self.senders = time.time(), Senders(lambda: self._address)
                watcher.start()
                yield
            finally:
                self._watching.set()

    def start(self, *, shards: int | None = None) -> None:
        """Start the cluster, and wait until it answers."""
        self.shards = shards or self.shards
        options = ["--shards", str(self.shards)]
        if self.ways is not None:
            options += ["--address", self.ways.ray]
        try:
            self.cluster.start(*options, patience=START_PATIENCE)
        except TimeoutError:
            raise RuntimeError(self.cluster.said) from None
        if self.ways is not None and not self.ways.has_shard():
            sys.exit("Ray has put no shard on the second node: try again")
        self._address = self.cluster.url()

    def again(self, *, shards: int | None = None) -> None:
        """Keep what the journal says, and start the cluster again."""
        self._note_journal()
        self._address = "http://127.0.0.1:1"
        self.start(shards=shards)

    @property
    def record(self) -> ClusterRecord:
        """What the coordinator has written down."""
        path = self.folder / "vault" / "panprivacy-coordinator.json"
        return msgspec.json.decode(path.read_bytes(), type=ClusterRecord)

    def near_the_end(self) -> None:
        """Wait until two seconds before the end of a window that is counted from its start on."""
        wait_until(lambda: len(self.senders.sent[_SEALED].acknowledged) > 8)
        now = time.time() + 2
        whole = (self.began // WINDOW + 1) * WINDOW
        time.sleep(max(now // WINDOW * WINDOW, whole) + WINDOW - now)

    def finish(self) -> None:
        """Wait until counting goes on, stop sending, and wait for the last window's answer."""
        sealed = self.senders.sent[_SEALED].acknowledged
        wait_until(lambda: sealed[-1] > self.healed + 1, START_PATIENCE)
        self.senders.stop()
        last = time.time()
        wait_until(
            lambda: all(one.window > last and not one.cuts for one in self.record.streams.values()),
            START_PATIENCE,
        )
        self._note_journal()

    def rows(self, stream: str) -> list[dict]:
        """All answers."""
        return self.cluster.releases(stream)

    def _note_journal(self) -> None:
        said = [self.cluster.said]
        said += [one.read_text() for one in (self.folder / "r").glob("ray/session_2*/logs/*.err")]
        known = Counter(self.journal)
        now = Counter(line for text in said for line in _LINE.findall(text))
        self.journal += list((now - known).elements())

    def _watch(self) -> None:
        while not self._watching.wait(0.5):
            with suppress(Exception):
                self.troubles.update(
                    f"{what}: {why}" for what, why in self.cluster.health()["troubles"].items()
                )


class Ways:
    """A namespace for a second node of Ray, with one way to Ray and one to NATS."""

    ray_head, ray_node, broker, node = "10.231.1.1", "10.231.1.2", "10.231.2.1", "10.231.2.2"
    port = 26_379

    @property
    def ray(self) -> str:
        """Where Ray is."""
        return f"{self.ray_head}:{self.port}"

    @contextmanager
    def up(self, folder: Path, identity: str) -> Iterator[None]:
        """Both nodes of Ray."""
        environment = {
            **os.environ,
            "PANPRIVACY_IDENTITY": identity,
            "RAY_AUTH_MODE": "disabled",  # nobody else reaches these nodes
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            "RAY_TMPDIR": str(folder / "r"),
        }
        few = ["--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats"]
        ray = str(Path(sys.executable).with_name("ray"))
        try:
            _run("ip", "netns", "add", "panfaults")
            for near, far, here, there in (
                ("panray0", "panray1", self.ray_head, self.ray_node),
                ("pannats0", "pannats1", self.broker, self.node),
            ):
                _run("ip", "link", "add", near, "type", "veth", "peer", "name", far,
                     "netns", "panfaults")  # fmt: skip
                _run("ip", "addr", "add", f"{here}/24", "dev", near)
                _run("ip", "link", "set", near, "up")
                _inside("ip", "addr", "add", f"{there}/24", "dev", far)
                _inside("ip", "link", "set", far, "up")
            _inside("ip", "link", "set", "lo", "up")
            head = ["start", "--head", f"--node-ip-address={self.ray_head}", f"--port={self.port}",
                    "--include-dashboard=false"]  # fmt: skip
            _run(ray, *head, *few, env=environment)
            node = ["start", f"--address={self.ray}", f"--node-ip-address={self.ray_node}"]
            _inside(ray, *node, *few, env=environment)
            yield
        finally:
            for pid in _processes_with(str(folder / "r")):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for words in (("netns", "del", "panfaults"), ("link", "del", "panray0"),
                          ("link", "del", "pannats0")):  # fmt: skip
                subprocess.run(["ip", *words], check=False, capture_output=True)

    def spoil(self, *how: str) -> None:
        """Have what goes between the second node and NATS be dropped, or wait."""
        _run("tc", "qdisc", "add", "dev", "pannats0", "root", "tbf", *how)
        _inside("tc", "qdisc", "add", "dev", "pannats1", "root", "tbf", *how)

    def mend(self) -> None:
        """As it was."""
        _run("tc", "qdisc", "del", "dev", "pannats0", "root")
        _inside("tc", "qdisc", "del", "dev", "pannats1", "root")

    @staticmethod
    def has_shard() -> bool:
        """Whether Ray has put a shard on the second node."""
        pids = _inside("ip", "netns", "pids", "panfaults").split()
        return any(_command(int(pid)).startswith("ray::_Hardened") for pid in pids)

    @staticmethod
    def raylet() -> int:
        """Of the second node."""
        inside = _inside("ip", "netns", "pids", "panfaults").split()
        return next(int(pid) for pid in inside if "raylet/raylet" in _command(int(pid)))


def _run(*words: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=env)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr}{done.stdout}")
    return done.stdout


def _inside(*words: str, env: dict[str, str] | None = None) -> str:
    return _run("ip", "netns", "exec", "panfaults", *words, env=env)


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def _processes_with(words: str) -> list[int]:
    """Of the Ray that was started here, which writes to a folder of its own."""
    numbers = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal()]
    return [pid for pid in numbers if words in _command(pid) and pid != os.getpid()]


# Faults: each breaks something, and returns when it is mended


def nothing(_: Scene) -> None:
    """Nothing breaks, for comparison."""


def shard_killed(scene: Scene) -> None:
    """The process of a shard is killed (kill -9)."""
    os.kill(scene.cluster.workers[0], signal.SIGKILL)


def shard_killed_at_the_end(scene: Scene) -> None:
    """The process of a shard is killed 0.1 s after the end of a window, two seconds later."""
    now = time.time()
    time.sleep((now // WINDOW + 1) * WINDOW + 0.1 - now)
    os.kill(scene.cluster.workers[0], signal.SIGKILL)


def coordinator_killed(scene: Scene) -> None:
    """The coordinator is killed, and started again."""
    scene.cluster.kill()
    scene.again()


def told_to_stop(scene: Scene) -> None:
    """The coordinator is told to stop (SIGTERM), and started again."""
    scene.cluster.stop()
    scene.again()


def coordinator_killed_at_the_end(scene: Scene) -> None:
    """The coordinator is killed at the cut, release and publication of windows, and started."""
    for after in (0.02, 0.2, 0.6):
        now = time.time()
        time.sleep((now // WINDOW + 1) * WINDOW + after - now)
        coordinator_killed(scene)


def killed_while_starting(scene: Scene) -> None:
    """The coordinator is killed, and again 1, 4 and 10 s after it is started again."""
    scene.cluster.kill()
    for seconds in (1.0, 4.0, 10.0):
        with suppress(TimeoutError):
            scene.cluster.start("--shards", str(scene.shards), patience=seconds)
        scene.cluster.kill()
    scene.again()


def killed_while_stopping(scene: Scene) -> None:
    """The coordinator is told to stop, killed 0.3 s later, and started again."""
    scene.cluster.signal(signal.SIGTERM)
    time.sleep(0.3)
    coordinator_killed(scene)


def agents_killed(scene: Scene) -> None:
    """All helpers of Ray that it does without are killed; then one, without which it ends."""
    for words in ("log_monitor.py", "/monitor.py", "/dashboard.py", "leftovers.py"):
        os.kill(scene.cluster.process(words), signal.SIGKILL)
    time.sleep(2.0)
    _end_by(scene, "ray::RuntimeEnvAgent")


def broker_killed(scene: Scene) -> None:
    """The broker is killed, and started again after 3 s without its memory."""
    scene.nats.kill()
    time.sleep(3)
    scene.nats.start()


def broker_and_shard_killed(scene: Scene) -> None:
    """The broker and the process of a shard are killed; the broker is started again after 3 s."""
    os.kill(scene.cluster.workers[0], signal.SIGKILL)
    broker_killed(scene)


def vault_killed(scene: Scene) -> None:
    """The process of the vault is killed."""
    os.kill(scene.cluster.process("ray::Vault"), signal.SIGKILL)


def vault_slow(scene: Scene) -> None:
    """The vault stands still for 25 s, and a shard is killed when it goes on."""
    _stand_still(scene.cluster.process("ray::Vault"), 25.0)
    time.sleep(0.2)
    os.kill(scene.cluster.workers[0], signal.SIGKILL)


def node_killed(scene: Scene) -> None:
    """The raylet of the second node is killed."""
    os.kill(scene.ways.raylet(), signal.SIGKILL)


def network_cut(scene: Scene) -> None:
    """A shard and NATS cannot reach each other for 20 s."""
    scene.ways.spoil(*NOTHING)
    time.sleep(CUT_SECONDS)
    scene.ways.mend()


def network_slow(scene: Scene) -> None:
    """Between a shard and NATS go 256 kbit/s, which is less than what comes, for 20 s."""
    scene.ways.spoil(*LITTLE)
    time.sleep(CUT_SECONDS)
    scene.ways.mend()


def shard_slow(scene: Scene) -> None:
    """A shard stands still for 7 s (SIGSTOP), and goes on."""
    _stand_still(scene.cluster.workers[0], SHORT_SECONDS)


def shard_still(scene: Scene) -> None:
    """A shard stands still for 20 s, and ends when it is woken, as its lease is over."""
    _stand_still(scene.cluster.workers[0], LONG_SECONDS)


def raylet_killed(scene: Scene) -> None:
    """The raylet of this machine is killed; the command ends, and is started again."""
    _end_by(scene, "raylet/raylet")


def gcs_killed(scene: Scene) -> None:
    """The GCS of Ray is killed; the command ends, and is started again."""
    _end_by(scene, "gcs_server")


def vault_full(scene: Scene) -> None:
    """The disk of the vault is full for 12 s."""
    _fill(scene.folder / "vault")


def store_full(scene: Scene) -> None:
    """The disk of the release store is full for 12 s."""
    _fill(scene.store)


def store_gone(scene: Scene) -> None:
    """The folder of the release store is away for 12 s."""
    away = scene.folder / "away"
    scene.store.rename(away)
    time.sleep(AWAY_SECONDS)
    away.rename(scene.store)


def resharded(scene: Scene) -> None:
    """SIGTERM; started with 3 shards after the window; again with 2, with bodies left in queues."""
    for shards in (3, 2):
        _stop_with_a_rest(scene)
        _after_the_window(scene)
        scene.again(shards=shards)
        started = time.time()
        wait_until(
            lambda at=started: scene.senders.sent[_SEALED].acknowledged[-1] > at, START_PATIENCE
        )
        scene.near_the_end()


def _stop_with_a_rest(scene: Scene) -> None:
    """Kill all while a shard has not counted what is in its queue."""
    os.kill(scene.cluster.workers[0], signal.SIGSTOP)
    time.sleep(1.0)
    scene.cluster.kill()


def _stand_still(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def _end_by(scene: Scene, words: str) -> None:
    """Kill a process of Ray without which the command cannot go on."""
    os.kill(scene.cluster.process(words), signal.SIGKILL)
    scene.cluster.ended(3 * PATIENCE)
    scene.again()


def _after_the_window(scene: Scene) -> None:
    wait_until(lambda: all(time.time() > one.ends for one in scene.record.streams.values()))


def _fill(folder: Path) -> None:
    """Leave no room on the disk of a folder."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4_096))
    time.sleep(FULL_SECONDS)
    filler.unlink()


HERE = (
    nothing,
    shard_killed,
    shard_killed_at_the_end,
    coordinator_killed,
    coordinator_killed_at_the_end,
    killed_while_starting,
    killed_while_stopping,
    agents_killed,
    told_to_stop,
    broker_killed,
    broker_and_shard_killed,
    vault_killed,
    vault_slow,
    raylet_killed,
    gcs_killed,
    shard_slow,
    shard_still,
    vault_full,
    store_full,
    store_gone,
    resharded,
)
BETWEEN = (node_killed, network_cut, network_slow)
SMALL_DISKS = {vault_full: "vault", store_full: "store"}
ALONE, IMPATIENT = "one_shard", "network_cut_impatient"
VARIANTS = {ALONE: "shard_killed", IMPATIENT: "network_cut"}
"""The same with a single shard; and with a patience that is shorter than the fault."""
SHARP_SECONDS = 0.5
"""How far from the clock a complete window may end."""
LITTLE_PATIENCE = 5
MAY_LOSE = {"broker_killed": {_QUEUED}, "broker_and_shard_killed": {_QUEUED},
            IMPATIENT: {_QUEUED, _SEALED}}  # fmt: skip
"""What is lost with the broker's memory; or dropped by a release that says so."""


def tried(name: str) -> bool:
    """Try one fault, and print what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="pf", dir="/tmp"))
    faults = {one.__name__: one for one in (*HERE, *BETWEEN)}
    fault = faults[VARIANTS.get(name, name)]
    ways = Ways() if fault in BETWEEN else None
    disk = SMALL_DISKS.get(fault)
    try:
        patience = LITTLE_PATIENCE if name == IMPATIENT else RELEASE_PATIENCE
        shards = 1 if name == ALONE else SHARDS + (ways is not None)  # one is on the second node
        scene = Scene(folder, shards, ways, patience)
        if disk is not None:
            _run("mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(folder / disk))
        with _both(ways, folder, scene), scene.running():
            scene.near_the_end()
            scene.broke = time.time()
            fault(scene)
            scene.healed = time.time()
            scene.finish()
            return _tell(name, fault.__doc__ or "", scene)
    finally:
        if disk is not None:
            subprocess.run(["umount", "-l", str(folder / disk)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _both(ways: Ways | None, folder: Path, scene: Scene) -> Iterator[None]:
    if ways is None:
        yield
        return
    with ways.up(folder, scene.cluster.identity.read_text().strip()):
        yield


def _tell(name: str, what: str, scene: Scene) -> bool:
    """Print what came of a fault; whether what was acknowledged is counted once."""
    right = True
    line: list[str] = [name]
    rows = {stream: scene.rows(stream) for stream in (_QUEUED, _SEALED)}
    for stream, sent in scene.senders.sent.items():
        counted = defaultdict(int)
        for row in rows[stream]:
            counted[int(_ARGUMENT.fullmatch(row["arguments"])[1])] += round(row["value"])
        doubled = sum(times * (state - 1) for state, times in counted.items() if state > 1)
        lost = sent.events - sum(state * times for state, times in counted.items())
        right &= not doubled and (lost == 0 or (lost > 0 and stream in MAY_LOSE.get(name, ())))
        line.append(f"{stream} {sent.events:,} lost {lost:,} twice {doubled:,}")
    wrong = [one for stream in rows for one in _wrong_windows(scene, stream, rows[stream])]
    right &= not wrong
    line += wrong
    for stream, sent in scene.senders.sent.items():
        pause, over = _still(sent.acknowledged, scene.broke)
        back = max(0.0, over - scene.healed)
        line.append(f"{stream} still {pause:.1f} s, back {back:.1f} s after")
    both = rows[_QUEUED] + rows[_SEALED]
    windows = {(row["stream"], row["start"], row["complete"], row["end"], row["released"])
               for row in both}  # fmt: skip
    ends = [(_seconds(end), _seconds(released)) for _, _, _, end, released in windows]
    late = max(released - end for end, released in ends if end > scene.broke)
    gaps = [
        end for _, _, complete, end, _ in windows if not complete and _seconds(end) > scene.broke
    ]
    line.append(f"windows {len(windows)}, not complete {len(gaps)}, latest {late:.1f} s")
    told = {stream: dict(sent.told) for stream, sent in scene.senders.sent.items()}
    print(f"| {' | '.join(line)} |\n  {what}\n  senders were told: {told}")
    notes = {row["note"] for row in both if row["note"] and "complete" in row["note"]}
    print(f"  notes: {notes or 'none'}")
    for trouble in sorted(scene.troubles):
        print(f"  healthz: {trouble}")
    for said, times in Counter(scene.journal).items():
        if not said.startswith(("listening", "each window", "epsilon")):
            print(f"  journal: {times} x {said}")
    print("  " + ("as it should be" if right else "WRONG"), flush=True)
    return right


def _wrong_windows(scene: Scene, stream: str, rows: list[dict]) -> list[str]:
    """The complete windows that lack rows which were taken in them, or have others."""
    counted: Counter[tuple[float, float]] = Counter()
    for row in rows:
        if row["complete"]:
            window = _seconds(row["start"]), _seconds(row["end"])
            state = int(_ARGUMENT.fullmatch(row["arguments"])[1])
            counted[window] += state * round(row["value"])
    found = []
    for (start, end), count in counted.items():
        taken = scene.senders.sent[stream].taken
        least = _taken(taken, start + SHARP_SECONDS, end - SHARP_SECONDS, whole=True)
        most = _taken(taken, start - SHARP_SECONDS, end + SHARP_SECONDS, whole=False)
        if not least <= count <= most:
            found.append(f"{stream} from {start:.0f} counted {count:,}, not {least:,} to {most:,}")
    return found


def _taken(taken: list[tuple[float, float, int]], start: float, end: float, *, whole: bool) -> int:
    """The rows that were posted and acknowledged between two moments; else those that may be."""
    edges = (0, 1) if whole else (1, 0)
    return sum(one[2] for one in taken if one[edges[0]] >= start and one[edges[1]] <= end)


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _still(acknowledged: list[float], broke: float) -> tuple[float, float]:
    """The longest time without an answer after something broke; and when it was over."""
    pairs = itertools.pairwise(sorted(acknowledged))
    return max((after - before, after) for before, after in pairs if after > broke)


def main(*names: str) -> None:
    """Try faults, all unless told which."""
    known = [one.__name__ for one in (*HERE, *BETWEEN)] + list(VARIANTS)
    if wrong := set(names) - set(known):
        sys.exit(f"no such fault: {', '.join(sorted(wrong))}; there are {', '.join(known)}")
    right = [tried(name) for name in names or known]
    sys.exit(not all(right))


if __name__ == "__main__":
    main(*sys.argv[1:])
