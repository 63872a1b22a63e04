"""The only door to randomness.

Whatever a statistic draws, it draws from the `Coins` it was given: noise, samples and addressing
keys. Another implementation of the protocol can therefore walk every outcome of the shipping
code (`panprivacy.audit`) or make a run repeatable (`panprivacy.testing`).
"""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.privacy import noise
from panprivacy.privacy.noise import Draw

FEW_BYTES = 4_096
"""The most bytes of a piece that are read from the operating system, which takes longer a byte than
AES does, but needs no key."""


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

    A few bytes are read from the operating system. Where a call needs more, it reads a fresh
    32-byte key, expands it with AES-256-CTR, and wipes it. No seed, generator or spare sample stays
    in memory, from which an intruder could replay past noise or foresee future noise. Without
    entropy the call raises.
    """

    __slots__ = ()

    def _stream(self) -> AbstractContextManager[Draw]:
        return _SystemStream()


class _SystemStream:
    """The bytes of one call: pieces of the operating system, and of AES where one is large."""

    __slots__ = ("_expanded", "_key")

    def __init__(self) -> None:
        self._key: bytearray | None = None
        self._expanded: Draw | None = None

    def __enter__(self) -> Draw:
        return self._draw

    def __exit__(self, *_raised: object) -> None:
        if self._key is not None:
            self._key[:] = bytes(len(self._key))

    def _draw(self, nbytes: int) -> NDArray[np.uint8]:
        """Return fresh bytes."""
        if nbytes <= FEW_BYTES:
            drawn = np.empty(nbytes, np.uint8)
            _read_system(drawn)
            return drawn
        if self._expanded is None:
            self._key = _fresh_key()
            self._expanded = aes_stream(self._key)
        return self._expanded(nbytes)


_leading_digits = uncounted(noise.leading_digits)
"""Leading digits of the probabilities that programs use: they are public, and few."""

_BLOCKING = 0
"""Wait where the system has not gathered entropy yet, shortly after it starts."""

_getrandom: Callable[..., int] | None = getattr(ctypes.CDLL(None), "getrandom", None)
if _getrandom is not None:
    _getrandom.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]  # type: ignore[attr-defined]
    _getrandom.restype = ctypes.c_ssize_t  # type: ignore[attr-defined]


def _read_system(buffer: Any) -> None:
    """Fill memory that can be wiped, which `bytes` of `os.getrandom` cannot, with random bytes.

    The call of the C library needs no file; the device is read where there is none, or where a
    signal cut it short.
    """
    size = len(buffer)
    if _getrandom is not None and size:
        first = ctypes.byref(ctypes.c_char.from_buffer(buffer))
        if _getrandom(first, size, _BLOCKING) == size:
            return
    device = os.open("/dev/urandom", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.readv(device, [buffer]) != size:
            message = "the operating system gave too few random bytes"
            raise OSError(message)
    finally:
        os.close(device)


def _fresh_key() -> bytearray:
    """Read a key into memory that can be wiped."""
    key = bytearray(32)
    _read_system(key)
    return key


def aes_stream(key: bytearray) -> Draw:
    """Return the AES-256-CTR key stream of `key`, in pieces of any length."""
    encryptor = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def draw(nbytes: int) -> NDArray[np.uint8]:
        stream = np.zeros(nbytes, np.uint8)
        encryptor.update_into(stream.data, stream.data)
        return stream

    return draw
