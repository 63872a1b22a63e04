"""The search of memory finds what is hidden from it: else nothing left would mean nothing."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from panprivacy import SystemCoins

from .memory import (
    Needles,
    needs_administrator,
    pieces,
    search_files,
    search_open_files,
    search_process,
    search_registers,
)
from .test_memory import wait_until

pytestmark = needs_administrator

HIDING = """
import _ctypes, ctypes, mmap, os, sys, tempfile

MOVE_AND_PAUSE = bytes.fromhex("f3440f6f3f" "660fefc0" "f30f7f07" "b822000000" "0f05" "c3")
PAGE = mmap.PAGESIZE
data = sys.stdin.buffer.read(80)  # inverted, so that no copy of it is found
places = mmap.mmap(-1, 16 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
start = ctypes.addressof(ctypes.c_char.from_buffer(places))

def hide(at, text):
    for i, byte in enumerate(text):
        places[at + i] = byte ^ 255

hide(PAGE, data[:16])
hide(5 * PAGE - 4, data[16:32])
hide(9 * PAGE, data[32:48])
file = tempfile.TemporaryFile()
for i, byte in enumerate(data[48:64]):
    os.pwrite(file.fileno(), bytes([byte ^ 255]), i)
library = mmap.mmap(os.open(_ctypes.__file__, os.O_RDONLY), 0, access=mmap.ACCESS_COPY)
for i, byte in enumerate(data[64:]):
    library[PAGE + i] = byte ^ 255
libc = ctypes.CDLL(None)
libc.mprotect(ctypes.c_void_p(start + PAGE), PAGE, 0)
libc.mprotect(ctypes.c_void_p(start + 5 * PAGE), PAGE, 1)
places[12 * PAGE : 12 * PAGE + len(MOVE_AND_PAUSE)] = MOVE_AND_PAUSE
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(start + 12 * PAGE)(start + 9 * PAGE)
"""
"""Hides an id on a page that nobody may read, one across two regions, one in the last vector
register of 128 bits, one in a deleted file, and one on a page of a library. Then it pauses."""

PAUSE = "34"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the registers are those of x86-64")
def test_the_search_finds_what_is_hidden():
    rows = [SystemCoins().key(16) for _ in range(5)]
    unreadable, across, register, file, library = (Needles.of(pieces([row], 16)) for row in rows)
    everything = Needles.of(pieces(rows))
    with subprocess.Popen([sys.executable, "-c", HIDING], stdin=subprocess.PIPE) as process:
        process.stdin.write(bytes(byte ^ 255 for row in rows for byte in row))
        process.stdin.flush()
        wait_until(lambda: Path(f"/proc/{process.pid}/syscall").read_text().split()[0] == PAUSE)
        try:
            assert search_process(process.pid, unreadable) == 1
            assert search_process(process.pid, across) == 1
            assert search_process(process.pid, register) == 0
            assert search_registers(process.pid, register) == 1
            assert search_open_files(process.pid, file, Path(os.devnull)) == 1
            assert search_process(process.pid, library) == 1
            assert search_process(process.pid, everything) == 3 * 9
        finally:
            process.kill()


def test_a_file_that_is_renamed_meanwhile_is_searched_under_its_new_name(tmp_path, monkeypatch):
    needle = SystemCoins().key(16)
    (tmp_path / "checkpoint.new").write_bytes(b"before" + needle)
    read, met = Path.read_bytes, []

    def renamed_first(path):
        if not met:
            met.append(path.rename(tmp_path / "checkpoint"))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", renamed_first)
    assert search_files(tmp_path, Needles.of(pieces([needle]))) >= 1
