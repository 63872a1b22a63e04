"""Checks of the protection of ids in this process and on this machine, by the system's state."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from panprivacy.ground.hygiene.allocator import has_spare_words

_LIBC = ctypes.CDLL(None, use_errno=True)
_GET_DUMPABLE = 3
_NOT_SYNCHRONISED = 5
_PROBE_BYTES = 256
_PROBE_MARK = b"\x3c"
"""Neither 165 nor 90, which the C library writes into what it frees and hands out."""
_ATTACHERS = {
    "1": "1: only a parent or an administrator may attach to a process",
    "2": "2: only an administrator may attach to a process",
    "3": "3: nobody may attach to a process",
}
_KEY_MARK = b"AGE-SECRET-KEY-"
_MOST_KEY_BYTES = 1 << 16
_KEY_FOLDERS = ["~", "~/.age", "~/.config/age", "~/.config/sops/age", "/etc/panprivacy", "."]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure in its actual state.

    Args:
        name: name of the measure.
        ok: whether ids are safe from what it is against.
        says: the finding.
        fix: remedy when it is not ok.
    """

    name: str
    ok: bool
    says: str
    fix: str


def findings() -> list[Measure]:
    """Return the measures of this process and this machine."""
    if not sys.platform.startswith("linux"):
        says = "memory is only protected on Linux"
        return [Measure("system", ok=False, says=says, fix="run it on Linux")]
    checks: list[Callable[[], Measure]] = [
        _allocator, _dumps, _swap, _hibernation, _tracing, _sealing_key, _clock,
    ]  # fmt: skip
    return [check() for check in checks]


def _allocator() -> Measure:
    kept = []
    if not _free_overwrites():
        kept.append("the C library")
    if sys.getallocatedblocks() or not has_spare_words():  # blocks of Python's own allocator
        kept.append("Python")
    if pa.default_memory_pool().backend_name != "system":
        kept.append("Arrow")
    return Measure(
        "allocator",
        not kept,
        f"what is freed is kept by {' and '.join(kept)}" if kept else "freed memory is overwritten",
        "start it as panprivacy, not with python -E or -I, on Linux with glibc 2.26 or newer",
    )


def _free_overwrites() -> bool:
    """Free a block that others keep from being returned to the system, and read it again.

    What is left of a freed block lies in memory that stays mapped; nothing is written to it.
    """
    _LIBC.malloc.restype = ctypes.c_void_p
    block, guard = _LIBC.malloc(_PROBE_BYTES), _LIBC.malloc(_PROBE_BYTES)
    ctypes.memmove(block, _PROBE_MARK * _PROBE_BYTES, _PROBE_BYTES)
    _LIBC.free(ctypes.c_void_p(block))
    left = ctypes.string_at(block, _PROBE_BYTES)
    _LIBC.free(ctypes.c_void_p(guard))
    return _PROBE_MARK * 8 not in left


def _dumps() -> Measure:
    dumpable = _LIBC.prctl(_GET_DUMPABLE, 0, 0, 0, 0) != 0
    limit = resource.getrlimit(resource.RLIMIT_CORE)[0]
    off = not dumpable and limit == 0
    says = "this process can be dumped or read"
    if off:
        says = "no core dumps; other processes of this user cannot read this one"
    return Measure("dumps", off, says, "start it as panprivacy, not from within another program")


def _swap() -> Measure:
    fix = "allow locking (ulimit -l unlimited; LimitMEMLOCK=infinity for systemd), or swapoff -a"
    if _is_locked():
        return Measure("swap", ok=True, says="memory is locked", fix=fix)
    swaps = bool(_swaps())
    says = "memory may be written to swap" if swaps else "there is no swap"
    return Measure("swap", not swaps, says, fix)


def _is_locked() -> bool:
    """Return whether new mappings are locked; a library may have locked a page of its own."""
    before = _locked_kibibytes()
    with mmap.mmap(-1, mmap.PAGESIZE):
        return _locked_kibibytes() > before


def _locked_kibibytes() -> int:
    return int(_status("VmLck").split()[0])


def _swaps() -> list[str]:
    """Return the swap areas of the machine."""
    return _text("/proc/swaps").splitlines()[1:]


def _hibernation() -> Measure:
    able = "disk" in _text("/sys/power/state").split() and bool(_swaps())
    return Measure(
        "hibernation",
        not able,
        "the machine can write its memory to disk" if able else "memory is never written to disk",
        "systemctl mask hibernate.target hybrid-sleep.target suspend-then-hibernate.target, "
        "and swapoff -a",
    )


def _tracing() -> Measure:
    scope = _text("/proc/sys/kernel/yama/ptrace_scope").strip()
    return Measure(
        "ptrace scope",
        scope in _ATTACHERS,
        _ATTACHERS.get(scope, "the kernel does not restrict who attaches to a process"),
        "sysctl kernel.yama.ptrace_scope=1, on a kernel with Yama",
    )


def _sealing_key() -> Measure:
    says, found = "no age identity in the usual places", next(_key_files(), None)
    if found is not None:
        folder = os.fsencode(found.parent.absolute())  # a name on disk can be any bytes
        says = f"an age identity lies in {folder.decode(errors='backslashreplace')}"
    fix = "move the identity to another machine: whoever takes this one opens all checkpoints"
    return Measure("sealing key", found is None, says, fix)


def _key_files() -> Iterator[Path]:
    """Yield the small files in the usual places that hold an age identity."""
    for folder in _KEY_FOLDERS:
        with suppress(OSError, RuntimeError):  # unreadable, or a user without a home
            for path in sorted(Path(folder).expanduser().iterdir()):
                with suppress(OSError):
                    status = path.stat()  # files of the kernel have no size, and may wait
                    is_small = 0 < status.st_size <= _MOST_KEY_BYTES
                    if is_small and stat.S_ISREG(status.st_mode) and _KEY_MARK in path.read_bytes():
                        yield path


def _clock() -> Measure:
    record = ctypes.create_string_buffer(256)  # zero modes: it is only read
    state = _LIBC.adjtimex(record)
    kept = 0 <= state < _NOT_SYNCHRONISED
    says = "synchronised" if kept else "nothing keeps the clock right, by which windows are cut"
    return Measure("clock", kept, says, "timedatectl set-ntp true, or run chrony")


def _status(name: str) -> str:
    """Return a field of this process's status; "0" if there is none."""
    for line in _text("/proc/self/status").splitlines():
        field, _, value = line.partition(":")
        if field == name:
            return value.strip()
    return "0"


def _text(path: str) -> str:
    """Return a file of the kernel, empty if there is none."""
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""
