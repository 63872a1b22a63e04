"""The base class of statistics over devices; each kind has a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.federated.promise import Promise
from panprivacy.privacy.coins import Coins, SecretCoins
from panprivacy.statistics.release import Answers

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption

Counts = NDArray[np.int64]


class Decryption(Protocol):
    """The operations of a collector with the secret key; `elgamal.DecryptionKey` is one."""

    @property
    def public(self) -> Any:
        """The `Encryption` to this key."""

    def bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.uint8]:
        """Return the values of ciphertexts of 0 or 1."""

    def marked_bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.int8]:
        """Return the same, with -1 for ciphertexts of neither 0 nor 1."""


class SumDecryption(Decryption, Protocol):
    """The operations with a key whose ciphertexts can be added."""

    def marked_sums(
        self, ciphertexts: bytes, low: int, high: int, processes: int = 1
    ) -> NDArray[np.int64]:
        """Return the values of ciphertexts of `low` to `high`, and `high + 1` for all others."""


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A statistic over devices, and the noise that each of them draws.

    A device holds a row of `width` encrypted values. `initial` makes the first one, `after_event`
    the one that follows if there was an event; `reported` makes the row of `answers` encrypted
    values that leaves. None of them branches on what the device observed, and what they return is
    re-randomised before anybody sees it.
    """

    adds: ClassVar[bool] = False
    """Whether it needs an encryption whose ciphertexts can be added."""

    @property
    def width(self) -> int:
        """Number of encrypted values on a device."""
        raise NotImplementedError

    @property
    def answers(self) -> int:
        """Number of encrypted values in a report."""
        raise NotImplementedError

    def initial(self, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the row of a device that has observed nothing."""
        raise NotImplementedError

    def after_event(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the row after one more event."""
        raise NotImplementedError

    def reported(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the row of the report, with the noise in it."""
        raise NotImplementedError

    def read(self, row: bytes, key: Decryption, processes: int) -> Counts:
        """Return the content of reports, int64[reports, answers]; an invalid value counts as 0."""
        raise NotImplementedError

    def noised(self, events: Counts, coins: Coins) -> Counts:
        """Return reports of the same law for devices with these numbers of events, unencrypted.

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
        """Return the estimates, from the sum of what all reports say.

        Args:
            sums: one for each answer.
            reports: how many there were, which is public.
            confidence: probability that each interval holds the truth.
            epsilon: the epsilon of each answer.
        """
        raise NotImplementedError

    def delta(self, epsilon: Fraction, devices: int) -> float:
        """Return a bound on the delta that belongs to epsilon for this number of devices.

        It is that of a report by itself for one device, and else that of the sum of all reports,
        whatever the others observed.
        """
        raise NotImplementedError

    def keeps(self, promise: Promise) -> bool:
        """Return whether the noise is enough for a promise."""
        return self.delta(promise.epsilon, promise.devices) <= promise.delta


def readable_bits(row: bytes, key: Decryption, processes: int) -> Counts:
    """Return the bits of a row, 0 for each that is none, found in the same time.

    The result does not show which, or how many: otherwise an attacker with a ciphertext from a
    device could send in twice its value, and learn from the answer what it is.
    """
    return np.maximum(key.marked_bits(row, processes), 0).astype(np.int64)
