"""What keeps ids out of freed memory, dumps and swap, and whether it is on.

The C library's allocator is set by `panprivacy_launcher`, before the process starts. The rest is
set here. `findings` asks the system what is really on, and believes no setting.
"""

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

from panprivacy.allocator import has_spare_words, leave_spare_words

_LIBC = ctypes.CDLL(None, use_errno=True)
_IS_LINUX = sys.platform.startswith("linux")
_GET_DUMPABLE, _SET_DUMPABLE = 3, 4
_LOCK_EVERYTHING = 1 | 2 | 4
"""What is mapped now, what will be, and each page not before it is touched."""
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
class Finding:
    """One measure, as it really is.

    Args:
        name: of the measure.
        ok: whether ids are safe from what it is against.
        says: what was found.
        fix: what to do when it is not ok.
    """

    name: str
    ok: bool
    says: str
    fix: str


def protect() -> None:
    """Have what is freed overwritten whole; forbid core dumps, and others to read it; lock memory.

    What the system does not allow is left; `findings` tells.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not _IS_LINUX:
        return
    leave_spare_words()
    _LIBC.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    _lock_memory()


def _lock_memory() -> None:
    """Lock memory if that has no limit; with one, allocations would fail beyond it.

    With a limit of 0 only a process that may exceed it can lock. Its capabilities do not tell:
    those of a container need not count outside of it.
    """
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    limit = most if most == resource.RLIM_INFINITY else 0
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, most))
    _LIBC.mlockall(_LOCK_EVERYTHING)


def findings() -> list[Finding]:
    """What is on in this process and on this machine."""
    if not _IS_LINUX:
        says = "memory is only protected on Linux"
        return [Finding("system", ok=False, says=says, fix="run it on Linux")]
    checks: list[Callable[[], Finding]] = [
        _allocator, _dumps, _swap, _hibernation, _tracing, _sealing_key, _clock,
    ]  # fmt: skip
    return [check() for check in checks]


def _allocator() -> Finding:
    import pyarrow as pa  # noqa: PLC0415 - whoever only protects the process may not need it

    kept = []
    if not _free_overwrites():
        kept.append("the C library")
    if sys.getallocatedblocks() or not has_spare_words():  # blocks of Python's own allocator
        kept.append("Python")
    if pa.default_memory_pool().backend_name != "system":
        kept.append("Arrow")
    return Finding(
        "allocator",
        not kept,
        f"what is freed is kept by {' and '.join(kept)}" if kept else "freed memory is overwritten",
        "start it as panprivacy, not with python -E or -I, on Linux with glibc 2.26 or newer",
    )


def _free_overwrites() -> bool:
    """Free a block that others keep from being given back to the system, and look at it again.

    What is left of a freed block lies in memory that stays mapped; nothing is written to it.
    """
    _LIBC.malloc.restype = ctypes.c_void_p
    block, guard = _LIBC.malloc(_PROBE_BYTES), _LIBC.malloc(_PROBE_BYTES)
    ctypes.memmove(block, _PROBE_MARK * _PROBE_BYTES, _PROBE_BYTES)
    _LIBC.free(ctypes.c_void_p(block))
    left = ctypes.string_at(block, _PROBE_BYTES)
    _LIBC.free(ctypes.c_void_p(guard))
    return _PROBE_MARK * 8 not in left


def _dumps() -> Finding:
    dumpable = _LIBC.prctl(_GET_DUMPABLE, 0, 0, 0, 0) != 0
    limit = resource.getrlimit(resource.RLIMIT_CORE)[0]
    off = not dumpable and limit == 0
    return Finding(
        "dumps",
        off,
        "no core dumps; other processes of this user cannot read this one"
        if off
        else "this process can be dumped or read",
        "start it as panprivacy, not from within another program",
    )


def _swap() -> Finding:
    locked = _is_locked()
    swappable = not locked and bool(_swaps())
    return Finding(
        "swap",
        not swappable,
        "memory may be written to swap"
        if swappable
        else "memory is locked"
        if locked
        else "there is no swap",
        "allow locking (ulimit -l unlimited; LimitMEMLOCK=infinity for systemd), or swapoff -a",
    )


def _is_locked() -> bool:
    """Whether what is mapped from now on is locked; a library may have locked a page of its own."""
    before = _locked_kibibytes()
    with mmap.mmap(-1, mmap.PAGESIZE):
        return _locked_kibibytes() > before


def _locked_kibibytes() -> int:
    return int(_status("VmLck").split()[0])


def _swaps() -> list[str]:
    """The swap areas of the machine."""
    return _text("/proc/swaps").splitlines()[1:]


def _hibernation() -> Finding:
    able = "disk" in _text("/sys/power/state").split() and bool(_swaps())
    return Finding(
        "hibernation",
        not able,
        "the machine can write its memory to disk" if able else "memory is never written to disk",
        "systemctl mask hibernate.target hybrid-sleep.target suspend-then-hibernate.target, "
        "and swapoff -a",
    )


def _tracing() -> Finding:
    scope = _text("/proc/sys/kernel/yama/ptrace_scope").strip()
    return Finding(
        "ptrace scope",
        scope in _ATTACHERS,
        _ATTACHERS.get(scope, "the kernel does not restrict who attaches to a process"),
        "sysctl kernel.yama.ptrace_scope=1, on a kernel with Yama",
    )


def _sealing_key() -> Finding:
    found = next(_key_files(), None)
    return Finding(
        "sealing key",
        found is None,
        "no age identity in the usual places"
        if found is None
        else f"an age identity lies in {_printable(found.parent.absolute())}",
        "move the identity to another machine: whoever takes this one opens all checkpoints",
    )


def _key_files() -> Iterator[Path]:
    """Small files in the usual places that hold an age identity."""
    for folder in _KEY_FOLDERS:
        with suppress(OSError, RuntimeError):  # unreadable, or a user without a home
            for path in sorted(Path(folder).expanduser().iterdir()):
                if _holds_key(path):
                    yield path


def _holds_key(path: Path) -> bool:
    """Whether it is a small file with the mark; those of the kernel have no size, and may wait."""
    with suppress(OSError):
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= _MOST_KEY_BYTES:
            return _KEY_MARK in path.read_bytes()
    return False


def _printable(path: Path) -> str:
    """A path as text; a name on disk can be any bytes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _clock() -> Finding:
    record = ctypes.create_string_buffer(256)  # zero modes: it is only read
    state = _LIBC.adjtimex(record)
    return Finding(
        "clock",
        0 <= state < _NOT_SYNCHRONISED,
        "synchronised"
        if 0 <= state < _NOT_SYNCHRONISED
        else "nothing keeps the clock right, by which windows are cut",
        "timedatectl set-ntp true, or run chrony",
    )


def _status(name: str) -> str:
    """A field of this process's status; "0" if there is none."""
    for line in _text("/proc/self/status").splitlines():
        field, _, value = line.partition(":")
        if field == name:
            return value.strip()
    return "0"


def _text(path: str) -> str:
    """A file of the kernel, empty if there is none."""
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""
