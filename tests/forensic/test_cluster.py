"""Nothing is left of ids that went through a cluster: gateway, broker, Ray, shards, vault.

Ids come in several formats, and are looked for as they came, and as the hashes that stand for them
on the way to a shard. Those that wait for a shard that stands still are in the broker as
ciphertext alone. Once they are acknowledged, nothing of them may be in the memory or the registers
of any process, in memory that processes share, or in any file. The same ids in a plain object of
Ray, and as an argument of a plain actor, show that the search finds what is there.
"""

from __future__ import annotations

import http.client
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pyarrow as pa
import pytest

from panprivacy.cluster.record import RecordFile
from tests.cluster.nats import NatsServer, found_nats
from tests.cluster.running import RunningCluster
from tests.service.running import HARDENED, TOKENS, wait_until

from .memory import (
    Needles,
    needs_administrator,
    pieces,
    processes_below,
    search_files,
    search_open_files,
    search_process_for_each,
    search_registers,
)
from .test_service import (
    ARROW,
    CSV,
    INT64,
    NDJSON,
    SMALL,
    arrow,
    bytes_of,
    csv,
    int64,
    ndjson,
    ndjson_numbers,
    numbers,
    texts,
    windows_of,
)

pytestmark = [needs_administrator, pytest.mark.ray]

