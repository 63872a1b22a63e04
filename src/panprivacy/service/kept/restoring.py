"""Restoring of a service from its checkpoint, which the machine of the service cannot open.

The service waits at a Unix socket. Where the identity is available for a moment, another process
unseals the checkpoint and sends the states; the identity never enters the service, and the states
touch no disk.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from panprivacy.errors import InputError, PanPrivacyError, PlanError
from panprivacy.service.sockets import owners_socket

DESK = "restore.sock"
"""Socket in the directory of a service, at which it waits for its checkpoint to be restored."""

_LENGTH = struct.Struct("<Q")
_PATIENCE = 60.0
"""Seconds in which states, or an answer, have to arrive."""
_DONE = b"done\n"


class Desk:
    """Receiver of states at a socket that only the owner of the service may open.

    Args:
        path: path of the socket.
        size: size of the states; of longer data, one byte more is read.
        resume: takes the states over, or raises and has changed nothing.
    """

    def __init__(self, path: Path, size: int, resume: Callable[[bytes], None]) -> None:
        self._path, self._size, self._resume = path, size, resume
        self._done = asyncio.Event()

    async def wait(self) -> None:
        """Wait until the states have been received.

        Raises:
            PlanError: the socket cannot be created.
        """
        self.close()
        server = await asyncio.start_unix_server(self._serve, sock=owners_socket(self._path))
        try:
            await self._done.wait()
        finally:  # without waiting for silent connections
            server.close()
            self.close()

    def close(self) -> None:
        """Remove the socket file."""
        with suppress(OSError):
            self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            answer = await self._answer(reader)
            with suppress(OSError):
                writer.write(answer)
                await writer.drain()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        """Take over the received states; return one line about the outcome."""
        try:
            async with asyncio.timeout(_PATIENCE):
                (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                # of too long data, enough to recognise its kind
                states = await reader.readexactly(min(size, self._size + 1))
            self._take_over(states)
        except PanPrivacyError as error:
            return f"{error}\n".encode()
        except (OSError, EOFError):  # the other side is too slow, or gone
            return b"the states did not arrive\n"
        except Exception as error:  # noqa: BLE001 - its text may quote a state
            return f"failed with {type(error).__name__}; please report it\n".encode()
        return _DONE

    def _take_over(self, states: bytes) -> None:
        """Resume from the states, unless that was done: since then, others were counted."""
        if self._done.is_set():
            message = "the service goes on already, from states that came first"
            raise InputError(message)
        self._resume(states)
        self.close()
        self._done.set()


def hand_over(path: Path, states: bytes) -> None:
    """Send the states to the service that waits at a socket.

    Raises:
        PlanError: nothing waits there, or it does not answer.
        InputError: the service refuses them; with its message.
    """
    with socket.socket(socket.AF_UNIX) as desk:
        desk.settimeout(_PATIENCE)
        try:
            desk.connect(str(path))
        except OSError:
            message = f"no service waits at {path}: it runs already, or is not started"
            raise PlanError(message) from None
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it has refused before the end
                desk.sendall(_LENGTH.pack(len(states)) + states)
            with desk.makefile("rb") as answers:
                answer = answers.readline()
        except TimeoutError:
            message = f"the service does not answer within {_PATIENCE:g} seconds"
            raise PlanError(message) from None
        except ConnectionResetError:
            answer = b""
    if answer != _DONE:
        raise InputError(answer.decode(errors="replace").strip() or "the service went away")
