"""How many reports a collector takes in a second, alone in a commit or many together.

    python -m benchmarks.collecting [CONNECTIONS]

Senders post reports over the loopback interface, each waiting for its answer, which says that the
report is on the disk. Both collectors run in turns: one commits every report by itself, the other
all that have come while it was committing. What counts is the ratio: a second on this disk is not
one on another.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path

from panprivacy.devices.collector.secrets import Secrets
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import CountNonZero, Task
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.config.tokens import Role

_CONNECTIONS = 32
_SECONDS = 4.0
_ROUNDS = 5
_TOKENS = {role: f"pp_{role}" for role in (Role.ingest, Role.release)}
_COLLECTOR = """
import sys
from pathlib import Path
from panprivacy.devices.collector import serving
from panprivacy.devices.collector.secrets import Secrets
from panprivacy.devices.collector.server import collect
folder, serving._TOGETHER = Path(sys.argv[1]), int(sys.argv[2])
task = folder / "task.json"
secrets = Secrets.load(task.with_suffix(".secret"), None)
collect(task, secrets, f"sqlite:///{folder}/task.sqlite", "127.0.0.1:0")
"""


class _Senders:
    """Threads that post reports as fast as they are answered, each on a connection of its own."""

    def __init__(self, task: Task, key: DecryptionKey, place: tuple[str, int]) -> None:
        self._task, self._place = task, place
        self._row = key.public.encrypt([1], SystemCoins())
        self._key, self._ended = key.public, threading.Event()
        self._lock, self.taken = threading.Lock(), 0

    def run(self, connections: int, seconds: float) -> float:
        """Reports that were taken in a second."""
        threads = [threading.Thread(target=self._send) for _ in range(connections)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self._ended.set()
        for thread in threads:
            thread.join()
        return self.taken / seconds

    def _send(self) -> None:
        connection, coins = HTTPConnection(*self._place), SystemCoins()
        headers = {"Authorization": f"Bearer {_TOKENS[Role.ingest]}"}
        while not self._ended.is_set():
            row = self._key.rerandomise(self._row, coins)
            body = Report(coins.key(16), row).to_bytes(self._task)
            connection.request("POST", "/v1/reports", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 201:
                message = f"a report was answered with {answer.status}"
                raise RuntimeError(message)
            with self._lock:
                self.taken += 1
        connection.close()


@contextmanager
def _running(folder: Path, together: int) -> Iterator[tuple[str, int]]:
    """Where a collector listens that commits so many reports at once, at most."""
    command = [sys.executable, "-c", _COLLECTOR, str(folder), str(together)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            found = re.search(r"http://([\d.]+):(\d+)", process.stderr.readline())
            yield found[1], int(found[2])
        finally:
            process.kill()


def rate(together: int, connections: int) -> float:
    """Reports a second of a collector of its own."""
    key, promise = DecryptionKey.generate(SystemCoins()), Promise(epsilon=Fraction(1))
    task = Task.new(CountNonZero.planned(promise), promise, horizon=1, key=bytes(key.public))
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_FOLDER")) as name:
        folder = Path(name)
        signature = f'{{"task": {task.canonical().decode()}, "signature": "{"00" * 64}"}}'
        (folder / "task.json").write_text(signature)
        (folder / "task.secret").write_bytes(Secrets.of(key, _TOKENS).to_bytes(None))
        with _running(folder, together) as place:
            return _Senders(task, key, place).run(connections, _SECONDS)


def main() -> None:
    """Print both, and the ratio."""
    connections = int(sys.argv[1]) if sys.argv[1:] else _CONNECTIONS
    ratios = []
    for _ in range(_ROUNDS):
        alone, together = rate(1, connections), rate(500, connections)
        ratios.append(together / alone)
        print(f"{connections} senders: {alone:,.0f} a second alone, {together:,.0f} together")
    print(f"together they are {statistics.median(ratios):.1f} times as many")


if __name__ == "__main__":
    main()
