"""Search the memory of another process for what it should have forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np

_PIECE = 8
_READ_BYTES = 1 << 24
_FILTER_BITS = 25
_UNREADABLE = {"[vvar]", "[vvar_vclock]", "[vsyscall]"}


def pieces(texts, window=_PIECE):
    """All windows of byte strings of one length: uint8[texts * places, window]."""
    rows = np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), -1)
    return np.concatenate([rows[:, i : i + window] for i in range(rows.shape[1] - window + 1)])


@dataclass(frozen=True)
class Needles:
    """What is searched for: byte strings of 8 or 16 bytes, by their first 8.

    A filter of 2**25 bits keeps nearly all other memory from being looked up.
    """

    firsts: np.ndarray
    seconds: np.ndarray
    filter: np.ndarray

    @classmethod
    def of(cls, windows):
        """From uint8[n, 8] or uint8[n, 16]; one of 8 bytes counts whatever follows it."""
        words = np.unique(np.ascontiguousarray(windows).view(np.uint64), axis=0)
        firsts = np.ascontiguousarray(words[:, 0])
        seconds = np.ascontiguousarray(words[:, 1]) if words.shape[1] > 1 else np.empty(0, "u8")
        passed = np.zeros(1 << _FILTER_BITS, bool)
        passed[firsts * _MIX >> np.uint64(64 - _FILTER_BITS)] = True
        return cls(firsts, seconds, passed)

    def found_in(self, memory):
        """How many places of uint8[n] hold one."""
        return _count(memory, self.firsts, self.seconds, self.filter)


_MIX = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True)
def _count(memory, firsts, seconds, passed):
    found = 0
    shift = np.uint64(64 - _FILTER_BITS)
    word = np.uint64(0)
    for i in range(memory.size):
        word = (word >> np.uint64(8)) | (np.uint64(memory[i]) << np.uint64(56))
        if i < _PIECE - 1 or not passed[(word * _MIX) >> shift]:
            continue
        at = np.searchsorted(firsts, word)
        while at < firsts.size and firsts[at] == word:
            if seconds.size == 0 or _follows(memory, i + 1, seconds[at]):
                found += 1
                break
            at += 1
    return found


@numba.njit(cache=True)
def _follows(memory, start, wanted):
    if start + _PIECE > memory.size:
        return False
    word = np.uint64(0)
    for i in range(_PIECE):
        word |= np.uint64(memory[start + i]) << np.uint64(8 * i)
    return word == wanted


def search_process(process, needles):
    """How often needles lie in the memory of a process."""
    found = 0
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for start, end in _regions(process):
            for at in range(start, end, _READ_BYTES):
                found += needles.found_in(_read(memory, at, min(end, at + _READ_BYTES + 15)))
    return found


def _regions(process):
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        fields = line.split()
        if fields[1].startswith("r") and fields[-1] not in _UNREADABLE:
            yield tuple(int(address, 16) for address in fields[0].split("-"))


def _read(memory, start, end):
    """What lies there, up to where nothing can be read."""
    memory.seek(start)
    try:
        return np.frombuffer(memory.read(end - start), np.uint8)
    except OSError:
        return np.empty(0, np.uint8)


def search_files(folder, needles):
    """How often needles lie in the files of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(needles.found_in(np.frombuffer(path.read_bytes(), np.uint8)) for path in files)


def processes_below(process):
    """The process and all its descendants."""
    found = [process]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found
