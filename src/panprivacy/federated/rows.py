"""Rows, which are plain bytes, and choices between their entries that do the same work.

An entry is what one encrypted value takes: one ciphertext, or four with shares for two servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

CIPHERTEXT_BYTES: Final = 66
"""As `elgamal` has it, which not everyone can import."""
SHARED_BYTES: Final = 4 * CIPHERTEXT_BYTES
"""Of a bit in shares for two servers (`shares`)."""


def entries(row: bytes, size: int) -> list[bytes]:
    """The entries of a row, each of so many bytes."""
    return [row[i : i + size] for i in range(0, len(row), size)]


def selected(choices: Iterable[int], zeros: Sequence[bytes], ones: Sequence[bytes]) -> bytes:
    """Of each pair of entries the one that is chosen, by its place in the pair."""
    pairs = zip(zeros, ones, strict=True)
    return b"".join(pair[choice] for choice, pair in zip(choices, pairs, strict=True))


def joined(*parts: Sequence[bytes]) -> bytes:
    """One row of several lists of entries."""
    return b"".join(b"".join(part) for part in parts)
