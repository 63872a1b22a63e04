"""Runs functions in child processes that see all that this one has, and change nothing in it."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from select import select
from typing import Any, Final

_LONGEST: Final = 600.0
"""Seconds, after which a child is given up."""

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent(parent: int) -> None:
    """Have this process end with the process that made it, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before it could be waited for
        os._exit(1)


def in_a_child(run: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a child process, in a folder of its own; None if it fails."""
    reader, writer = os.pipe()
    parent = os.getpid()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the child has one
        child = os.fork()
        if child == 0:
            try:
                end_with_parent(parent)
                os.close(reader)  # or writing to a pipe that nobody reads would wait for ever
                gc.disable()  # which is slow where memory is shared
                sys.set_int_max_str_digits(0)  # fractions of a walk are long
                os.chdir(folder)
                tempfile.tempdir = "."
                found = json.dumps(run(*arguments)).encode()
                with os.fdopen(writer, "wb") as file:
                    file.write(found)
            finally:
                os._exit(0)
        os.close(writer)
        try:
            written = _read_all(reader)
        finally:
            os.close(reader)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return json.loads(written) if written else None


def _read_all(reader: int) -> bytes:
    """What a child writes until it ends; nothing if that takes too long."""
    parts: list[bytes] = []
    end = time.monotonic() + _LONGEST
    while select([reader], [], [], max(end - time.monotonic(), 0))[0]:
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return b""
