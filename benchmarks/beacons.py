"""Visits a second that a beacon takes, beside a bare uvicorn that drops what it reads.

    python -m benchmarks.beacons

Both servers run in turns on the loopback interface, with the same client: 32 connections, as those
of a proxy, one request under way on each, and another visitor each time. The service counts
distinct visitors, with groups of pages and without; it is hardened.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.service import running

_CONNECTIONS: Final = 32
_SECONDS: Final = 3.0
_ROUNDS: Final = 3
_SITE: Final = "https://example.org"
_STREAM: Final = """
[streams.{name}]
epsilon = 1
window = "1d"
{groups}
[[streams.{name}.stat]]
name = "distinct"
expected = "1000:1e6"
[streams.{name}.beacon]
origins = ["https://example.org"]
proxies = ["127.0.0.1"]
"""
_GROUPS: Final = 'by = "page"\ngroups = ["/", "/help"]\nper_user = 2'
_STREAMS: Final = _STREAM.format(name="site", groups="") + _STREAM.format(
    name="pages", groups=_GROUPS
)
_AGENT: Final = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0"
)


def main() -> None:
    """Measure and print."""
    rates: dict[str, list[float]] = {"bare": [], "site": [], "pages": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_ROUNDS):
            with running(Path(folder), "bare") as (port, _):
                rates["bare"].append(_rate(port, "site"))
            with running(Path(folder), "service", _STREAMS) as (port, _):
                for name in ("site", "pages"):
                    rates[name].append(_rate(port, name))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    for name, says in (("site", "without groups"), ("pages", "two groups")):
        print(
            f"{says}: {medians[name]:,.0f} visits a second, bare uvicorn {medians['bare']:,.0f}, "
            f"ratio {medians[name] / medians['bare']:.2f}",
            flush=True,
        )


def _request(stream: str, visitor: int) -> bytes:
    """A visit as a proxy passes it on."""
    address = f"198.{18 + (visitor >> 16 & 1)}.{visitor >> 8 & 255}.{visitor & 255}"
    lines = [
        f"POST /v1/streams/{stream}/beacon HTTP/1.1", "Host: localhost", f"Origin: {_SITE}",
        "Content-Type: text/plain;charset=UTF-8", f"User-Agent: {_AGENT}",
        f"X-Forwarded-For: {address}", "Content-Length: 2", "", "/\n",
    ]  # fmt: skip
    return "\r\n".join(lines).encode()


def _rate(port: int, stream: str) -> float:
    """Answers a second over all connections."""
    visitors, answered = count(), 0
    with selectors.DefaultSelector() as selector:
        for _ in range(_CONNECTIONS):
            sock = socket.create_connection(("127.0.0.1", port))
            selector.register(sock, selectors.EVENT_READ)
            sock.sendall(_request(stream, next(visitors)))
        began = time.perf_counter()
        while time.perf_counter() < began + _SECONDS:
            for key, _ in selector.select(1.0):
                sock = key.fileobj  # type: ignore[assignment]
                if not sock.recv(1 << 12).startswith(b"HTTP/1.1 20"):
                    message = "a visit was refused"
                    raise RuntimeError(message)
                answered += 1
                sock.sendall(_request(stream, next(visitors)))
        took = time.perf_counter() - began
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
    return answered / took


if __name__ == "__main__":
    main()
