"""Encryption as an ideal functionality, and devices that use it, for exact audits.

A ciphertext is a number that says nothing. A table beside it says what is in it, which nobody but
the holder of the secret key sees. So the audit walks what the real scheme leaves open: the coins
of the noise, and whether the state depends on anything else. That the real scheme stands in for
this one is an assumption (docs/guarantees/devices.md), and not the audit's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panprivacy.coins import SecretCoins
from panprivacy.errors import InputError
from panprivacy.federated.device import Device
from panprivacy.federated.messages import Report
from panprivacy.federated.promise import Promise
from panprivacy.federated.rows import CIPHERTEXT_BYTES, entries
from panprivacy.federated.task import AnyKind, Task

KEY = bytes(33)
"""The public key of every ideal encryption."""


class IdealEncryption:
    """A key pair; each ciphertext is numbered, whatever is in it.

    Args:
        entry_bytes: how long a number is.
    """

    def __init__(self, entry_bytes: int = CIPHERTEXT_BYTES) -> None:
        self.entry_bytes = entry_bytes
        self._values: list[int] = []

    def __bytes__(self) -> bytes:
        return KEY

    @property
    def public(self) -> IdealEncryption:
        """The half that encrypts."""
        return self

    def encrypt(self, values: Sequence[int], coins: SecretCoins) -> bytes:  # noqa: ARG002 - ideal
        """A fresh number for each value."""
        return self._made(values)

    def rerandomise(self, ciphertexts: bytes, coins: SecretCoins) -> bytes:
        """Fresh numbers of the same values."""
        return self.encrypt(self.values(ciphertexts), coins)

    def add(self, *terms: bytes) -> bytes:
        """Numbers of the sums."""
        columns = zip(*map(self.values, terms), strict=True)
        return self._made([sum(column) for column in columns])

    def check(self, ciphertexts: bytes) -> None:
        """Raise `InputError` if a number was never given."""
        self.values(ciphertexts)

    def values(self, ciphertexts: bytes) -> list[int]:
        """What is in a row."""
        numbers = [int.from_bytes(one, "big") for one in entries(ciphertexts, self.entry_bytes)]
        if len(ciphertexts) % self.entry_bytes or any(n >= len(self._values) for n in numbers):
            message = "this is no row of ciphertexts"
            raise InputError(message)
        return [self._values[number] for number in numbers]

    def bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.uint8]:  # noqa: ARG002
        """The values of ciphertexts of 0 or 1."""
        return self._within(ciphertexts, 0, 1).astype(np.uint8)

    def marked_bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.int8]:  # noqa: ARG002
        """The same, with -1 for all others."""
        values = np.array(self.values(ciphertexts), np.int64)
        return np.where((values == 0) | (values == 1), values, -1).astype(np.int8)

    def small_sums(
        self,
        ciphertexts: bytes,
        low: int,
        high: int,
        processes: int = 1,  # noqa: ARG002
    ) -> NDArray[np.int64]:
        """The values of ciphertexts of `low` to `high`."""
        return self._within(ciphertexts, low, high)

    def _within(self, ciphertexts: bytes, low: int, high: int) -> NDArray[np.int64]:
        values = np.array(self.values(ciphertexts), np.int64)
        if ((values < low) | (values > high)).any():
            message = "a value is out of range"
            raise InputError(message)
        return values

    def _made(self, values: Sequence[int]) -> bytes:
        first = len(self._values)
        self._values += map(int, values)
        fresh = range(first, len(self._values))
        return b"".join(number.to_bytes(self.entry_bytes, "big") for number in fresh)


class MemoryStorage:
    """Keeps a state while the program runs."""

    def __init__(self) -> None:
        self.state: bytes | None = None

    def read(self) -> bytes | None:
        """The state that was written last."""
        return self.state

    def write(self, state: bytes) -> None:
        """Put a state in place of the one before."""
        self.state = state


@dataclass(frozen=True, slots=True)
class Decrypted:
    """What a report says."""

    counts: tuple[int, ...]


class AuditedDevice:
    """One device as the audit leads it: a batch is a tick, and user 0 in it is an event.

    A look is one at the storage; the release is the report, decrypted.
    """

    def __init__(self, coins: SecretCoins, task: Task) -> None:
        self._key = IdealEncryption(task.entry_bytes)
        self._storage, self._task = MemoryStorage(), task
        self._device = Device(task, self._storage, encryption=self._key, coins=coins)

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """End a tick."""
        self._device.observe(0 in users)

    def release(self) -> Decrypted:
        """What the report says."""
        row = Report.read(self._device.report(), self._task).row
        return Decrypted(tuple(map(int, self._task.kind.read(row, self._key, 1)[0])))

    def state(self) -> bytes:
        """The storage."""
        return self._storage.state or b""


def device_of(
    kind: AnyKind, promise: Promise, horizon: int
) -> Callable[[SecretCoins], AuditedDevice]:
    """Devices of one task."""
    task = Task(version=1, id="00" * 16, kind=kind, promise=promise, horizon=horizon, key=KEY.hex())
    return lambda coins: AuditedDevice(coins, task)
