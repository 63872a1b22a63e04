"""Compressed bodies, unpacked in pieces, so that what counts them can stop at its bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pyarrow as pa

from panprivacy.service.incoming.problems import Problem

ENCODINGS = "gzip", "zstd"
_PIECE_BYTES = 1 << 20


async def unpacked(encoding: str, body: bytearray) -> AsyncIterator[bytes]:
    """What is in a body, a piece at a time; others have their turn between two.

    Args:
        encoding: one of `ENCODINGS`.
        body: must stay as it is meanwhile.

    Raises:
        Problem: it is damaged, or something else.
    """
    stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(body)), encoding)
    more = True
    while more:
        try:
            piece = stream.read(_PIECE_BYTES)
        except (OSError, pa.ArrowException):
            piece = None
        if piece is None:  # outside of the handler: its frames hold the body
            raise Problem(400, f"the body is no {encoding}, or it is damaged")
        if more := bool(piece):
            yield piece
        del piece
        await asyncio.sleep(0)
