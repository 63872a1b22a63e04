"""Number of devices with each number of events: 0, 1, ..., and `most` or more.

A device holds two rows: of `c_i`, 1 if there were exactly i events, and of `d_i`, 1 if there were i
or more, for i from 0 to `most`. An event moves both up by one place. The report is `c_0, ...,
c_(most-1), d_most`, one of which is 1, by optimised unary encoding.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Algorithm 5. Printed are other probabilities, with which two bits differ by
`2 epsilon_0`, or by more. T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private
protocols for frequency estimation", USENIX Security 2017, section 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from panprivacy.devices.federated.bits import Reporting
from panprivacy.devices.federated.distributions import bernoulli, hockey_stick
from panprivacy.devices.federated.kind import Counts, Decryption, Kind, readable_bits
from panprivacy.devices.federated.promise import Promise, Range, largest_epsilon_0, worst_of_others
from panprivacy.devices.federated.rows import entries, row_of
from panprivacy.ground.validation import positive_integer
from panprivacy.privacy.coins import Coins, SecretCoins
from panprivacy.privacy.guarantee import randomised_response
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Answers, Name, Release

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption

_MOST: Final = 1_000


class DeviceHistogram(Kind, frozen=True, kw_only=True, tag="histogram"):
    """Number of devices with 0, 1, ... events, up to `most` or more.

    Guarantee: the law of a report changes by a factor of at most `e**epsilon_0`, whatever the
    device observed. [tests/exact/test_devices.py]

    Accuracy: no estimate has a bias; the standard deviation of one that is near 0 is
    `2 sqrt(reports e**epsilon_0) / (e**epsilon_0 - 1)`.

    Args:
        most: the number of events from which on counts are merged; 1 to 1,000.
        epsilon_0: epsilon of one report, in nats.
    """

    most: int
    epsilon_0: Fraction

    def __post_init__(self) -> None:
        positive_integer(_MOST, most=self.most)

    @classmethod
    def planned(cls, promise: Promise, *, most: int) -> Self:
        """Return the one with the least noise that keeps a promise."""
        if promise.devices == 1 and not promise.delta:
            return cls(most=most, epsilon_0=promise.epsilon)
        epsilon, devices = promise.epsilon, promise.devices
        return cls(
            most=most,
            epsilon_0=largest_epsilon_0(
                promise, lambda tried: cls(most=1, epsilon_0=tried).delta(epsilon, devices)
            ),
        )

    @property
    def reporting(self) -> Reporting:
        """Law of each reported bit."""
        return Reporting(Fraction(1, 2), 1 - randomised_response(self.epsilon_0))

    @property
    def width(self) -> int:
        """Number of encrypted values on a device."""
        return 2 * (self.most + 1)

    @property
    def answers(self) -> int:
        """Number of encrypted values in a report."""
        return self.most + 1

    def initial(self, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the initial row: exactly 0 events, and 0 or more."""
        return encryption.encrypt([1, *[0] * self.most] * 2, coins)

    def after_event(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return both rows moved up by one place: no longer 0 events, and still 0 or more."""
        exactly, at_least = self._halves(row, encryption)
        fresh = entries(encryption.encrypt([0, 1], coins), encryption.entry_bytes)
        return row_of(fresh[:1], exactly[:-1], fresh[1:], at_least[:-1])

    def reported(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the bits, by optimised unary encoding."""
        exactly, at_least = self._halves(row, encryption)
        return self.reporting.encrypted(row_of(exactly[:-1], at_least[-1:]), encryption, coins)

    def _halves(self, row: bytes, encryption: Encryption) -> tuple[list[bytes], list[bytes]]:
        both = entries(row, encryption.entry_bytes)
        return both[: self.answers], both[self.answers :]

    def read(self, row: bytes, key: Decryption, processes: int) -> Counts:
        """Return a bit for each number of events."""
        return readable_bits(row, key, processes).reshape(-1, self.answers)

    def noised(self, events: Counts, coins: Coins) -> Counts:
        """Return reports of devices with these numbers of events, without any encryption."""
        places = np.minimum(events, self.most).reshape(-1, 1)
        return self.reporting.plain(places == np.arange(self.answers), coins)

    def release(
        self, sums: Sequence[int], reports: int, confidence: float, epsilon: float
    ) -> Answers:
        """Return the estimated number of devices by number of events, with separate intervals."""
        found = []
        for events, ones in enumerate(sums):
            value, low, high = self.reporting.estimate(ones, reports, confidence)
            question = "at_least" if events == self.most else "exactly"
            name = Name("histogram", question, (("events", events),))
            numbers = value, low, high, confidence, epsilon, (ones,)
            measured = self.reporting.measured(ones, reports)
            note = note_on(low, high, unit="devices", value=value)
            found.append(Release(*numbers, name, "devices", note, *measured))
        return Answers(found)

    def delta(self, epsilon: Fraction, devices: int) -> float:
        """Return a bound on the delta that belongs to epsilon for this number of devices.

        Two bits of a report differ, in opposite directions; all others have the same law.
        """
        if epsilon >= self.epsilon_0:
            return 0.0
        here, there = map(bernoulli, self.reporting)

        def loss(ranges: tuple[Range, ...]) -> float:
            one, other = (self.reporting.others(devices, ones) for ones in ranges)
            return hockey_stick(epsilon, (one + here, one + there), (other + there, other + here))

        return worst_of_others(devices, 2, loss)
