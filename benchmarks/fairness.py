"""How long a sender of few ids waits beside one who floods the same stream with another token.

    python -m benchmarks.fairness

A sender posts 10 ids 100 times a second, by itself, beside 8 connections and beside 64 connections
of another token, each with one body of 50,000 ids after another. Then the same where both wait
until the checkpoint has what they sent (`durable=1`), with as many requests as there is time for.
All stays on the loopback interface, and each measure ends after a fixed time.

It fails if 99 % of the answers beside 64 connections take more than 50 ms longer than those of a
sender that is by itself; or, where both are durable, more than 250 ms.
"""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.service import OTHER_TOKEN, TOKEN, answer_of, connected, request_of, running

_SECONDS: Final = 5.0
_PACE: Final = 100
_PATH: Final = "/v1/streams/visits/updates"
_FLOODS: Final = 0, 8, 64
_MOST_MORE: Final = 0.05
_MOST_DURABLE: Final = 0.25


def main() -> int:
    """Measure and print; 1 if the sender of few ids waits too long."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "service") as (port, _):
        plain, durable = _measured(port, _PATH), _measured(port, f"{_PATH}?durable=1")
    most = plain[_FLOODS[-1]] - plain[0], durable[_FLOODS[-1]]
    return int(most[0] > _MOST_MORE or most[1] > _MOST_DURABLE)


def _measured(port: int, path: str) -> dict[int, float]:
    """Seconds within which 99 % of the answers are there, by how many connections flood."""
    found = {}
    for connections in _FLOODS:
        flood = multiprocessing.Process(target=_flood, args=(port, path, connections))
        flood.start()
        waits = _waits(port, path)
        flood.join()
        found[connections] = float(np.percentile(waits, 99))
        half, most, longest = np.percentile(waits, [50, 99, 100]) * 1e3
        print(
            f"{path.partition('?')[2] or 'in memory'}, beside {connections} connections: "
            f"{len(waits)} answers, half within {half:.1f} ms, 99 % within {most:.1f} ms, all "
            f"within {longest:.1f} ms",
            flush=True,
        )
    return found


def _body(ids: int) -> bytes:
    return np.random.default_rng(1).integers(0, 1 << 40, ids).astype("<i8").tobytes()


def _request(path: str, body: bytes, token: str = TOKEN) -> bytes:
    plain = request_of("application/octet-stream", body).replace(TOKEN.encode(), token.encode(), 1)
    return plain.replace(_PATH.encode(), path.encode(), 1)


def _counted(connection: socket.socket) -> None:
    """Take an answer; raise RuntimeError if the body was not counted."""
    if not (answer := answer_of(connection)).startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
        message = f"the server answered {answer[:200]!r}"
        raise RuntimeError(message)


def _waits(port: int, path: str) -> list[float]:
    """Seconds until each answer to a sender of few ids."""
    request, waits = _request(path, _body(10)), list[float]()
    due = time.perf_counter() + 0.5
    end = due + _SECONDS
    with connected(port, 1) as selector:
        (key,) = selector.get_map().values()
        while due < end:
            time.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter()
            key.data.sendall(request)
            _counted(key.data)
            waits.append(time.perf_counter() - began)
            due = max(due + 1 / _PACE, time.perf_counter())
    return waits


def _flood(port: int, path: str, connections: int) -> None:
    """Send one long body after another on each of many connections."""
    request = _request(path, _body(50_000), OTHER_TOKEN)
    stop = time.monotonic() + _SECONDS + 1
    with connected(port, connections) as selector:
        for key in list(selector.get_map().values()):
            key.data.sendall(request)
        while connections and time.monotonic() < stop:
            for key, _ in selector.select(1):
                _counted(key.data)
                key.data.sendall(request)


if __name__ == "__main__":
    raise SystemExit(main())
