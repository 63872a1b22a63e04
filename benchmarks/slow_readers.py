"""Readers with a token who ask for large answers and hardly read them: what others notice.

    python -m benchmarks.slow_readers [CONNECTIONS] [SECONDS]

1,800 connections for 20 seconds by default, all with one token that may read. Each asks for the
largest answer of a path, with 100,000 rows in the release store, and reads nothing, or a byte a
second. One that is closed is opened again. Beside them a sender posts 10 ids, 20 times a second,
and another token reads a page of answers once a second.

Each line says how long the sender and the other reader waited, by how much the memory of the
service grew, how many answers were begun and refused, and after how long a connection with an
answer was closed. The script fails if 1 % of the posts take longer than a tenth of a second, the
memory grows by more than 128 MiB, or the other reader is refused.

All of it stays on the loopback interface, and ends after a fixed time and number of connections.
"""

from __future__ import annotations

import contextlib
import json
import resource
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.service import TOKEN, resident_bytes, running
from panprivacy.service.config.tokens import hash_of
from panprivacy.service.outgoing.records import Entry, Published
from panprivacy.service.outgoing.store import ReleaseStore

_CONNECTIONS: Final = 1_800
_SECONDS: Final = 20.0
_MOST_OPENED: Final = 10
"""Times as many connections may be opened, one after another."""
_ROWS: Final = 100_000
_GROUPS: Final = 250
_EVERY: Final = 0.05
_MOST_WAIT: Final = 0.1
_PATIENCE: Final = 120.0
_MOST_GROWTH: Final = 128 << 20
_MOST_MEMORY: Final = 4 << 30
"""Bytes at which a measure is given up."""
_TOKENS: Final = {"slow": "pp_slow_reader", "other": "pp_other_reader"}
_PATHS: Final = {
    "JSON": "/v1/releases?limit=100000&format=json",
    "CSV": "/v1/releases?limit=100000&format=csv",
    "Parquet": "/v1/releases?limit=100000&format=parquet",
    "metrics": "/metrics",
    "streams": "/v1/streams",
    "the document": "/v1/openapi.json",
}


