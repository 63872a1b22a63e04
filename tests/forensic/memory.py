"""Search the memory of another process for what it should have forgotten.

All pages that are there are searched, whatever the program itself may do with them, as are the
registers of its threads and files that it holds open. Left out are pages of libraries that nobody
wrote to: they are as the disk has them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import pytest

needs_administrator = pytest.mark.skipif(
    os.geteuid() != 0, reason="only an administrator can read the memory of the program"
)

_PIECE = 8
_READ_BYTES = 1 << 24
_OVERLAP = 15
_PAGE = mmap.PAGESIZE
_IN_MEMORY_OR_SWAP, _AS_IN_A_FILE = np.uint64(3 << 62), np.uint64(1 << 61)
_UNNAMED = 5
_FILTER_BITS = 20
_UNREADABLE = {"[vvar]", "[vvar_vclock]", "[vsyscall]"}


def pieces(texts, window=_PIECE):
    """All windows of byte strings of one length: uint8[texts * places, window]."""
    rows = np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), -1)
    return np.concatenate([rows[:, i : i + window] for i in range(rows.shape[1] - window + 1)])


@dataclass(frozen=True)
class Needles:
    """What is searched for: byte strings of 8 or 16 bytes, by their first 8.

    A filter of at least 64 bits for each keeps nearly all other memory from being looked up, and a
    coarse one, which the processor has at hand, from being looked up in that. One pass finds those
    of both lengths, as a pass takes as long for one needle as for a million.

    Args:
        firsts: the first 8 bytes of each, sorted.
        seconds: the others.
        wide: whether there are others.
        groups: which of the arrays that they came in each is from.
        filter: a bit for each place to which the first 8 bytes may be mixed.
        coarse: a bit for each byte of the filter.
        filter_bits: the logarithm of the number of places.
    """

    firsts: np.ndarray
    seconds: np.ndarray
    wide: np.ndarray
    groups: np.ndarray
    filter: np.ndarray
    coarse: np.ndarray
    filter_bits: int

    @classmethod
    def of(cls, *windows):
        """From any number of uint8[n, 8] or uint8[n, 16]; one of 8 bytes counts by itself."""
        words = [np.ascontiguousarray(one).view(np.uint64) for one in windows]
        firsts = np.concatenate([one[:, 0] for one in words])
        seconds = np.concatenate([one[:, -1] for one in words])
        wide = np.concatenate([np.full(len(one), one.shape[1] > 1) for one in words])
        groups = np.repeat(np.arange(len(words)), [len(one) for one in words])
        order, bits = np.argsort(firsts), max(_FILTER_BITS, len(firsts).bit_length() + 6)
        passed = np.zeros(1 << bits - 3, np.uint8)
        _pass(firsts, passed, bits)
        coarse = np.packbits(passed != 0, bitorder="little")
        return cls(firsts[order], seconds[order], wide[order], groups[order], passed, coarse, bits)

    @property
    def size(self):
        """How many there are."""
        return len(self.firsts)

    def found_in(self, memory):
        """How many places of uint8[n] hold one."""
        return int(self.each_found_in(memory).sum())

    def each_found_in(self, memory):
        """How many hold one of each array that they came in."""
        found = np.zeros(self.groups.max() + 1, np.int64)
        known = self.firsts, self.seconds, self.wide, self.groups
        _count(memory, *known, self.filter, self.coarse, self.filter_bits, found)
        return found


_MIX = np.uint64(0x9E3779B97F4A7C15)
_FREED, _FRESH = np.uint64(0xA5A5A5A5A5A5A5A5), np.uint64(0x5A5A5A5A5A5A5A5A)
"""What the C library writes into what it frees and hands out: too much of it to look up."""


@numba.njit(cache=True)
def _pass(words, passed, bits):
    for word in words:
        place = word * _MIX >> np.uint64(64 - bits)
        passed[place >> np.uint64(3)] |= np.uint8(1 << (place & np.uint64(7)))


@numba.njit(cache=True)
def _count(memory, firsts, seconds, wide, groups, passed, coarse, bits, found):
    shift = np.uint64(64 - bits)
    word = np.uint64(0)
    for i in range(memory.size):
        word = (word >> np.uint64(8)) | (np.uint64(memory[i]) << np.uint64(56))
        if i < _PIECE - 1 or word in (np.uint64(0), _FREED, _FRESH):
            continue
        place = word * _MIX >> shift
        byte = place >> np.uint64(3)
        if not coarse[byte >> np.uint64(3)] >> np.uint8(byte & np.uint64(7)) & 1:
            continue
        if not passed[byte] >> np.uint8(place & np.uint64(7)) & 1:
            continue
        at = np.searchsorted(firsts, word)
        while at < firsts.size and firsts[at] == word:
            if not wide[at] or _follows(memory, i + 1, seconds[at]):
                found[groups[at]] += 1
                break
            at += 1


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
    return int(search_process_for_each(process, needles).sum())


def search_process_for_each(process, needles):
    """How often those of each array that they came in do."""
    found = 0
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for start, end in _present(process):
            for at in range(start, end, _READ_BYTES):
                part = _read(memory, at, min(end, at + _READ_BYTES + _OVERLAP))
                found += needles.each_found_in(part)
    return found


def count_in_process(process, text):
    """How often a text of at most 16 bytes lies in the memory of a process."""
    found = 0
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for start, end in _present(process):
            for at in range(start, end, _READ_BYTES):
                stop = min(end, at + _READ_BYTES + len(text) - 1)
                found += _read(memory, at, stop).tobytes().count(text)
    return found


def _present(process):
    """Runs of pages that are in memory or swap; what crosses from one region to the next counts."""
    pages = []
    with Path(f"/proc/{process}/pagemap").open("rb", buffering=0) as entries:
        for start, end, library in _regions(process):
            entries.seek(start // _PAGE * 8)
            seen = np.frombuffer(entries.read((end - start) // _PAGE * 8), np.uint64)
            there = (seen & _IN_MEMORY_OR_SWAP) != 0
            if library:
                there &= (seen & _AS_IN_A_FILE) == 0
            pages.append(start // _PAGE + np.flatnonzero(there))
    pages = np.unique(np.concatenate(pages))
    for run in np.split(pages, np.flatnonzero(np.diff(pages) > 1) + 1):
        yield int(run[0]) * _PAGE, (int(run[-1]) + 1) * _PAGE


def _regions(process):
    """What is mapped, and whether it is a library that others do not share.

    A region that the program may not read can hold what it once wrote.
    """
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        fields = line.split()
        name = fields[_UNNAMED] if len(fields) > _UNNAMED else ""
        if name not in _UNREADABLE:
            start, end = (int(address, 16) for address in fields[0].split("-"))
            yield start, end, ".so" in name and fields[1].endswith("p")


def _read(memory, start, end):
    """What lies there; a page that cannot be read is left out, and those behind it are not."""
    parts = []
    while start < end:
        memory.seek(start)
        try:
            part = memory.read(end - start)
        except OSError:
            part = b""
        parts.append(part or bytes(min(_PAGE, end - start)))
        start += len(parts[-1])
    return np.frombuffer(b"".join(parts), np.uint8)


def search_files(folder, needles):
    """How often needles lie in the files of a folder; all again where one was renamed meanwhile."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    try:
        return sum(needles.found_in(np.frombuffer(path.read_bytes(), np.uint8)) for path in files)
    except FileNotFoundError:
        return search_files(folder, needles)


