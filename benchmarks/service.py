"""What comes through HTTP: the hardened service beside a bare uvicorn that drops what it reads.

    python -m benchmarks.service [bulk] [small] [paced]

`bulk` sends bodies of 10,000 ids, and `small` bodies of 10, as beacons do, under heads that are the
same on a connection and under others; `paced` sends small ones at 1,000 a second from the moment at
which the server listens, whether it has answered or not. All by default.

Both servers run in turns on the loopback interface, with the same client: raw sockets, one request
under way on each connection. The client takes a core, the server another. Processor time is that of
the server's process.
"""

from __future__ import annotations

import itertools
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from panprivacy.service.config.tokens import hash_of

_IDS = 10_000
_CONNECTIONS = 4
_SMALL_IDS = 10
_SMALL_CONNECTIONS = 32
_HEADS = 7
"""Heads that take turns; no divisor of the number of connections."""
_PACE = 1_000
_SECONDS = 4.0
_ROUNDS = 5
TOKEN, OTHER_TOKEN = "pp_benchmark", "pp_another"
_BARE = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = bytearray()
    more = True
    while more:
        message = await receive()
        body += message["body"]
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 202,
                "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
uvicorn.run(app, port=int(sys.argv[1]), loop="asyncio", http="httptools", access_log=False,
            log_level="error", lifespan="off")
"""


def main(*measures: str) -> None:
    """Measure and print."""
    known = {"bulk": _bulk, "small": _small, "paced": _paced}
    with tempfile.TemporaryDirectory() as folder:
        for measure in measures or known:
            known[measure](Path(folder))


def _bulk(folder: Path) -> None:
    """Ids a second in long bodies."""
    for name, request in _requests(_IDS).items():
        rates: dict[str, list[float]] = {"bare": [], "service": []}
        for _ in range(_ROUNDS):
            for server, found in rates.items():
                with running(folder, server) as (port, _):
                    found.append(_rate(port, request))
        bare, service = (statistics.median(found) / 1e6 for found in rates.values())
        print(
            f"{name}: {service:.1f} million ids/s, bare server {bare:.1f}: "
            f"ratio {service / bare:.2f}"
        )


def _small(folder: Path) -> None:
    """Requests a second of short bodies, and the processor time of each."""
    for name, requests in _small_requests().items():
        rates: dict[str, list[float]] = {"bare": [], "service": []}
        costs: dict[str, list[float]] = {"bare": [], "service": []}
        for _ in range(_ROUNDS):
            for server, rate in rates.items():
                with running(folder, server) as (port, process):
                    _send_small(0.5, port, requests)
                    start, before = time.perf_counter(), _processor_seconds(process)
                    sent = _send_small(_SECONDS, port, requests)
                    rate.append(sent / (time.perf_counter() - start))
                    costs[server].append((_processor_seconds(process) - before) / sent)
        bare, service = (statistics.median(found) for found in rates.values())
        dear, cheap = (
            statistics.median(found) * 1e6 for found in (costs["service"], costs["bare"])
        )
        print(
            f"{name}, {_SMALL_IDS} ids each: {service:,.0f} requests/s of {dear:.0f} microseconds, "
            f"bare server {bare:,.0f} of {cheap:.0f}: ratio {service / bare:.2f}, "
            f"of processor time {cheap / dear:.2f}"
        )


def _paced(folder: Path) -> None:
    """How long short bodies wait for their answers, from the first one after the start."""
    for name, request in _requests(_SMALL_IDS).items():
        for server in ("bare", "service"):
            worst = []
            for _ in range(_ROUNDS):
                with running(folder, server) as (port, _):
                    worst.append(np.percentile(_waits(port, request), [50, 99, 100]) * 1e3)
            half, most, longest = np.median(worst, axis=0)
            print(
                f"{name}, {server}: {_PACE:,} requests/s from the first one: half within "
                f"{half:.1f} ms, 99 % within {most:.1f} ms, all within {longest:.1f} ms"
            )


def _requests(ids: int) -> dict[str, bytes]:
    """A request of so many ids, by what its body is."""
    draw = np.random.default_rng(1).integers(0, 1 << 40, ids)
    lines = "".join(f'{{"user": {number}}}\n' for number in draw.tolist()).encode()
    return {
        "int64": request_of("application/octet-stream", draw.astype("<i8").tobytes()),
        "ndjson": request_of("application/x-ndjson", lines),
    }


def _small_requests() -> dict[str, list[bytes]]:
    """Requests of a few ids that take turns, by what they are."""
    alike = {name: [request] for name, request in _requests(_SMALL_IDS).items()}
    unlike = [
        request.replace(b"Host:", b"X-Request-Id: %d\r\nHost:" % number, 1)
        for number in range(_HEADS)
        for request in alike["int64"]
    ]
    return {**alike, "int64 under other heads": unlike}


def request_of(kind: str, body: bytes) -> bytes:
    head = (
        f"POST /v1/streams/visits/updates HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _bare(port: int) -> list[str]:
    """The command that serves nothing."""
    return [sys.executable, "-c", _BARE, str(port)]


def _service(folder: Path, port: int, more: str = "") -> list[str]:
    """A configuration, and the command that serves it."""
    config = folder / f"{port}.toml"
    config.write_text(
        f"""
        [server]
        listen = "127.0.0.1:{port}"
        [checkpoint]
        recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
        path = "{port}.sealed"
        [[tokens]]
        name = "benchmark"
        may = ["ingest"]
        sha256 = "{hash_of(TOKEN)}"
        [[tokens]]
        name = "another"
        may = ["ingest"]
        sha256 = "{hash_of(OTHER_TOKEN)}"
        [streams.visits]
        epsilon = 1
        window = "1d"
        ids = "integers"
        [[streams.visits.stat]]
        name = "distinct"
        """
        + more
    )
    return [str(Path(sys.executable).with_name("panprivacy")), "serve", str(config)]


@contextmanager
def running(folder: Path, server: str, more: str = "") -> Iterator[tuple[int, int]]:
    """The port of a server that listens, with more in its configuration, and its process."""
    port = _free_port()
    command = _bare(port) if server == "bare" else _service(folder, port, more)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        _wait(port)
        yield port, process.pid
    finally:
        process.kill()
        process.wait()


def resident_bytes(process: int) -> int:
    """Bytes that a process has in memory."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = [one for one in status.splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) << 10


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def _wait(port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.001)
        else:
            return
    message = "the server did not start"
    raise RuntimeError(message)


