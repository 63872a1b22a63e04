"""Repeatable coins, and tables too small to be useful: for tests and reproduction only.

A seed that stays in memory lets an intruder replay all past noise and foresee all future noise,
so nothing in the package imports this module and an import contract keeps it so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from panprivacy.errors import allow_noise
from panprivacy.privacy.coins import ByteCoins, aes_stream
from panprivacy.privacy.noise import Draw

__all__ = ["SeededCoins", "allow_noise"]


class SeededCoins(ByteCoins):
    """Coins that repeat: the same seed and the same calls give the same samples.

    Every call has a stream of its own, derived from the seed and the number of calls before it.

    >>> from fractions import Fraction
    >>> [SeededCoins(7).bernoulli(Fraction(1, 2), 8).tolist() for _ in range(2)]
    [[1, 1, 1, 0, 1, 0, 1, 0], [1, 1, 1, 0, 1, 0, 1, 0]]
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = 0

    @contextmanager
    def _stream(self) -> Iterator[Draw]:
        self._calls += 1
        name = f"panprivacy.testing {self._seed} {self._calls}"
        yield aes_stream(bytearray(hashlib.sha256(name.encode()).digest()))
