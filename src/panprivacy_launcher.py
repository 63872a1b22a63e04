"""Starts the command line with an allocator that overwrites what is freed.

glibc and Python choose their allocators when a process starts, so the process starts itself anew
with the settings below. This module stands outside of the package, and imports nothing but the
standard library, because what the package imports would be imported twice.
"""

from __future__ import annotations

import os
import sys

_TUNABLES = {
    "glibc.malloc.perturb": "165",  # freed memory is overwritten at once
    "glibc.malloc.tcache_count": "0",  # small blocks are not kept aside before that
    "glibc.malloc.mmap_threshold": "33554432",  # the most; larger ones go to the kernel as they are
    "glibc.malloc.trim_threshold": "268435456",  # what is overwritten is used again, which is fast
}

_SETTINGS = {
    "PYTHONMALLOC": "malloc",  # Python's own allocator keeps what was freed
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # so do the pools that Arrow brings along
    "LD_BIND_NOW": "1",  # a late binding saves the vector registers, with ids in them, on the stack
}

_PROCESS = "PANPRIVACY_PROCESS"
"""Names the process that has started anew: not its children, which inherit the variable."""


def hardened(environment: dict[str, str]) -> dict[str, str]:
    """The environment that the program needs, on top of one that it finds."""
    given = environment.get("GLIBC_TUNABLES", "").split(":")
    ours = [f"{name}={value}" for name, value in _TUNABLES.items()]
    tunables = ":".join([*filter(_is_kept, given), *ours])
    return {**environment, **_SETTINGS, "GLIBC_TUNABLES": tunables}


def _is_kept(tunable: str) -> bool:
    """Whether it is a setting, and none of ours; one without a value can spoil all of them."""
    name, _, value = tunable.partition("=")
    return bool(name and value) and "=" not in value and name not in _TUNABLES


def main() -> None:
    """Run the command line in a process whose memory is kept clean."""
    if not sys.platform.startswith("linux"):
        sys.stderr.write(
            "panprivacy: it runs on Linux: on macOS and Windows take a container or WSL\n"
        )
        sys.exit(2)
    if os.environ.get(_PROCESS) != str(os.getpid()):
        _start_anew()
    from panprivacy.cli import main as run_command  # noqa: PLC0415 - only in the new process
    from panprivacy.ground.hygiene.protection import protect  # noqa: PLC0415

    protect()
    run_command()


def _start_anew() -> None:
    """Become the hardened process, once: who changes its settings must not make it start forever.

    `panprivacy doctor` tells what did not take effect.
    """
    environment = {**hardened(dict(os.environ)), _PROCESS: str(os.getpid())}
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - itself
    except (OSError, ValueError) as error:
        sys.stderr.write(f"panprivacy: cannot start anew with a clean allocator: {error}\n")
        sys.exit(2)