def _processor_seconds(process: int) -> float:
    """Of all threads, so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rate(port: int, request: bytes) -> float:
    """Ids a second."""
    _send_for(0.5, port, request)
    start = time.perf_counter()
    sent = _send_for(_SECONDS, port, request)
    return sent * _IDS / (time.perf_counter() - start)


def _send_for(seconds: float, port: int, request: bytes) -> int:
    counts: list[int] = []
    stop = time.monotonic() + seconds
    threads = [
        threading.Thread(target=lambda: counts.append(_send_until(stop, port, request)))
        for _ in range(_CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def _send_until(stop: float, port: int, request: bytes) -> int:
    sent = 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while time.monotonic() < stop:
            connection.sendall(request)
            answer = answer_of(connection)
            _check(answer)
            sent += 1
    return sent


def _send_small(seconds: float, port: int, requests: Sequence[bytes]) -> int:
    """Send one request after another on each connection; how many were answered."""
    sent, turns = 0, itertools.cycle(requests)
    stop = time.monotonic() + seconds
    with connected(port) as selector:
        for key in selector.get_map().values():
            key.data.send(next(turns))
        while time.monotonic() < stop:
            for key, _ in selector.select():
                _check(key.data.recv(4_096))
                key.data.send(next(turns))
                sent += 1
    return sent


def _waits(port: int, request: bytes) -> list[float]:
    """Send at equal distances; how long after the moment when it was due each answer was there."""
    waits: list[float] = []
    due: dict[socket.socket, float] = {}
    with connected(port) as selector:
        idle = [key.data for key in selector.get_map().values()]
        start = time.perf_counter()
        while len(waits) < _SECONDS * _PACE:
            at = start + (len(waits) + len(due)) / _PACE
            now = time.perf_counter()
            if idle and now >= at:
                connection = idle.pop()
                connection.send(request)
                due[connection] = at
                continue
            for key, _ in selector.select(max(0.0, at - now) if idle else None):
                _check(key.data.recv(4_096))
                waits.append(time.perf_counter() - due.pop(key.data))
                idle.append(key.data)
    return waits


@contextmanager
def connected(port: int, connections: int = _SMALL_CONNECTIONS) -> Iterator[selectors.BaseSelector]:
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(connections):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connection, selectors.EVENT_READ, connection)
        yield selector


def _check(answer: bytes) -> None:
    if not answer.startswith(b"HTTP/1.1 202"):
        message = f"the server answered {answer[:200]!r}"
        raise RuntimeError(message)


def answer_of(connection: socket.socket) -> bytes:
    """A head and the body that it announces."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(4_096)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        body += connection.recv(4_096)
    return head + body


if __name__ == "__main__":
    main(*sys.argv[1:])
