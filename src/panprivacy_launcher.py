"""Starts the command line with an allocator that overwrites what is freed.

glibc and Python choose their allocators when a process starts, so the process starts itself anew
with the settings below. This module stands outside of the package, and imports nothing but the
standard library, because importing the package takes most of a second and would be done twice.
"""

from __future__ import annotations

import os
import sys

_TUNABLES = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"
"""Freed memory is overwritten at once; small blocks are not kept aside before that."""

_SETTINGS = {
    "PYTHONMALLOC": "malloc",  # Python's own allocator keeps what was freed
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # so do the pools that Arrow brings along
    "LD_BIND_NOW": "1",  # a late binding saves the vector registers, with ids in them, on the stack
}


def hardened(environment: dict[str, str]) -> dict[str, str]:
    """The environment that the program needs, on top of one that it finds."""
    given = environment.get("GLIBC_TUNABLES", "")
    others = [one for one in given.split(":") if one and one not in _TUNABLES.split(":")]
    return {**environment, **_SETTINGS, "GLIBC_TUNABLES": ":".join([*others, _TUNABLES])}


def main() -> None:
    """Run the command line in a process whose memory is kept clean."""
    wanted = hardened(dict(os.environ))
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], wanted)  # noqa: S606 - itself
    from panprivacy.cli import main as run_command  # noqa: PLC0415 - only in the new process
    from panprivacy.hygiene import protect  # noqa: PLC0415

    protect()
    run_command()
