"""From any accurate, locally pan-private count, a public-key encryption of a bit.

So devices cannot do without public-key encryption: whoever has such a count has one. This is the
construction of the proof, on any scheme that counts devices with an event. It simulates devices, of
which all or none had an event in their first tick. Their states are the ciphertext: that they hide
the event is the secrecy of the bit, and that the count is accurate is what decrypts it. One more
tick without an event re-randomises.

Use `elgamal` to encrypt: this one is a theorem, with ciphertexts of hundreds of states.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Theorem 6.1. `docs/guarantees/elgamal.md` has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from panprivacy._validate import positive_integer, truth
from panprivacy.coins import SecretCoins
from panprivacy.errors import InputError

Server = TypeVar("Server")
"""What a server keeps, and nobody else knows."""


class Counting(Protocol[Server]):
    """A scheme that counts the devices with at least one event."""

    @property
    def horizon(self) -> int:
        """How many ticks a device observes, at least one."""

    def initialize(self, devices: int, coins: SecretCoins) -> tuple[Server, Sequence[bytes]]:
        """What the server keeps, and the first state of each device."""

    def tick(self, state: bytes, event: bool, coins: SecretCoins) -> bytes:  # noqa: FBT001
        """The state after one more tick."""

    def report(self, state: bytes, coins: SecretCoins) -> bytes:
        """What leaves a device after its last tick."""

    def estimate(self, reports: Sequence[bytes], server: Server) -> float:
        """How many devices had an event."""


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """A bit, as the states of devices.

    Args:
        ticks: how many are over, from 1 to the horizon.
        states: one for each device.
    """

    ticks: int
    states: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class BitEncryption(Generic[Server]):
    """Public-key encryption of a bit that can be re-randomised, one time less than the horizon.

    Guarantee: whoever tells a ciphertext of 0 from one of 1 with an advantage `a`, or so after
    re-randomising, tells the states of one device with an event and without it with an advantage
    of at least `a / devices`. A bit is decrypted wrongly at most as often as the count errs by
    half of the devices.

    Args:
        counting: the scheme.
        devices: how many are simulated; enough for the scheme to be accurate.

    Raises:
        PlanError: the devices are not a whole number of at least 1.
    """

    counting: Counting[Server]
    devices: int

    def __post_init__(self) -> None:
        positive_integer(devices=self.devices)

    def keys(self, coins: SecretCoins) -> tuple[Server, tuple[bytes, ...]]:
        """The secret key, and the public one: the first states of the devices."""
        server, states = self.counting.initialize(self.devices, coins)
        return server, tuple(states)

    def encrypt(self, bit: bool, public: Sequence[bytes], coins: SecretCoins) -> Ciphertext:  # noqa: FBT001
        """A tick of every device, with an event if the bit is True.

        Raises:
            PlanError: the bit is neither True nor False.
        """
        return Ciphertext(1, self._ticked(public, truth(bit=bit), coins))

    def rerandomise(self, ciphertext: Ciphertext, coins: SecretCoins) -> Ciphertext:
        """A tick more of every device, without an event.

        Raises:
            InputError: all ticks are over.
        """
        if ciphertext.ticks >= self.counting.horizon:
            message = f"all {self.counting.horizon:,} ticks are over: encrypt the bit anew"
            raise InputError(message)
        states = self._ticked(ciphertext.states, False, coins)  # noqa: FBT003
        return Ciphertext(ciphertext.ticks + 1, states)

    def decrypt(self, ciphertext: Ciphertext, secret: Server, coins: SecretCoins) -> bool:
        """Whether half of the devices or more report an event, after their last tick."""
        while ciphertext.ticks < self.counting.horizon:
            ciphertext = self.rerandomise(ciphertext, coins)
        reports = [self.counting.report(state, coins) for state in ciphertext.states]
        return self.counting.estimate(reports, secret) >= self.devices / 2

    def _ticked(
        self,
        states: Sequence[bytes],
        event: bool,  # noqa: FBT001
        coins: SecretCoins,
    ) -> tuple[bytes, ...]:
        return tuple(self.counting.tick(state, event, coins) for state in states)
