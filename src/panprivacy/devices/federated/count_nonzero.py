"""Number of devices with at least one event.

A device holds one ciphertext: of 1 if there was an event, else of 0. Its report is a randomised
response.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Algorithm 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Self

from panprivacy.devices.federated.bits import Reporting
from panprivacy.devices.federated.distributions import bernoulli, hockey_stick
from panprivacy.devices.federated.kind import Counts, Decryption, Kind, readable_bits
from panprivacy.devices.federated.promise import Promise, Range, largest_epsilon_0, worst_of_others
from panprivacy.privacy.coins import Coins, SecretCoins
from panprivacy.privacy.guarantee import randomised_response
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Answers, Name, Release

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption


class CountNonZero(Kind, frozen=True, kw_only=True, tag="count-nonzero"):
    """Number of devices with at least one event.

    Guarantee: the law of a report changes by a factor of at most `e**epsilon_0`, whatever the
    device observed. [tests/exact/test_devices.py]

    Accuracy: the estimate has no bias before it is cut to its interval; its standard deviation is
    `sqrt(reports e**epsilon_0) / (e**epsilon_0 - 1)`.

    Args:
        epsilon_0: epsilon of one report, in nats.
    """

    epsilon_0: Fraction

    @classmethod
    def planned(cls, promise: Promise) -> Self:
        """Return the one with the least noise that keeps a promise."""
        if promise.devices == 1 and not promise.delta:
            return cls(epsilon_0=promise.epsilon)
        epsilon, devices = promise.epsilon, promise.devices
        return cls(
            epsilon_0=largest_epsilon_0(
                promise, lambda tried: cls(epsilon_0=tried).delta(epsilon, devices)
            )
        )

    @property
    def reporting(self) -> Reporting:
        """Law of the reported bit."""
        present = randomised_response(self.epsilon_0)
        return Reporting(present, 1 - present)

    @property
    def width(self) -> int:
        """Number of encrypted values on a device."""
        return 1

    @property
    def answers(self) -> int:
        """Number of encrypted values in a report."""
        return 1

    def initial(self, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the initial row: no event."""
        return encryption.encrypt([0], coins)

    def after_event(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:  # noqa: ARG002
        """Return the row after an event, for any earlier events."""
        return encryption.encrypt([1], coins)

    def reported(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the bit, by randomised response."""
        return self.reporting.encrypted(row, encryption, coins)

    def read(self, row: bytes, key: Decryption, processes: int) -> Counts:
        """Return one bit for each report."""
        return readable_bits(row, key, processes).reshape(-1, 1)

    def noised(self, events: Counts, coins: Coins) -> Counts:
        """Return reports of devices with these numbers of events, without any encryption."""
        return self.reporting.plain((events > 0).reshape(-1, 1), coins)

    def release(
        self, sums: Sequence[int], reports: int, confidence: float, epsilon: float
    ) -> Answers:
        """Return the estimated number of devices with an event."""
        (ones,) = sums
        value, low, high = self.reporting.estimate(ones, reports, confidence)
        name = Name("count-nonzero", "at_least", (("events", 1),))
        note = note_on(low, high, unit="devices", value=value)
        numbers = value, low, high, confidence, epsilon, (ones,)
        measured = self.reporting.measured(ones, reports)
        return Answers([Release(*numbers, name, "devices", note, *measured)])

    def delta(self, epsilon: Fraction, devices: int) -> float:
        """Return a bound on the delta that belongs to epsilon for this number of devices."""
        if epsilon >= self.epsilon_0:
            return 0.0
        here, there = map(bernoulli, self.reporting)

        def loss(ranges: tuple[Range, ...]) -> float:
            others = self.reporting.others(devices, *ranges)
            one, other = others + here, others + there
            return max(hockey_stick(epsilon, pair) for pair in ((one, other), (other, one)))

        return worst_of_others(devices, 1, loss)
