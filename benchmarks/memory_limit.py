"""What memory a flooded service takes, and what it loses where there is too little of it.

    python -m benchmarks.memory_limit

Bodies of a mebibyte each come on 64 connections, with `durable=1`, beside 64 that send half of a
long body and wait. For 15 seconds there is as much memory as is asked for: the peak is printed.
For 20 more the process may map only a few MiB more than it has (`RLIMIT_AS`), another number each
second, so allocations fail: those requests get 503. Then the service is killed and goes on from its
checkpoint, and what was acknowledged is compared with what is counted.

It fails if the service takes more than 1,024 MiB, or gives an answer that is none of 200, 202, 429
and 503; if it ends by itself; or if an acknowledged row is in no answer. Epsilon is so large that
the answer is exact. All stays on the loopback interface.
"""

from __future__ import annotations

import json
import random
import re
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyrage

from panprivacy.service.config.tokens import hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_MIB: Final = 1_024
_SENDERS: Final = 64
_ROWS: Final = 4
_UNIVERSE: Final = 60_000
_BODY_BYTES: Final = 1 << 20
_HELD_BYTES: Final = 8 << 20
_SECONDS: Final = 15.0
_PATIENCE: Final = 5.0
_TIGHT_SECONDS: Final = 20
_ROOM_MIB: Final = 0, 16
_EXPECTED: Final = {200, 202, 429, 503}
_COMMAND: Final = str(Path(sys.executable).with_name("panprivacy"))
_CONFIG: Final = """
[server]
listen = "127.0.0.1:{port}"
[checkpoint]
recipient = "{recipient}"
[[tokens]]
name = "all"
may = ["ingest", "read", "release"]
sha256 = "{token}"
[streams.visits]
epsilon = 200
window = "1d"
releases = 2
ids = "integers"
[[streams.visits.stat]]
name = "incidence"
universe = {universe}
bound = 3
exactly = "1"
"""


class Service:
    """A service in a folder of its own.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        key = pyrage.x25519.Identity.generate()
        with socket.create_server(("127.0.0.1", 0)) as sock:
            self.port = int(sock.getsockname()[1])
        self._config, self._identity = folder / "service.toml", folder / "key.txt"
        self._log = folder / "log"
        self._identity.write_text(f"{key}\n")
        self._config.write_text(
            _CONFIG.format(
                port=self.port,
                recipient=key.to_public(),
                token=hash_of("pp_all"),
                universe=_UNIVERSE,
            )
        )
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("a") as log:
            process = subprocess.Popen([_COMMAND, "serve", str(self._config)], stderr=log)
        while process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return process
            time.sleep(0.05)
        raise RuntimeError(self._log.read_text())

    def go_on(self) -> None:
        """Kill it, and have another process go on from its checkpoint."""
        self.process.kill()
        self.process.wait()
        self.process = self._started()
        words = [_COMMAND, "restore", str(self._config), "--identity", str(self._identity)]
        subprocess.run(words, check=True, capture_output=True)

    def counted(self) -> int:
        """How many users an answer says that there are."""
        self._ask("POST", "/v1/streams/visits/release")
        return round(json.loads(self._ask("GET", "/v1/releases"))[-1]["value"])

    def _ask(self, method: str, path: str) -> bytes:
        url = f"http://127.0.0.1:{self.port}{path}"
        asked = urllib.request.Request(url, method=method)
        asked.add_header("Authorization", "Bearer pp_all")
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return bytes(answer.read())

    def mebibytes(self, name: str) -> int:
        """A field of the status of its process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) >> 10 if found else 0


