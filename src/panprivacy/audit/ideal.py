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

from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.rows import CIPHERTEXT_BYTES, entries
from panprivacy.devices.federated.task import AnyKind, Task
from panprivacy.errors import InputError
from panprivacy.privacy.coins import SecretCoins

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
        """Return a fresh number for each value."""
        return self._made(values)

    def rerandomise(self, ciphertexts: bytes, coins: SecretCoins) -> bytes:
        """Return fresh numbers of the same values."""
        return self.encrypt(self.values(ciphertexts), coins)

    def add(self, *terms: bytes) -> bytes:
        """Return numbers of the sums."""
        columns = zip(*map(self.values, terms), strict=True)
        return self._made([sum(column) for column in columns])

    def check(self, ciphertexts: bytes) -> None:
        """Raise `InputError` if a number was never given."""
        self.values(ciphertexts)

    def values(self, ciphertexts: bytes) -> list[int]:
        """Return the values in a row."""
        numbers = [int.from_bytes(one, "big") for one in entries(ciphertexts, self.entry_bytes)]
        if len(ciphertexts) % self.entry_bytes or any(n >= len(self._values) for n in numbers):
            message = "this is no row of ciphertexts"
            raise InputError(message)
        return [self._values[number] for number in numbers]

    def bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.uint8]:  # noqa: ARG002
        """Return the values of ciphertexts of 0 or 1."""
        marked = self.marked_bits(ciphertexts)
        if (marked < 0).any():
            message = "a value is out of range"
            raise InputError(message)
        return marked.astype(np.uint8)

    def marked_bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.int8]:  # noqa: ARG002
        """Return the same, with -1 for all others."""
        values = np.array(self.values(ciphertexts), np.int64)
        return np.where((values == 0) | (values == 1), values, -1).astype(np.int8)

    def marked_sums(
        self,
        ciphertexts: bytes,
        low: int,
        high: int,
        processes: int = 1,  # noqa: ARG002
    ) -> NDArray[np.int64]:
        """Return the values of ciphertexts of `low` to `high`, and `high + 1` for all others."""
        values = np.array(self.values(ciphertexts), np.int64)
        return np.where((values < low) | (values > high), high + 1, values)

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
        """Return the state that was written last."""
        return self.state

    def write(self, state: bytes) -> None:
        """Put a state in place of the one before."""
        self.state = state


@dataclass(frozen=True, slots=True)
class Decrypted:
    """The content of a report."""

    counts: tuple[int, ...]


class AuditedDevice:
    """One device as the audit runs it: a batch is a tick, and user 0 in it is an event.

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
        """Return the content of the report."""
        row = Report.read(self._device.report(), self._task).row
        return Decrypted(tuple(map(int, self._task.kind.read(row, self._key, 1)[0])))

    def state(self) -> bytes:
        """Return the storage."""
        return self._storage.state or b""


def device_of(
    kind: AnyKind, promise: Promise, horizon: int
) -> Callable[[SecretCoins], AuditedDevice]:
    """Return a factory of devices of one task."""
    task = Task(version=1, id="00" * 16, kind=kind, promise=promise, horizon=horizon, key=KEY.hex())
    return lambda coins: AuditedDevice(coins, task)
