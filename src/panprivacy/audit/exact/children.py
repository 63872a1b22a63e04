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
import traceback
import warnings
from collections.abc import Callable
from select import select
from typing import Any, Final

from panprivacy.errors import PanPrivacyError

_LONGEST: Final = 600.0
"""Seconds, after which a child is given up."""

_PR_SET_PDEATHSIG: Final = 1


class ChildError(PanPrivacyError):
    """A child ended without a word, or took too long: nothing is known of what it tried."""


class RaisedError(ChildError):
    """A failure inside the child; the message is the child's traceback."""


def end_with_parent(parent: int) -> None:
    """Make this process end when the process that made it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before it could be waited for
        os._exit(1)


def in_a_child(run: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function that runs in a child process, in a folder of its own.

    Raises:
        RaisedError: the function failed.
        ChildError: the child ended before it returned, or was not done after ten minutes.
    """
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
                told = _returned_or_raised(run, *arguments).encode()
                with os.fdopen(writer, "wb") as file:
                    file.write(told)
            finally:
                os._exit(0)
        os.close(writer)
        try:
            written = _read_all(reader)
        finally:
            os.close(reader)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if not written:
        message = "the process in which a program was tried ended, or took too long: try again; if "
        message += "it comes again, see that the program ends no process and there is memory"
        raise ChildError(message)
    returned, raised = json.loads(written)
    if raised is not None:
        raise RaisedError(raised)
    return returned


def _returned_or_raised(run: Callable[..., Any], *arguments: Any) -> str:
    """Return the result of a function, or the traceback of its error; "" if memory runs out."""
    try:
        return json.dumps((run(*arguments), None))
    except MemoryError:  # as of a process that is ended for want of it
        return ""
    except BaseException:  # noqa: BLE001 - also what would end this process
        return json.dumps((None, traceback.format_exc()))


def _read_all(reader: int) -> bytes:
    """Return the bytes that a child writes until it ends; nothing if that takes too long."""
    parts: list[bytes] = []
    end = time.monotonic() + _LONGEST
    while select([reader], [], [], max(end - time.monotonic(), 0))[0]:
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return b""
