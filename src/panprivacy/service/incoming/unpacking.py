"""Compressed bodies, unpacked in pieces, so that their consumer can stop at its limit.

A short body can take long if it holds nothing but the beginnings of blocks. So a thread of its own
unpacks, in which senders take turns, and the event loop does not wait for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from panprivacy.ground.kernels import wipe_stack
from panprivacy.service.incoming.fair_queue import FairQueue
from panprivacy.service.incoming.problems import Problem

ENCODINGS = "gzip", "zstd"
_PIECE_BYTES: Final = 1 << 15
_SLICE_BYTES: Final = 1 << 13
_MOST_TAKEN: Final = 6 * _PIECE_BYTES
"""Compressed bytes that a piece may take; a member for each short line takes fewer."""
_TURN_PIECES: Final = 16
_TURN_SECONDS: Final = 0.005
"""Seconds after which a turn has no further piece."""
_STOP_SECONDS: Final = 10.0


@dataclass(eq=False, slots=True)
class _Turn:
    """A turn of a body: some pieces, but one only if that takes long.

    Args:
        stream: unpacks it.
        source: its compressed bytes.
        loop: the event loop of its request.
        told: the future of its bytes, and whether more follow; None for a body that cannot be
            unpacked.
    """

    stream: pa.CompressedInputStream
    source: _Source
    loop: asyncio.AbstractEventLoop
    told: asyncio.Future[tuple[bytes, bool] | None]

    def take(self) -> None:
        """Unpack some pieces, unless nobody waits for them any more."""
        found: tuple[bytes, bool] | None = None
        failed: Exception | None = None
        if self.told.cancelled():
            return
        try:
            found = self._read()
        except (OSError, pa.ArrowException):
            pass
        except Exception as error:  # noqa: BLE001 - for who waits
            failed = error.with_traceback(None)
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self.loop.call_soon_threadsafe(self._tell, found, failed)

    def _read(self) -> tuple[bytes, bool]:
        pieces: list[bytes] = []
        until, more = time.monotonic() + _TURN_SECONDS, True
        while more and len(pieces) < _TURN_PIECES and (not pieces or time.monotonic() < until):
            self.source.taken = 0
            pieces.append(self.stream.read(_PIECE_BYTES))
            more = len(pieces[-1]) == _PIECE_BYTES
        return b"".join(pieces), more

    def _tell(self, found: tuple[bytes, bool] | None, failed: Exception | None) -> None:
        if self.told.done():
            return
        if failed is None:
            self.told.set_result(found)
        else:
            self.told.set_exception(failed)


class _Source:
    """File with a compressed body, of which each piece takes a limited part.

    Args:
        body: the body.

    Attributes:
        taken: bytes taken for the current piece.
    """

    closed = False

    def __init__(self, body: bytearray) -> None:
        self._left = memoryview(body).toreadonly()
        self.taken = 0

    def read(self, size: int) -> memoryview:
        """Return the next bytes; no more at the end.

        Raises:
            OSError: this piece has taken too many.
        """
        if self.taken >= _MOST_TAKEN:
            raise OSError
        size = min(size, _SLICE_BYTES)
        found, self._left = self._left[:size], self._left[size:]
        self.taken += len(found)
        return found

    def close(self) -> None:
        """End: the body belongs to the request."""
        self.closed = True


class Unpacker:
    """Thread that unpacks bodies; senders take turns."""

    def __init__(self) -> None:
        self._queue = FairQueue[_Turn]()
        self._thread = threading.Thread(target=self._run, name="panprivacy-unpacker", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the pieces that wait."""
        self._queue.close()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    async def unpacked(
        self, encoding: str, body: bytearray, token: str = ""
    ) -> AsyncIterator[bytes]:
        """Yield the content of a body, a piece at a time; other tasks run meanwhile.

        Args:
            encoding: one of `ENCODINGS`.
            body: the body; it must not change in the meantime.
            token: token of its sender.

        Raises:
            Problem: it is damaged, in another format, or takes more room than its content.
        """
        loop, source = asyncio.get_running_loop(), _Source(body)
        stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), encoding)
        more = True
        while more:
            turn = _Turn(stream, source, loop, loop.create_future())
            self._queue.put(token, turn)
            found = await turn.told
            del turn
            if found is None:  # outside the handler: its frames hold the body
                raise Problem(400, f"the body is no {encoding}, or it is damaged")
            piece, more = found
            del found
            if piece:
                yield piece
            del piece

    def _run(self) -> None:
        while (turn := self._queue.get()) is not None:
            turn.take()
            del turn
            wipe_stack()  # the stack of this thread; the sweeper wipes the rest
