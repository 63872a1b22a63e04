"""Rows of ciphertexts, which are plain bytes, and choices between them that do the same work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

CIPHERTEXT_BYTES: Final = 66
"""As `elgamal` has it, which not everyone can import."""


def entries(row: bytes) -> list[bytes]:
    """The ciphertexts of a row."""
    return [row[i : i + CIPHERTEXT_BYTES] for i in range(0, len(row), CIPHERTEXT_BYTES)]


def selected(choices: Iterable[int], zeros: bytes, ones: bytes) -> bytes:
    """Of each pair of ciphertexts the one that is chosen, by its place in the pair."""
    pairs = zip(entries(zeros), entries(ones), strict=True)
    return b"".join(pair[choice] for choice, pair in zip(choices, pairs, strict=True))


def joined(*parts: Sequence[bytes]) -> bytes:
    """One row of several lists of ciphertexts."""
    return b"".join(b"".join(part) for part in parts)