class Flood:
    """Sends bodies with users that come once, and knows what became of them.

    Args:
        port: of the service.
    """

    def __init__(self, port: int) -> None:
        self._port, self._users = port, count()
        self.sent, self.acknowledged, self.answers = 0, 0, Counter[int]()

    def run(self, seconds: float) -> None:
        """Send for a while, on connections that are opened again once they are closed."""
        end, closes = time.monotonic() + seconds, time.monotonic() + seconds + _PATIENCE
        with selectors.DefaultSelector() as selector:
            while (now := time.monotonic()) < end or (selector.get_map() and now < closes):
                for key, _ in selector.select(0.1):
                    self._answered(selector, key.fileobj)  # type: ignore[arg-type]
                while time.monotonic() < end and len(selector.get_map()) < _SENDERS:
                    if not self._open(selector):
                        break
            for key in list(selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    def _open(self, selector: selectors.BaseSelector) -> bool:
        """Send a body on a connection of its own, if there are users left."""
        if self.sent + _ROWS > _UNIVERSE:
            return False
        sock = socket.socket()
        sock.settimeout(_PATIENCE)
        try:
            sock.connect(("127.0.0.1", self._port))
            self.sent += _ROWS
            sock.sendall(self._request())
        except OSError:  # refused in between
            sock.close()
            time.sleep(0.01)
            return False
        selector.register(sock, selectors.EVENT_READ)
        return True

    def _request(self) -> bytes:
        pad = "x" * (_BODY_BYTES // _ROWS)
        rows = "".join(
            f'{{"user": {next(self._users)}, "pad": "{pad}"}}\n' for _ in range(_ROWS)
        ).encode()
        return _head(len(rows)) + rows

    def _answered(self, selector: selectors.BaseSelector, sock: socket.socket) -> None:
        selector.unregister(sock)
        with suppress(OSError), sock:
            words = sock.recv(1 << 12).split()
            status = int(words[1]) if len(words) > 1 else 0
            self.answers[status] += 1
            self.acknowledged += _ROWS * (status == 200)


def _head(length: int) -> bytes:
    return (
        "POST /v1/streams/visits/updates?durable=1 HTTP/1.1\r\nHost: localhost\r\n"
        "Authorization: Bearer pp_all\r\nContent-Type: application/x-ndjson\r\n"
        f"Connection: close\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


@contextmanager
def _held(port: int) -> Iterator[None]:
    """Connections that send half of a long body."""
    with ExitStack() as stack:
        for _ in range(_SENDERS):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            sock.settimeout(1)
            with suppress(OSError):  # refused, and closed
                sock.sendall(_head(2 * _HELD_BYTES) + b" " * _HELD_BYTES)
        yield


def _squeeze(service: Service, stop: threading.Event) -> None:
    """Let the process map a little more than it has, and another number each second."""
    draw = random.Random(1)
    while not stop.wait(1):
        with suppress(ProcessLookupError, OSError):
            most = (service.mebibytes("VmSize") + draw.randint(*_ROOM_MIB)) << 20
            resource.prlimit(service.process.pid, resource.RLIMIT_AS, (most, -1))


def main() -> int:
    """Measure and print; 1 if the service fails."""
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder))
        try:
            flood, before = Flood(service.port), service.mebibytes("VmRSS")
            with _held(service.port):
                flood.run(_SECONDS)
            peak, plain = service.mebibytes("VmHWM"), flood.answers
            print(
                f"as much as it asks for: {before} MiB before, {peak} MiB at most; {dict(plain)}",
                flush=True,
            )
            failed |= not 0 < peak <= _MOST_MIB or not set(plain) <= _EXPECTED
            flood.answers, stop = Counter(), threading.Event()
            thread = threading.Thread(target=_squeeze, args=(service, stop))
            thread.start()
            flood.run(_TIGHT_SECONDS)
            stop.set()
            thread.join()
            ended = service.process.poll()
            failed |= ended is not None or not set(flood.answers) <= _EXPECTED | {0}
            print(f"too little: {dict(flood.answers)}; ended by itself: {ended}", flush=True)
            service.go_on()
            counted = service.counted()
            print(f"sent {flood.sent}, acknowledged {flood.acknowledged}, counted {counted}")
            failed |= not flood.acknowledged <= counted <= flood.sent
        finally:
            service.process.kill()
            service.process.wait()
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
