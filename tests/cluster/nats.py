"""A real NATS server in a process of its own: started, stopped, killed, and started again."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

_PATIENCE = 10.0
_PAUSE = 0.01
_CONFIG = """
listen: "{host}:{port}"
http: "127.0.0.1:{monitor}"
{extra}
"""
_JETSTREAM = 'jetstream {{ store_dir: "{folder}", max_memory_store: {memory} }}'


class NatsServer:
    """A server on a port of its own; as a context manager, it is killed in the end.

    Args:
        program: nats-server.
        memory: bytes that all its queues have together; 0 for a server without JetStream.
        extra: lines of its configuration.
        host: where it listens.
    """

    def __init__(
        self, program: str, *, memory: int = 1 << 30, extra: str = "", host: str = "127.0.0.1"
    ) -> None:
        self._program, self._host = program, host
        self._folder = tempfile.TemporaryDirectory(prefix="nats-")
        with socket.socket() as free, socket.socket() as other:
            for one in (free, other):
                one.bind(("127.0.0.1", 0))
            self.port, self._monitor = free.getsockname()[1], other.getsockname()[1]
        path = Path(self._folder.name)
        if memory:
            extra += "\n" + _JETSTREAM.format(folder=path / "js", memory=memory)
        config = _CONFIG.format(host=host, port=self.port, monitor=self._monitor, extra=extra)
        (path / "nats.conf").write_text(config)
        self._arguments = [program, "--config", str(path / "nats.conf")]
        self._process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"nats://{self._host}:{self.port}"

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Where it writes."""
        return Path(self._folder.name)

    def told(self, what: str) -> dict[str, Any]:
        """What it tells of itself: `varz`, or `jsz` of JetStream."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._monitor}/{what}") as answer:
            return json.load(answer)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with (Path(self._folder.name) / "log").open("ab") as log:
            self._process = subprocess.Popen(self._arguments, stdout=log, stderr=log)
        until = time.monotonic() + _PATIENCE
        while True:
            with suppress(OSError), socket.create_connection((self._host, self.port), 1.0):
                return
            if time.monotonic() > until:
                raise RuntimeError((Path(self._folder.name) / "log").read_text())
            time.sleep(_PAUSE)

    def kill(self) -> None:
        """End it at once, with all that it had in memory."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Let it stand still."""
        self._process.send_signal(signal.SIGSTOP)
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(_PAUSE)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self._folder.cleanup()


def found_nats() -> str:
    """The program; a test that needs it is skipped where there is none."""
    found = shutil.which("nats-server") or shutil.which("/usr/sbin/nats-server")
    if found is None:
        pytest.skip("NATS is not installed: no nats-server in the PATH or /usr/sbin")
    return found


class Proxy:
    """A way to a server that can be cut.

    Args:
        port: of the server.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"nats://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break all connections, with what is under way in them."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                one = self._listener.accept()[0]
                other = socket.create_connection(("127.0.0.1", self._to))
                self._open += [one, other]
                for ends in ((one, other), (other, one)):
                    self._start(self._copy, *ends)

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 12):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)  # so that the other way ends as well
        source.close()

    def _start(self, work, *arguments) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(_PATIENCE)
