"""What all kinds of statistics over devices do; each has a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from panprivacy.coins import Coins, SecretCoins
from panprivacy.errors import InputError
from panprivacy.federated.promise import Promise
from panprivacy.statistics.release import Answers

if TYPE_CHECKING:
    from panprivacy.federated.elgamal import Encryption

Counts = NDArray[np.int64]


class Decryption(Protocol):
    """What a collector does with the secret key; `elgamal.DecryptionKey` is one."""

    @property
    def public(self) -> Any:
        """The `Encryption` to this key."""

    def bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.uint8]:
        """The values of ciphertexts of 0 or 1."""

    def marked_bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.int8]:
        """The same, with -1 for ciphertexts of neither 0 nor 1."""


class SumDecryption(Decryption, Protocol):
    """That of a key whose ciphertexts can be added."""

    def small_sums(
        self, ciphertexts: bytes, low: int, high: int, processes: int = 1
    ) -> NDArray[np.int64]:
        """The values of ciphertexts of `low` to `high`."""


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What is counted over devices, and the noise that each of them draws.

    A device holds a row of `width` encrypted values. `born` makes the first one, `after_event` the
    one that follows if there was an event; `reported` makes the row of `answers` encrypted values
    that leaves. None of them branches on what the device observed, and what they return is
    re-randomised before anybody sees it.
    """

    adds: ClassVar[bool] = False
    """Whether it takes an encryption whose values can be added."""

    @property
    def width(self) -> int:
        """How many encrypted values a device holds."""
        raise NotImplementedError

    @property
    def answers(self) -> int:
        """How many encrypted values a report has."""
        raise NotImplementedError

    def born(self, encryption: Encryption, coins: SecretCoins) -> bytes:
        """The row of a device that has observed nothing."""
        raise NotImplementedError

    def after_event(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """The row after one more event."""
        raise NotImplementedError

    def reported(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """The row that leaves, with the noise in it."""
        raise NotImplementedError

    def read(self, row: bytes, key: Decryption, processes: int) -> Counts:
        """What reports say, int64[reports, answers]; what none of ours would say counts as 0."""
        raise NotImplementedError

    def noised(self, events: Counts, coins: Coins) -> Counts:
        """Reports of the same law for devices with so many events, without any encryption.

        Args:
            events: int64[devices], how many each observed.
            coins: source of the noise.

        Returns:
            int64[devices, answers].
        """
        raise NotImplementedError

    def release(
        self, sums: Sequence[int], reports: int, confidence: float, epsilon: float
    ) -> Answers:
        """The estimates, from the sum of what all reports say.

        Args:
            sums: one for each answer.
            reports: how many there were, which is public.
            confidence: probability that each interval holds the truth.
            epsilon: to be told with each.
        """
        raise NotImplementedError

    def delta(self, epsilon: Fraction, devices: int) -> float:
        """A bound on the delta that belongs to epsilon where so many devices report.

        It is that of a report by itself for one device, and else that of the sum of all reports,
        whatever the others observed.
        """
        raise NotImplementedError

    def keeps(self, promise: Promise) -> bool:
        """Whether the noise is enough for a promise."""
        return self.delta(promise.epsilon, promise.devices) <= promise.delta


def readable_bits(row: bytes, key: Decryption, processes: int) -> Counts:
    """The bits of a row, 0 for each that is none, found in the same time: see `lenient`."""
    return np.maximum(key.marked_bits(row, processes), 0).astype(np.int64)


def lenient(decrypt: Callable[[bytes], NDArray[Any]], row: bytes, size: int) -> Counts:
    """The values of a row with entries of so many bytes, 0 for each that cannot be decrypted.

    Nobody is told which, or how many: whoever found a ciphertext on a device could send in twice
    its value, and would learn from that what it is.
    """
    try:
        return decrypt(row).astype(np.int64)
    except InputError:
        if len(row) == size:
            return np.zeros(1, np.int64)
    half = len(row) // size // 2 * size
    return np.concatenate([lenient(decrypt, part, size) for part in (row[:half], row[half:])])
