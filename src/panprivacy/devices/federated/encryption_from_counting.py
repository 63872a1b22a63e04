"""Public-key encryption of a bit, built from any accurate, locally pan-private count.

So devices cannot avoid public-key encryption: such a count implies it. This is the construction of
the proof, for any scheme that counts devices with an event. It simulates devices, of which all or
none had an event in their first tick. Their states are the ciphertext: that they hide the event is
the secrecy of the bit, and the accuracy of the count decrypts it. One more tick without an event
re-randomises.

Use `elgamal` to encrypt: this one is a theorem, with ciphertexts of hundreds of states.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Theorem 6.1. `docs/guarantees/elgamal.md` has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from panprivacy.errors import InputError
from panprivacy.ground.validation import positive_integer, truth
from panprivacy.privacy.coins import SecretCoins

AnyServer = TypeVar("AnyServer")
"""Secret state of a server."""


class CountingScheme(Protocol[AnyServer]):
    """A scheme that counts the devices with at least one event."""

    @property
    def horizon(self) -> int:
        """Number of ticks that a device observes, at least one."""

    def initialize(self, devices: int, coins: SecretCoins) -> tuple[AnyServer, Sequence[bytes]]:
        """Return the secret state of the server, and the first state of each device."""

    def tick(self, state: bytes, event: bool, coins: SecretCoins) -> bytes:  # noqa: FBT001
        """Return the state after one more tick."""

    def report(self, state: bytes, coins: SecretCoins) -> bytes:
        """Return the report of a device after its last tick."""

    def estimate(self, reports: Sequence[bytes], server: AnyServer) -> float:
        """Return the estimated number of devices with an event."""


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """A bit, as the states of devices.

    Args:
        ticks: number of completed ticks, from 1 to the horizon.
        states: one for each device.
    """

    ticks: int
    states: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class BitEncryption(Generic[AnyServer]):
    """Public-key encryption of a bit that can be re-randomised, one time less than the horizon.

    Guarantee: an attacker that tells a ciphertext of 0 from one of 1 with an advantage `a`, or so
    after re-randomising, tells the states of one device with an event and without it with an
    advantage of at least `a / devices`. A bit is decrypted wrongly at most as often as the count
    errs by half of the devices.

    Args:
        counting: the scheme.
        devices: number of simulated devices; enough for the scheme to be accurate.

    Raises:
        PlanError: the devices are not a whole number of at least 1.
    """

    counting: CountingScheme[AnyServer]
    devices: int

    def __post_init__(self) -> None:
        positive_integer(devices=self.devices)

    def keys(self, coins: SecretCoins) -> tuple[AnyServer, tuple[bytes, ...]]:
        """Return the secret key, and the public one: the first states of the devices."""
        server, states = self.counting.initialize(self.devices, coins)
        return server, tuple(states)

    def encrypt(self, bit: bool, public: Sequence[bytes], coins: SecretCoins) -> Ciphertext:  # noqa: FBT001
        """Return a tick of every device, with an event if the bit is True.

        Raises:
            PlanError: the bit is neither True nor False.
        """
        return Ciphertext(1, self._ticked(public, truth(bit=bit), coins))

    def rerandomise(self, ciphertext: Ciphertext, coins: SecretCoins) -> Ciphertext:
        """Return a tick more of every device, without an event.

        Raises:
            InputError: all ticks are over.
        """
        if ciphertext.ticks >= self.counting.horizon:
            message = f"all {self.counting.horizon:,} ticks are over: encrypt the bit anew"
            raise InputError(message)
        states = self._ticked(ciphertext.states, False, coins)  # noqa: FBT003
        return Ciphertext(ciphertext.ticks + 1, states)

    def decrypt(self, ciphertext: Ciphertext, secret: AnyServer, coins: SecretCoins) -> bool:
        """Return whether half of the devices or more report an event, after their last tick."""
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
