"""Senders without a token who send requests ahead and read no answer: what others notice.

    python -m benchmarks.stalled [CONNECTIONS]

1,800 connections by default, each with 1 MiB of one short request over and over; one that is closed
is opened again. Beside them a client asks for `/healthz` on a new connection, 20 times a second. It
is told how long it waited, and how much the memory of the server grew, for the service and for a
bare uvicorn, each by itself: the service has to stay within a tenth of a second and 64 MiB.

All of it stays on the loopback interface, and ends after a fixed time and number of connections.
"""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.service import resident_bytes, running

_CONNECTIONS: Final = 1_800
_SECONDS: Final = 15.0
_MOST_OPENED: Final = 10
"""Times as many connections may be opened, one after another."""
_AHEAD: Final = 1 << 20
_EVERY: Final = 0.05
_PATIENCE: Final = 30.0
_MOST_WAIT: Final = 0.1
_MOST_GROWTH: Final = 64 << 20
_KINDS: Final = {
    "a document": "GET /v1/openapi.json",
    "a path that is not there": "GET /nowhere",
    "a method that is not there": "DELETE /healthz",
    "health": "GET /healthz",
    "a token that is not known": "POST /v1/streams/visits/release",
}
_PROBE: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def main(connections: int = _CONNECTIONS) -> int:
    """Measure and print; 1 if the service fails."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for kind, request in _KINDS.items():
            for server in ("bare", "service"):
                waits, growth = _measured(Path(folder), server, request, connections)
                half, longest = np.median(waits), max(waits)
                print(
                    f"{kind}, {server}: {len(waits)} probes, half within {half * 1e3:.1f} ms, 99 % "
                    f"within {np.percentile(waits, 99) * 1e3:.1f} ms, all within "
                    f"{longest * 1e3:.1f} ms; {growth / 2**20:.0f} MiB more",
                    flush=True,
                )
                failed |= server == "service" and _is_bad(waits, growth)
    return int(failed)


def _is_bad(waits: list[float], growth: int) -> bool:
    return bool(np.percentile(waits, 99) > _MOST_WAIT or growth > _MOST_GROWTH)


def _measured(folder: Path, server: str, request: str, connections: int) -> tuple[list[float], int]:
    """How long each probe waited, and how many bytes the server grew by."""
    with running(folder, server) as (port, process):
        _probe(port)
        before = resident_bytes(process)
        words = ["flood", str(port), request, str(connections)]
        with subprocess.Popen([sys.executable, "-m", "benchmarks.stalled", *words]) as flood:
            waits, grown = [], 0
            while flood.poll() is None:
                waits.append(_probe(port))
                grown = max(grown, resident_bytes(process) - before)
                time.sleep(max(0.0, _EVERY - waits[-1]))
    return waits, grown


def _probe(port: int) -> float:
    """Seconds until a client without a token has its answer; the limit if it has none."""
    began = time.perf_counter()
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), _PATIENCE))
        sock.sendall(_PROBE)
        if sock.recv(1 << 12):
            return time.perf_counter() - began
    return max(_PATIENCE, time.perf_counter() - began)


def flood(port: int, request: str, connections: int) -> None:
    """Send ahead on many connections for a while, and read nothing."""
    one = f"{request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer pp_nobody\r\n\r\n"
    ahead = memoryview(one.encode() * (_AHEAD // len(one) + 1))
    end, opened = time.monotonic() + _SECONDS, 0
    socks: dict[int, tuple[socket.socket, memoryview]] = {}
    poll = select.epoll()
    while time.monotonic() < end:
        is_open = len(socks) == connections or opened == _MOST_OPENED * connections
        if not is_open:
            opened += 1
            sock = socket.socket()
            sock.setblocking(False)  # noqa: FBT003 - a method of the library
            sock.connect_ex(("127.0.0.1", port))
            socks[sock.fileno()] = sock, ahead
            poll.register(sock, select.EPOLLOUT | select.EPOLLRDHUP)
        for number, event in poll.poll(0.1 if is_open else 0):
            sock, rest = socks[number]
            if event & (select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR):
                socks.pop(number)[0].close()
                continue
            with contextlib.suppress(BlockingIOError):
                socks[number] = sock, (rest := rest[sock.send(rest) :])
            if not rest:  # it is all on its way
                poll.modify(sock, select.EPOLLRDHUP)


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        flood(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        raise SystemExit(main(*map(int, sys.argv[1:2])))
