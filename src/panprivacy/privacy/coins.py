"""The only door to randomness.

Whatever a statistic draws, it draws from the `Coins` it was given: noise, samples and addressing
keys. Another implementation of the protocol can therefore walk every outcome of the shipping
code (`panprivacy.audit`) or make a run repeatable (`panprivacy.testing`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.privacy import noise
from panprivacy.privacy.noise import Draw


@runtime_checkable
class Coins(Protocol):
    """A source of independent samples with exact laws; `size` samples a call."""

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:
        """Return bits that are 1 with `probability`."""

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
        """Return indices; `i` has probability `weights[i] / sum(weights)`."""

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers with `P(k)` proportional to `exp(-|k|/scale)`."""

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers with `P(k)` proportional to `exp(-k**2/(2*variance))`."""

    def key(self, nbytes: int) -> bytes:
        """Return uniform random bytes that may be public, such as an addressing key."""


class SecretCoins(Coins, Protocol):
    """Coins that also draw what privacy rests on, such as a nonce or a share.

    The two are apart because the audit fixes a key, for which the guarantee holds whatever it is,
    and has to walk every outcome of a secret.
    """

    def secret(self, nbytes: int) -> bytes:
        """Return uniform random bytes that are secret."""


class ByteCoins(ABC):
    """Exact coins made from uniform bytes; a subclass says where the bytes come from."""

    __slots__ = ()

    @abstractmethod
    def _stream(self) -> AbstractContextManager[Draw]:
        """Open a byte source for one call; nothing of it outlives the context."""

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:
        """Return bits that are 1 with `probability`."""
        with self._stream() as draw:
            return noise.toss(draw, _leading_digits(probability), size)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
        """Return indices; `i` has probability `weights[i] / sum(weights)`."""
        with self._stream() as draw:
            return noise.categorical(draw, weights, size)

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers with `P(k)` proportional to `exp(-|k|/scale)`."""
        with self._stream() as draw:
            return noise.discrete_laplace(draw, scale, size)

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers with `P(k)` proportional to `exp(-k**2/(2*variance))`."""
        with self._stream() as draw:
            return noise.discrete_gaussian(draw, variance, size)

    def key(self, nbytes: int) -> bytes:
        """Return uniform random bytes that may be public."""
        with self._stream() as draw:
            return draw(nbytes).tobytes()

    def secret(self, nbytes: int) -> bytes:
        """Return uniform random bytes that are secret."""
        with self._stream() as draw:
            return draw(nbytes).tobytes()


class SystemCoins(ByteCoins):
    """The coins of production, with no state between two calls.

    Each call reads a fresh 32-byte key from the operating system, expands it with AES-256-CTR,
    and wipes it. No seed, generator or spare sample stays in memory, from which an intruder
    could replay past noise or foresee future noise. Without entropy the call raises.
    """

    __slots__ = ()

    @contextmanager
    def _stream(self) -> Iterator[Draw]:
        key = _fresh_key()
        try:
            yield aes_stream(key)
        finally:
            key[:] = bytes(len(key))


_leading_digits = uncounted(noise.leading_digits)
"""Leading digits of the probabilities that programs use: they are public, and few."""


def _fresh_key() -> bytearray:
    """Read a key into memory that can be wiped, which `bytes` cannot."""
    key = bytearray(32)
    device = os.open("/dev/urandom", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.readv(device, [key]) != len(key):
            message = "the operating system gave too few random bytes"
            raise OSError(message)
    finally:
        os.close(device)
    return key


def aes_stream(key: bytearray) -> Draw:
    """Return the AES-256-CTR key stream of `key`, in pieces of any length."""
    encryptor = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def draw(nbytes: int) -> NDArray[np.uint8]:
        stream = np.zeros(nbytes, np.uint8)
        encryptor.update_into(stream.data, stream.data)
        return stream

    return draw
