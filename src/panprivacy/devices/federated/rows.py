"""Rows, which are plain bytes, and choices between their entries that do the same work.

An entry is what one encrypted value takes: one ciphertext, or four with shares for two servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

CIPHERTEXT_BYTES: Final = 66
"""Size of a ciphertext, as in `elgamal`, which is an extra."""
SHARED_BYTES: Final = 4 * CIPHERTEXT_BYTES
"""Size of a bit in shares for two servers (`shares`)."""


def entries(row: bytes, size: int) -> list[bytes]:
    """Return the entries of a row, each of `size` bytes."""
    return [row[i : i + size] for i in range(0, len(row), size)]


def selected(choices: Iterable[int], zeros: Sequence[bytes], ones: Sequence[bytes]) -> bytes:
    """Return the chosen entry of each pair, by its index in the pair."""
    pairs = zip(zeros, ones, strict=True)
    return b"".join(pair[choice] for choice, pair in zip(choices, pairs, strict=True))


def row_of(*parts: Sequence[bytes]) -> bytes:
    """Return one row of several lists of entries."""
    return b"".join(b"".join(part) for part in parts)
