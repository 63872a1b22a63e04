"""What docs/threat-model.md says is not protected is really open: the same search finds it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from .memory import needs_administrator
from .test_memory import (
    HARDENED,
    STAT,
    csv_lines,
    found,
    is_waiting,
    started,
    texts,
    wait_until,
    write_all,
)

pytestmark = needs_administrator

PIPE = ["-", "--format", "csv", "--user", "id", *STAT]
READ_BYTES = 4_096


@pytest.mark.slow
def test_an_event_in_flight_is_in_memory(tmp_path):
    """The last line has no end yet, so the program keeps it."""
    canaries = texts()
    data = csv_lines(canaries.table()).removesuffix(b",1\n")
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with started(HARDENED, PIPE, tmp_path, **streams) as process:
        write_all(process.stdin, data)
        wait_until(lambda: is_waiting(process, process.stdin))
        in_memory, *_ = found(process, canaries, tmp_path)
    assert 0 < in_memory < 1_000


@pytest.mark.slow
def test_what_is_not_yet_read_lies_in_the_pipe(tmp_path):
    """Whoever may open the pipe of a stopped program reads what it has not read."""
    data = csv_lines(texts().table())[:READ_BYTES]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with started(HARDENED, PIPE, tmp_path, **streams) as process:
        process.send_signal(signal.SIGSTOP)
        write_all(process.stdin, data)
        pipe = os.open(Path(f"/proc/{process.pid}/fd/0"), os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert os.read(pipe, READ_BYTES) == data
        finally:
            os.close(pipe)


@pytest.mark.slow
def test_the_kernel_counts_bytes(tmp_path):
    """To the byte, for whoever may look: how much came is not hidden, only who."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with started(HARDENED, PIPE, tmp_path, **streams) as process:
        process.stdin.write(b"id,delta\n" + b"a,1\n" * 100)
        wait_until(lambda: is_waiting(process, process.stdin))
        before = bytes_read(process)
        process.stdin.write(b"b,1\n" * 250)
        wait_until(lambda: is_waiting(process, process.stdin))
        assert bytes_read(process) - before >= 1_000


def bytes_read(process):
    return int(Path(f"/proc/{process.pid}/io").read_text().split()[1])
