"""A real cluster on this machine: started, asked, stopped and killed, with Ray's own processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.service.running import PLAIN, VISITS, Service, wait_until


class RunningCluster(Service):
    """A service whose shards Ray runs.

    Args:
        directory: of its own.
        nats: where the broker is.
        streams: tables of the configuration.
        command: as of `Service`.
    """

    def __init__(self, directory, nats, streams=VISITS, *, command=PLAIN):
        told = f'[cluster]\nnats = ["{nats}"]\nname = "test-{os.getpid()}"\n'
        super().__init__(directory, told + streams, command=command)

    def start(self, *options, patience=60.0):
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
