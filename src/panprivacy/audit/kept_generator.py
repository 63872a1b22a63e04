"""A generator that stays in memory, as the programs keep one that the audit has to catch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from panprivacy.privacy.coins import ByteCoins, aes_stream
from panprivacy.privacy.noise import Draw


class KeptGenerator(ByteCoins):
    """A generator as programs keep one: a seed of 32 bytes, and how often it was used."""

    def __init__(self, seed: bytes, calls: int = 0) -> None:
        self.seed = seed
        self.calls = calls

    @contextmanager
    def _stream(self) -> Iterator[Draw]:
        name = self.seed + self.calls.to_bytes(8, "little")
        self.calls += 1
        yield aes_stream(bytearray(hashlib.sha256(name).digest()))