LARGE = 40_000
"""Numbers whose body is longer than 256 KiB, so that a thread of the gateway takes it."""
FEW = 500
SWEPT_SECONDS = 3.0
WINDOW_SECONDS = 15
STREAMS = """
[streams.numbers]
epsilon = 1
window = "1d"
ids = "integers"
[[streams.numbers.stat]]
name = "distinct"
expected = "1000:1e6"

[streams.texts]
epsilon = 1
window = "1d"
[[streams.texts.stat]]
name = "distinct"
expected = "1000:1e6"
"""
SHORT = STREAMS.replace('"1d"', f'"{WINDOW_SECONDS}s"')
"""The same in short windows."""
BODIES = [
    ("numbers", numbers, INT64, int64, FEW),
    ("numbers", numbers, INT64, int64, LARGE),
    ("numbers", numbers, NDJSON, ndjson_numbers, FEW),
    ("texts", texts, ARROW, arrow, SMALL),
    ("texts", texts, NDJSON, ndjson, SMALL),
    ("texts", texts, CSV, csv, SMALL),
]
SHARED, RAY = Path("/dev/shm"), Path("/tmp/ray")
PLAIN_RAY = """
import sys, ray
from pathlib import Path
ray.init("local", num_cpus=1, object_store_memory=80 << 20, include_dashboard=False)
ids = Path(sys.argv[1]).read_bytes()
@ray.remote(num_cpus=0)
class Plain:
    def take(self, ids):
        self.ids = bytes(ids)
actor, kept = Plain.remote(), ray.put(ids)
ray.get(actor.take.remote(ids[: 1 << 16]))
print("kept", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def scene(compiled, monkeypatch, request):
    """A cluster of two hardened shards that writes into one folder, and its broker."""
    streams = getattr(request, "param", STREAMS)
    for role in TOKENS:  # as long as those of init: searched for, they are nowhere by chance
        monkeypatch.setitem(TOKENS, role, f"pp_{secrets.token_urlsafe(24)}")
    with tempfile.TemporaryDirectory(prefix="pp-") as folder:  # Ray's sockets need short names
        wanted = dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), folder)
        for name, place in {**wanted, "NUMBA_CACHE_DIR": str(compiled)}.items():
            monkeypatch.setenv(name, place)
        with (
            NatsServer(found_nats()) as nats,
            RunningCluster(folder, nats.url, streams, command=HARDENED) as cluster,
        ):
            cluster.start("--shards", "2")
            yield cluster, nats
            cluster.stop()


def test_nothing_is_left_of_what_was_acknowledged(scene, tmp_path_factory):
    cluster, nats = scene
    waiting, sent = (send_all(cluster, nats, held) for held in (True, False))
    time.sleep(SWEPT_SECONDS)
    needles = sought(cluster, [*waiting, *sent])
    processes = [*(pid for pid, _ in cluster.processes()), nats.pid]
    assert found(processes, needles) == {}
    assert left_in_files(processes, [cluster.directory, nats.folder, SHARED], needles) == {}
    plain = tmp_path_factory.mktemp("plain") / "ids"
    plain.write_bytes(b"".join(row for ids, rows in sent if ids is texts for row in rows))
    with plain_ray(plain) as driver:
        control = found(processes_below(driver)[1:], needles)
        for kind in ("raylet", "ray::Plain"):
            assert any(kind in name for _, name in control), control


@pytest.mark.parametrize("scene", [SHORT], indirect=True)
def test_no_name_of_a_batch_and_no_token_is_left_while_it_counts_and_after_a_window(scene):
    """Of tokens the gateway has the hashes of its configuration, and nothing else."""
    cluster, nats = scene
    names = [secrets.token_urlsafe(24).encode() for _ in range(2 * len(BODIES))]
    for place, (stream, ids, kind, write, _) in enumerate(BODIES):
        for durable in (0, 1):
            body, name = write(ids(SMALL)), names[2 * place + durable].decode()
            assert post(cluster, stream, kind, body, durable, name) in {200, 202}
    descendants = [pid for pid, _ in cluster.processes()]
    assert {limit_of_cores(pid) for pid in descendants} == {"0"}
    needles = Needles.of(pieces([*names, *(token[3:].encode() for token in TOKENS.values())]))
    for wait in (SWEPT_SECONDS, WINDOW_SECONDS):
        time.sleep(wait)
        processes = [*(pid for pid, _ in cluster.processes()), nats.pid]
        assert found(processes, needles) == {}
    wait_until(lambda: cluster.releases("numbers"))


def limit_of_cores(pid):
    """How long a core dump of a process may be."""
    limits = Path(f"/proc/{pid}/limits").read_text()
    return re.search(r"^Max core file size +(\S+)", limits, re.MULTILINE)[1]


def test_nothing_is_left_of_what_was_refused_cut_off_or_sent_while_the_broker_was_away(scene):
    """Errors have frames, and frames have rows."""
    cluster, nats = scene
    sent, whole = [], []
    for stream, ids, kind, write, count in BODIES:
        rows, cut_off = ids(count), ids(SMALL)
        spoilt = write(rows) + (b"of" if kind == INT64 else b"\n{of no kind")
        if kind != ARROW:  # of which readers take no more than there is
            assert post(cluster, stream, kind, spoilt) in {400, 422}
        send_a_half(cluster, stream, kind, write(cut_off))
        sent += [(ids, rows), (ids, cut_off)]
    nats.kill()
    for number, (stream, ids, kind, write, count) in enumerate(BODIES):
        rows = ids(count)
        with suppress(httpx.TimeoutException):  # who waits no longer
            assert post(cluster, stream, kind, write(rows), key=f"{number}", patience=2.0) == 503
        whole.append((stream, ids, kind, write, rows, f"{number}"))
        sent.append((ids, rows))
    nats.start()
    for stream, _, kind, write, rows, key in whole:
        body = write(rows)
        while post(cluster, stream, kind, body, durable=1, key=key) != 200:
            time.sleep(0.5)
    time.sleep(SWEPT_SECONDS)
    needles = sought(cluster, sent)
    processes = [*(pid for pid, _ in cluster.processes()), nats.pid]
    assert found(processes, needles) == {}
    folders = [cluster.directory, nats.folder, SHARED, RAY]
    assert left_in_files(processes, folders, needles) == {}


def send_a_half(cluster, stream, kind, body):
    """Begin to send a body, and cut the connection."""
    where = urlsplit(cluster.url())
    connection = http.client.HTTPConnection(where.netloc)
    connection.putrequest("POST", f"/v1/streams/{stream}/updates")
    headers = {"Content-Type": kind, "Content-Length": len(body), **cluster.headers("ingest")}
    for name, value in headers.items():
        connection.putheader(name, str(value))
    connection.endheaders(body[: len(body) // 2])
    time.sleep(0.2)
    connection.close()


def send_all(cluster, nats, held):
    """Send bodies; held, while shards stand still. They are acknowledged when this returns."""
    sent = []
    if held:
        stop(cluster, signal.SIGSTOP)
    for stream, ids, kind, write, count in BODIES:
        rows = ids(count)
        assert post(cluster, stream, kind, write(rows)) == 202
        sent.append((ids, rows))
    if held:
        needles = sought(cluster, sent)
        assert nats.told("jsz")["memory"] > 8 * sum(len(rows) for _, rows in sent)
        assert not search_process_for_each(nats.pid, needles).any()
        stop(cluster, signal.SIGCONT)
    for stream, ids, kind, write, _ in BODIES:
        rows = ids(FEW)
        assert post(cluster, stream, kind, write(rows), durable=1) == 200
        sent.append((ids, rows))
    return sent


def sought(cluster, sent):
    """Ids as they came, and what stands for them in a shard."""
    router = RecordFile.load(cluster.directory / "panprivacy-coordinator.json").record.router(
        numbered=False
    )
    windows = []
    for ids, rows in sent:
        users = pa.array(np.array(rows).astype(np.int64) if ids is numbers else rows)
        hashes = np.array(router.hashed(pa.record_batch({"user": users}), 0).column(0))
        windows += [*windows_of(rows, ids), bytes_of(hashes, hashes.byteswap())]
    return Needles.of(*windows)


@contextmanager
def plain_ray(ids):
    """A program that gives ids to a Ray of its own, as anybody would."""
    pipe, words = subprocess.PIPE, [sys.executable, "-c", PLAIN_RAY, str(ids)]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as driver:
        assert driver.stdout.readline() == "kept\n"
        yield driver.pid
        driver.communicate("")


def post(cluster, stream, kind, body, durable=0, key=None, patience=60.0):
    """The status of the answer."""
    named = {} if key is None else {"Idempotency-Key": key}
    answer = httpx.post(
        cluster.url(f"/v1/streams/{stream}/updates"),
        params={"durable": durable},
        content=body,
        headers={**cluster.headers("ingest"), "Content-Type": kind, **named},
        timeout=patience,
    )
    return answer.status_code


def stop(cluster, number):
    """Have all shards stand still, or go on."""
    for pid in cluster.workers:
        os.kill(pid, number)


def found(processes, needles):
    """How often the ids are in memory or registers, of each process that has any."""
    counts = {}
    for pid in processes:
        with suppress(
            FileNotFoundError, ProcessLookupError
        ):  # Ray ends those that it needs no more
            name = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:300]
            in_memory = int(search_process_for_each(pid, needles).sum())
            counts[pid, name] = in_memory + search_registers(pid, needles)
    return {name: count for name, count in counts.items() if count}


def left_in_files(processes, folders, needles):
    """How often they are in files that are open, as shared memory is, and in what is written."""
    counts = {pid: search_open_files(pid, needles, Path(os.devnull)) for pid in processes}
    counts |= {folder: search_files(folder, needles) for folder in folders}
    return {place: count for place, count in counts.items() if count}
