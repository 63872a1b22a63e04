"""How long a sender of few ids waits beside one who floods the same stream with another token.

    python -m benchmarks.fairness

A sender posts 10 ids 100 times a second, by itself, beside 8 connections and beside 64 connections
of another token, each with one body of 50,000 ids after another. All stays on the loopback
interface, and each measure ends after a fixed time. It fails if 99 % of the answers beside 64
connections take more than 50 ms longer than those of a sender that is by itself.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.service import OTHER_TOKEN, TOKEN, answer_of, connected, request_of, running

_SECONDS: Final = 5.0
_PACE: Final = 100
_FLOODS: Final = 0, 8, 64
_MOST_WAIT: Final = 0.05


def main() -> int:
    """Measure and print; 1 if the sender of few ids waits too long."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "service") as (port, _):
        found = {}
        for connections in _FLOODS:
            flood = multiprocessing.Process(target=_flood, args=(port, connections))
            flood.start()
            waits = _waits(port)
            flood.join()
            found[connections] = np.percentile(waits, 99)
            half, most, longest = np.percentile(waits, [50, 99, 100]) * 1e3
            print(
                f"beside {connections} connections: {len(waits)} answers, half within {half:.1f} "
                f"ms, 99 % within {most:.1f} ms, all within {longest:.1f} ms",
                flush=True,
            )
    return int(found[64] - found[0] > _MOST_WAIT)


def _body(ids: int) -> bytes:
    return np.random.default_rng(1).integers(0, 1 << 40, ids).astype("<i8").tobytes()


def _waits(port: int) -> list[float]:
    """Seconds until each answer to a sender of few ids."""
    request, waits = request_of("application/octet-stream", _body(10)), list[float]()
    start = time.perf_counter() + 0.5
    with connected(port, 1) as selector:
        (key,) = selector.get_map().values()
        for number in range(int(_SECONDS * _PACE)):
            time.sleep(max(0.0, start + number / _PACE - time.perf_counter()))
            began = time.perf_counter()
            key.data.sendall(request)
            answer_of(key.data)
            waits.append(time.perf_counter() - began)
    return waits


def _flood(port: int, connections: int) -> None:
    """Send one long body after another on each of many connections."""
    plain = request_of("application/octet-stream", _body(50_000))
    request = plain.replace(TOKEN.encode(), OTHER_TOKEN.encode(), 1)
    stop = time.monotonic() + _SECONDS + 1
    with connected(port, connections) as selector:
        for key in list(selector.get_map().values()):
            key.data.sendall(request)
        while connections and time.monotonic() < stop:
            for key, _ in selector.select(1):
                answer_of(key.data)
                key.data.sendall(request)


if __name__ == "__main__":
    raise SystemExit(main())
