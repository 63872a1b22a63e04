"""Clean-up of the processes that a coordinator leaves behind, even if it is killed.

Two processes of Ray run for a minute after the rest of Ray was killed. Their parent is gone by
then, so they can no longer be found. This module is the program of a process that notes them while
it can find them. It uses only the standard library: it starts at once, and takes little memory.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_MILLISECONDS = 1_000
_END_OF_INPUT = 0


@contextmanager
def ended_with_this_process() -> Iterator[None]:
    """End all processes that descend from this one when the block ends, or this process does."""
    program = [sys.executable, "-I", "-S", __file__, str(os.getpid())]
    with subprocess.Popen(  # noqa: S603 - this file
        program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ):
        yield  # on exit its standard input is closed


def watch(ancestor: int) -> None:
    """Note the descendants of a process until standard input ends, and kill them.

    A process is noted by a file descriptor, which never comes to mean another process.
    """
    noted: dict[int, int] = {}
    poll = select.poll()
    poll.register(_END_OF_INPUT, select.POLLIN | select.POLLHUP)
    while True:
        ended = {place for place, _ in poll.poll(_LOOK_MILLISECONDS)}
        if _END_OF_INPUT in ended:
            break
        for pid in [pid for pid, place in noted.items() if place in ended]:
            poll.unregister(noted[pid])
            os.close(noted.pop(pid))
        for pid in descendants(ancestor) - noted.keys() - {os.getpid()}:
            with suppress(OSError):  # it has ended in the meantime
                noted[pid] = os.pidfd_open(pid)
                poll.register(noted[pid], select.POLLIN)
    for place in noted.values():
        with suppress(OSError):
            signal.pidfd_send_signal(place, signal.SIGKILL)


def descendants(ancestor: int) -> set[int]:
    """Return the pids of the processes that descend from a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(entry.name)] = int(stat[1])
    found = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {ancestor}


if __name__ == "__main__":
    watch(int(sys.argv[1]))
