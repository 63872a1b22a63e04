"""How a service goes on from its checkpoint, which the machine it runs on cannot open.

The service waits at a Unix socket. Where the identity is brought for a moment, another process
unseals the checkpoint and hands the states over; the identity never enters the service, and the
states touch no disk.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from panprivacy.errors import InputError, PanPrivacyError, PlanError

DESK = "restore.sock"
"""In the directory of a service: where it waits for its checkpoint to be restored."""

_LENGTH = struct.Struct("<Q")
_MOST_BYTES = 1 << 36
_PATIENCE = 60.0
_DONE = b"done\n"


class Desk:
    """Waits for the states at a socket that only the owner of the service may open.

    Args:
        path: of the socket.
        resume: takes the states over, or raises and has changed nothing.
    """

    def __init__(self, path: Path, resume: Callable[[bytes], None]) -> None:
        self._path, self._resume = path, resume
        self._done = asyncio.Event()

    async def wait(self) -> None:
        """Until the states have been handed over."""
        self.close()
        server = await asyncio.start_unix_server(self._serve, sock=_bound(self._path))
        async with server:
            await self._done.wait()
        self.close()

    def close(self) -> None:
        """Remove the socket file."""
        with suppress(OSError):
            self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One attempt."""
        try:
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            states = await reader.readexactly(min(size, _MOST_BYTES))
            self._resume(states)
            del states
        except (PanPrivacyError, asyncio.IncompleteReadError) as error:
            writer.write(f"{error}\n".encode())
        else:
            writer.write(_DONE)
            self._done.set()
        with suppress(OSError):
            await writer.drain()
        writer.close()


def hand_over(path: Path, states: bytes) -> None:
    """Give the states to the service that waits at a socket.

    Raises:
        PlanError: nothing waits there.
        InputError: the service refuses them; its words.
    """
    with socket.socket(socket.AF_UNIX) as desk:
        desk.settimeout(_PATIENCE)
        try:
            desk.connect(str(path))
        except OSError:
            message = f"no service waits at {path}: start it first, with the same configuration"
            raise PlanError(message) from None
        desk.sendall(_LENGTH.pack(len(states)) + states)
        answer = desk.makefile("rb").readline()
    if answer != _DONE:
        raise InputError(answer.decode(errors="replace").strip() or "the service went away")


def _bound(path: Path) -> socket.socket:
    """A socket that nobody else can open, from the moment it is there."""
    sock = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
    except OSError as error:
        sock.close()
        message = f"cannot listen at {path}: {error.strerror or error}"
        raise PlanError(message) from None
    finally:
        os.umask(before)
    return sock
