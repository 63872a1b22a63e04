"""Sets what protects the memory of this process, as far as the system allows.

The C library's allocator is set by `panprivacy_launcher`, before the process starts.
"""

from __future__ import annotations

import ctypes
import resource
import sys

from panprivacy.ground.hygiene.allocator import leave_spare_words

_LIBC = ctypes.CDLL(None)
_SET_DUMPABLE = 4
_LOCK_EVERYTHING = 1 | 2 | 4
"""Lock current mappings, future ones, and each page only when it is touched."""


def protect() -> None:
    """Overwrite freed memory completely; forbid core dumps and reads by others; lock memory.

    Measures that the system does not allow are skipped; `doctor.findings` reports them.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not sys.platform.startswith("linux"):
        return
    leave_spare_words()
    _LIBC.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    _lock_memory()


def _lock_memory() -> None:
    """Lock memory if that has no limit; with a limit, larger allocations would fail.

    With a limit of 0 only a process that may exceed it can lock. Its capabilities do not tell:
    those of a container need not count outside of it.
    """
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    limit = most if most == resource.RLIM_INFINITY else 0
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, most))
    _LIBC.mlockall(_LOCK_EVERYTHING)
