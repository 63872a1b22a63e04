"""Ids a second through HTTP: the hardened service beside a bare uvicorn that drops what it reads.

    python -m benchmarks.service

Both run in turns on the loopback interface, with the same client: raw sockets, one request under
way on each connection. The client takes a core, the server another.
"""

from __future__ import annotations

import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from panprivacy.service.config.tokens import hash_of

_IDS = 10_000
_CONNECTIONS = 4
_SECONDS = 4.0
_ROUNDS = 5
_TOKEN = "pp_benchmark"
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


def main() -> None:
    """Measure and print."""
    draw = np.random.default_rng(1).integers(0, 1 << 40, _IDS)
    lines = "".join(f'{{"user": {number}}}\n' for number in draw.tolist()).encode()
    bodies = {
        "int64": ("application/octet-stream", draw.astype("<i8").tobytes()),
        "ndjson": ("application/x-ndjson", lines),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (kind, body) in bodies.items():
            rates = {"bare": [], "service": []}
            for _ in range(_ROUNDS):
                with _running(_bare(port := _free_port()), port):
                    rates["bare"].append(_rate(port, kind, body))
                with _running(_service(Path(folder), port := _free_port()), port):
                    rates["service"].append(_rate(port, kind, body))
            bare, service = (statistics.median(found) / 1e6 for found in rates.values())
            print(
                f"{name}: {service:.1f} million ids/s, bare server {bare:.1f}: "
                f"ratio {service / bare:.2f}"
            )


def _bare(port: int) -> list[str]:
    """The command that serves nothing."""
    return [sys.executable, "-c", _BARE, str(port)]


def _service(folder: Path, port: int) -> list[str]:
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
        sha256 = "{hash_of(_TOKEN)}"
        [streams.visits]
        epsilon = 1
        window = "1d"
        ids = "integers"
        [[streams.visits.stat]]
        name = "distinct"
        """
    )
    return [str(Path(sys.executable).with_name("panprivacy")), "serve", str(config)]


@contextmanager
def _running(command: list[str], port: int):
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        _wait(port)
        yield
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def _wait(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    message = "the server did not start"
    raise RuntimeError(message)


def _rate(port: int, kind: str, body: bytes) -> float:
    """Ids a second."""
    request = (
        f"POST /v1/streams/visits/updates HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        f"Authorization: Bearer {_TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
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
            answer = _answer(connection)
            if not answer.startswith(b"HTTP/1.1 202"):
                message = f"the server answered {answer[:200]!r}"
                raise RuntimeError(message)
            sent += 1
    return sent


def _answer(connection: socket.socket) -> bytes:
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
    main()
