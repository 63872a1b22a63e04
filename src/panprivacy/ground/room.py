"""Room in memory, checked before work that must not stop in the middle."""

from __future__ import annotations

import mmap


def check_room(size: int) -> None:
    """Check that this many bytes more can be had now; they are given back at once.

    A limit on the address space of a process (`RLIMIT_AS`) makes allocations fail, and this shows
    it first. A limit on a container does not: the system ends the process there.

    Raises:
        MemoryError: they cannot be had.
    """
    try:
        mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        message = f"{size:,} bytes of memory cannot be had"
        raise MemoryError(message) from None
