"""A real cluster on this machine: started, asked, stopped and killed, with Ray's own processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from panprivacy.cluster.record import ClusterRecord, RecordFile, StreamRecord
from tests.cluster.shards import KEY
from tests.service.running import PLAIN, VISITS, Service, wait_until

_START_SECONDS = 600
"""On a crowded machine; an idle one takes ten."""
COUNTS = 'name = "incidence"\nuniverse = 2_000\nbound = 3\nexactly = "1:2"'


def stream(window="1d", *lines):
    """A stream with so much privacy loss that counts are exact."""
    told = "\n".join(['ids = "integers"', "epsilon = 400", f'window = "{window}"', *lines])
    return f"[streams.visits]\n{told}\n[[streams.visits.stat]]\n{COUNTS}\n"


def recorded(folder, now):
    """What the coordinator of two shards knows of a window that began now; it is on the disk."""
    began = StreamRecord(window=now, ends=now + 3_600, last_release=now)
    record = RecordFile(
        folder / "panprivacy-coordinator.json",
        ClusterRecord(shards=2, key=KEY.hex(), streams={"visits": began}),
    )
    record.write()
    return record


class RunningCluster(Service):
    """A service whose shards Ray runs.

    Args:
        directory: of its own.
        nats: where the broker is.
        streams: tables of the configuration.
        queue: bytes that a queue may hold, for which the broker has room.
        command: as of `Service`.
    """

    def __init__(self, directory, nats, streams=VISITS, *, queue=8 << 20, command=PLAIN):
        self.name = f"test-{os.getpid()}"
        told = f'[cluster]\nnats = ["{nats}"]\nname = "{self.name}"\nqueue_bytes = {queue}\n'
        told += f'start_patience = "{_START_SECONDS}s"\n'
        super().__init__(directory, told + streams, command=command)

    def start(self, *options, patience=_START_SECONDS):
        """Start it, and wait until it answers."""
        environment = {
            **os.environ,
            "PANPRIVACY_IDENTITY": self.identity.read_text().strip(),
            "RAY_memory_monitor_refresh_ms": "0",  # what else runs here is none of its business
        }
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [*self._command, "cluster", str(self.config), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        wait_until(self._answers, patience)
        return self

    def signal(self, number):
        """Send it a signal."""
        self._process.send_signal(number)

    def ended(self, patience=60.0):
        """Its exit code, when it has ended by itself."""
        process, self._process = self._process, None
        return process.wait(patience)

    def process(self, words):
        """One of `processes`, by its name."""
        return next(pid for pid, name in self.processes() if words in name)

    @property
    def workers(self):
        """The processes that count."""
        return [pid for pid, name in self.processes() if name.startswith("ray::_Hardened")]

    def processes(self):
        """Those that descend from the coordinator: their numbers and names."""
        parents, names = {}, {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    stat = (entry / "stat").read_text().rpartition(")")[2].split()
                    names[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
                except OSError:
                    continue
                parents[int(entry.name)] = int(stat[1])
        found = {self.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return [(pid, names[pid]) for pid in found]