def main(connections: int = _CONNECTIONS, seconds: float = _SECONDS) -> int:
    """Measure and print; 1 if the service fails."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder) / "releases.sqlite")
        for kind, path in _PATHS.items():
            for reads in (0, 1):
                failed |= _measured(Path(folder), f"{kind}, {reads} bytes a second", path, reads,
                                    connections, seconds)  # fmt: skip
    return int(failed)


def _fill(file: Path) -> None:
    """Publish a store full of answers."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    with contextlib.closing(ReleaseStore(f"sqlite:///{file}")) as store:
        for number in range(_ROWS // _GROUPS):
            start = began + timedelta(hours=number)
            end = start + timedelta(hours=1)
            line = Entry("visits", start, end, 1, Fraction(1), "benchmark")
            made = [_answer(start, end, f"a group named {group}") for group in range(_GROUPS)]
            store.settle([line], made)


def _answer(start: datetime, end: datetime, group: str) -> Published:
    asked = {"stream": "visits", "statistic": "distinct", "question": "distinct", "group": group}
    law = {"estimate": 1234.5678, "standard_error": 120.12345, "bias": 0.5}
    interval = {"value": 1234.5678, "low": 1000.1234, "high": 1500.9876, "confidence": 0.95}
    window = {"start": start, "end": end, "complete": True, "number": 1, "released": end}
    none = {"argument": None, "arguments": "", "note": None}
    return Published(**asked, **law, **interval, **window, **none, epsilon=1.0)


def _measured(
    folder: Path, name: str, path: str, reads: int, connections: int, seconds: float
) -> bool:
    """Print one line; return whether the service fails."""
    readers = "".join(
        f'[[tokens]]\nname = "{name}"\nmay = ["read"]\nsha256 = "{hash_of(token)}"\n'
        for name, token in _TOKENS.items()
    )
    with running(folder, "service", readers) as (port, process):
        words = ["flood", str(port), path, str(reads), str(connections), str(seconds)]
        command = [sys.executable, "-m", "benchmarks.slow_readers", *words]
        waits, reading, grown = [_post(port)], Counter[int](), 0
        pages: list[float] = []
        before = resident_bytes(process)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as flood:
            other = threading.Thread(target=_read, args=(port, flood, pages, reading))
            other.start()
            while flood.poll() is None and grown < _MOST_MEMORY:
                waits.append(_post(port))
                grown = max(grown, resident_bytes(process) - before)
                time.sleep(max(0.0, _EVERY - waits[-1]))
            flood.kill()
            other.join()
            told = json.loads(flood.stdout.read() or b"{}") if flood.stdout else {}
    most = float(np.percentile(waits, 99))
    print(f"{name}: {_said(waits, pages, grown)}; {told}", flush=True)
    return most > _MOST_WAIT or grown > _MOST_GROWTH or any(status != 200 for status in reading)


def _said(waits: list[float], pages: list[float], grown: int) -> str:
    half, most = np.percentile(waits, [50, 99]) * 1e3
    return (
        f"{len(waits)} posts, half within {half:.1f} ms, 99 % within {most:.1f} ms, all within "
        f"{max(waits) * 1e3:.0f} ms; {len(pages)} pages of another reader, all within "
        f"{max(pages, default=0) * 1e3:.0f} ms; {grown / 2**20:.0f} MiB more"
    )


def _post(port: int) -> float:
    """Seconds until a sender on a new connection has its answer."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/octet-stream"}
    began = time.perf_counter()
    if _status(port, "POST", "/v1/streams/visits/updates", headers, bytes(80)) != 202:
        message = "a sender was refused"
        raise RuntimeError(message)
    return time.perf_counter() - began


def _read(port: int, flood: Any, pages: list[float], statuses: Counter[int]) -> None:
    """Read a page once a second while the others do."""
    headers = {"Authorization": f"Bearer {_TOKENS['other']}"}
    while flood.poll() is None:
        began = time.perf_counter()
        statuses[_status(port, "GET", "/v1/releases", headers)] += 1
        pages.append(time.perf_counter() - began)
        time.sleep(1)


def _status(
    port: int, method: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> int:
    """Send a request on a new connection, read the answer, and return its status."""
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)) as connection:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def flood(port: int, path: str, reads: int, connections: int, seconds: float) -> None:
    """Ask on many connections, read so many bytes a second, and print what became of them."""
    request = (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {_TOKENS['slow']}\r\n\r\n"
    )
    end, opened, found = time.monotonic() + seconds, 0, Counter[str]()
    began: dict[int, tuple[socket.socket, float, list[str]]] = {}
    lives, poll, turn = [0.0], select.epoll(), time.monotonic()
    while time.monotonic() < end:
        if is_open := len(began) < connections and opened < _MOST_OPENED * connections:
            sock = _asking(port, request.encode())
            opened += 1
            began[sock.fileno()] = sock, time.monotonic(), []
            poll.register(sock, select.EPOLLIN | select.EPOLLRDHUP)
        for number, event in poll.poll(0 if is_open else 0.1):
            sock, since, status = began[number]
            if not status and event & select.EPOLLIN:
                with contextlib.suppress(OSError):
                    status.append(sock.recv(12)[9:].decode())
                found[status[0] if status else "reset"] += 1
                poll.modify(sock, select.EPOLLRDHUP)
            if event & (select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR):
                lives.append(time.monotonic() - since)
                began.pop(number)[0].close()
        if reads and time.monotonic() > turn + 1:
            turn = time.monotonic()
            for sock, _, _ in began.values():
                with contextlib.suppress(OSError):
                    sock.recv(reads)
    still = sum(1 for _, _, status in began.values() if status == ["200"])
    longest = round(max(lives), 1)
    print(json.dumps({**found, "open": still, "closed after at most": longest}))


def _asking(port: int, request: bytes) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
    sock.settimeout(30)
    with contextlib.suppress(OSError):
        sock.connect(("127.0.0.1", port))
        sock.sendall(request)
    sock.setblocking(False)  # noqa: FBT003 - a method of the library
    return sock


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        flood(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6]))
    else:
        raise SystemExit(main(*map(int, sys.argv[1:3])))
