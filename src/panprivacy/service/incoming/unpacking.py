"""Compressed bodies, unpacked in pieces, so that their consumer can stop at its limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pyarrow as pa

from panprivacy.service.incoming.problems import Problem

ENCODINGS = "gzip", "zstd"
_PIECE_BYTES = 1 << 20


async def unpacked(encoding: str, body: bytearray) -> AsyncIterator[bytes]:
    """Yield the content of a body, a piece at a time; other tasks run between two pieces.

    Args:
        encoding: one of `ENCODINGS`.
        body: the body; it must not change in the meantime.

    Raises:
        Problem: it is damaged, or in another format.
    """
    stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(body)), encoding)
    more = True
    while more:
        try:
            piece = stream.read(_PIECE_BYTES)
        except (OSError, pa.ArrowException):
            piece = None
        if piece is None:  # outside the handler: its frames hold the body
            raise Problem(400, f"the body is no {encoding}, or it is damaged")
        if more := bool(piece):
            yield piece
        del piece
        await asyncio.sleep(0)