def processes_below(process):
    """The process and all its descendants."""
    found = [process]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def search_open_files(process, needles, known):
    """How often needles lie in the files that a process holds open, deleted ones too."""
    found = 0
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has just been closed
            status = link.stat()
            if stat.S_ISREG(status.st_mode) and not os.path.samestat(status, known.stat()):
                found += needles.found_in(np.frombuffer(link.read_bytes(), np.uint8))
    return found


_SEIZE, _INTERRUPT, _DETACH, _GET_REGISTERS = 0x4206, 0x4207, 17, 0x4204
_GENERAL, _VECTORS = 1, 0x202
_WAIT_FOR_THREADS = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long


class _Piece(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("size", ctypes.c_size_t))


def search_registers(process, needles):
    """How often needles lie in the registers of the threads of a process."""
    threads = [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]
    return sum(needles.found_in(registers(thread)) for thread in threads)


def registers(thread):
    """What is in the registers of a thread, which is stopped for a moment.

    A vector register of 512 bits lies there in up to three pieces of at least 16 bytes.
    """
    _trace(_SEIZE, thread)
    try:
        _trace(_INTERRUPT, thread)
        os.waitpid(thread, _WAIT_FOR_THREADS)
        held = _registers(thread, _GENERAL) + _registers(thread, _VECTORS)
        return np.frombuffer(held, np.uint8)
    finally:
        _trace(_DETACH, thread)


def _registers(thread, kind):
    buffer = ctypes.create_string_buffer(1 << 14)
    piece = _Piece(ctypes.addressof(buffer), len(buffer))
    return b"" if _trace(_GET_REGISTERS, thread, kind, piece) else buffer.raw[: piece.size]


def _trace(request, thread, number=0, piece=None):
    """A call of `ptrace`; only registers that the processor lacks may be refused."""
    result = _LIBC.ptrace(request, thread, number, ctypes.byref(piece) if piece else None)
    if result and request != _GET_REGISTERS:
        raise OSError(ctypes.get_errno(), "the thread cannot be traced")
    return result
