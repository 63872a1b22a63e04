"""A program that crashes leaves no core, whatever its limit was when it was started.

The limit of each program is lifted before it starts, in a folder of its own. It takes in ids and
is sent a signal that dumps. Beside them, a process without the launcher: the same signal leaves a
core there, with the ids of the body that it was reading.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from panprivacy.service.config.tokens import hash_of
from tests.commands import run_command

from .memory import needs_administrator
from .test_memory import HARDENED, PLAIN, wait_until

pytestmark = [needs_administrator, pytest.mark.long]

_PATTERN = Path("/proc/sys/kernel/core_pattern").read_text().strip()
_WHERE = re.compile(r"(?:listening where=|collector is at )(\S+)")
_SIGNALS = signal.SIGABRT, signal.SIGSEGV
_CANARY = b"canary-canary-canary-7f3a"
_CONFIG = f"""
[server]
listen = "127.0.0.1:0"
[[tokens]]
name = "all"
may = ["ingest", "read"]
sha256 = "{hash_of("pp_all")}"
[streams.visits]
epsilon = 1
window = "1d"
[[streams.visits.stat]]
name = "distinct"
expected = "1000:1e6"
"""


def words_of(command, folder):
    """The rest of the command line, and the files that it needs."""
    if command == "collector":
        task = folder / "task.json"
        options = ["--horizon", "1", "--epsilon", "1", "--signer", folder / "signer"]
        made = run_command("task", task, "--kind", "count-nonzero", *options)
        assert made.code == 0, made.stderr
        return [task, "--listen", "127.0.0.1:0"]
    (folder / "service.toml").write_text(_CONFIG)
    return [folder / "service.toml"]


def crashed(program, command, folder, number):
    """Start a program whose cores are not limited, send it an id, and have it crash."""
    unlimited = ["sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh"]
    words = [*unlimited, sys.executable, *program, command, *map(str, words_of(command, folder))]
    places = {name: str(folder) for name in ("HOME", "TMPDIR")}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, **places},
        )  # fmt: skip
    try:
        said = folder / "log"
        wait_until(lambda: process.poll() is not None or _WHERE.search(said.read_text()))
        where = _WHERE.search(said.read_text())
        assert where is not None, said.read_text()
        host, port = where[1].rpartition("/")[2].split(":")
        with socket.create_connection((host, int(port))) as sock:
            head = "POST /v1/streams/visits/updates HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
            head += "pp_all\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100000\r\n\r\n"
            sock.sendall(head.encode() + b'{"user": "%s"}\n' % _CANARY)  # and there it ends
            wait_until(lambda: unread(sock) == 0)
            time.sleep(1)  # until the program has it
            process.send_signal(number)
            assert process.wait(60) == -number
    finally:
        process.kill()
        process.wait()
    return [path for path in folder.rglob("*") if path.name.startswith("core")]


def unread(sock):
    """Bytes that the other side has not acknowledged."""
    return struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0]


@pytest.mark.parametrize("command", ["serve", "collector"])
@pytest.mark.parametrize("number", _SIGNALS)
def test_a_crash_leaves_no_core(command, number, tmp_path):
    assert crashed(HARDENED, command, tmp_path, number) == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if _CANARY in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.skipif(
    _PATTERN.startswith("|") or "/" in _PATTERN, reason="cores go elsewhere on this machine"
)
def test_without_the_launcher_there_is_one_with_an_id_in_it(tmp_path):
    (core,) = crashed(PLAIN, "serve", tmp_path, signal.SIGABRT)
    with core.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        found = held.find(_CANARY)
    core.unlink()  # a gigabyte
    assert found > 0
