"""Reports of devices as they are printed.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Algorithms 4 to 6 and Theorem 11. The encryption is ideal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

from panprivacy.audit.controls.control import Control
from panprivacy.audit.exact.approximate import WholeViews
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.loss import Loss
from panprivacy.audit.ideal import device_of
from panprivacy.audit.streams import RELEASE, EventStream
from panprivacy.audit.subject import Losses
from panprivacy.devices.federated.bits import Reporting
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.rows import entries
from panprivacy.privacy.coins import SecretCoins
from panprivacy.privacy.guarantee import randomised_response

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption, SumEncryption


class OtherCoin(CountNonZero, frozen=True, kw_only=True, tag="printed-5"):
    """Algorithms 5 and 6 keep a bit with the probability with which they should draw it anew."""

    @property
    def reporting(self) -> Reporting:
        """A bit is kept with probability `2/(e**epsilon_0 + 1)`."""
        drawn = 1 - randomised_response(self.epsilon_0)
        return Reporting(Fraction(1, 2) + drawn, Fraction(1, 2) - drawn)


class EachByItself(DeviceHistogram, frozen=True, kw_only=True, tag="printed-11"):
    """Theorem 11: randomised response of each bit, two of which differ."""

    @property
    def reporting(self) -> Reporting:
        """The reporting of each bit with all of epsilon_0."""
        present = randomised_response(self.epsilon_0)
        return Reporting(present, 1 - present)


class NarrowNoise(Mean, frozen=True, kw_only=True, tag="printed-4"):
    """Algorithm 4: noise of variance `most sigma**2`, where `variance` is `most**2 sigma**2`."""

    def reported(self, row: bytes, encryption: Encryption, coins: SecretCoins) -> bytes:
        """Return the number of events with noise as printed."""
        drawn = coins.discrete_gaussian(self.variance / self.most, 1)
        noise = encryption.encrypt(drawn.tolist(), coins)
        terms = [*entries(row, encryption.entry_bytes), noise]
        total = cast("SumEncryption", encryption).add(*terms)
        return encryption.rerandomise(total, coins)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateControl(Control):
    """A control whose claim has a delta.

    Args:
        delta: delta of the claim.
    """

    delta: Fraction

    def losses(self) -> Losses:
        """Return the worst loss over all streams at the delta, for each adjacency."""
        return self.losses_at(self.delta)

    def measured_loss(self) -> Loss:
        """Return the loss on the pair, at the delta."""
        views = WholeViews(self.make, self.coins)
        return views.worst([self.pair], claimed=self.claimed, delta=self.delta)


HALF: Final = Fraction(1, 2)
OF_ONE: Final = Promise(epsilon=HALF)
OF_A_MEAN: Final = Promise(epsilon=Fraction(1), delta=Fraction(1, 1000))
MOST: Final = 2


def _all_and_none(ticks: int) -> tuple[EventStream, EventStream]:
    return [[0]] * ticks + [RELEASE], [[]] * ticks + [RELEASE]


ONCE, TWICE = _all_and_none(1), _all_and_none(MOST)

DEVICES = (
    Control(
        name="f1",
        says="a bit is kept with the probability with which it should be drawn anew",
        make=device_of(OtherCoin(epsilon_0=HALF), OF_ONE, 1),
        claimed=HALF,
        streams=[ONCE[0]],
        pair=ONCE,
        true_loss=1.97,
    ),
    Control(
        name="f2",
        says="two bits of a histogram differ, and each has all of epsilon",
        make=device_of(EachByItself(most=2, epsilon_0=HALF), OF_ONE, 1),
        claimed=HALF,
        streams=[ONCE[0]],
        pair=ONCE,
        true_loss=1.0,
    ),
    ApproximateControl(
        name="f3",
        says="noise on a number up to k that grows as sqrt(k), at delta 0.001",
        make=device_of(NarrowNoise.planned(OF_A_MEAN, most=MOST), OF_A_MEAN, MOST),
        claimed=Fraction(1),
        delta=OF_A_MEAN.delta,
        streams=[TWICE[0]],
        coins=EnumeratedCoins(tail=10),
        pair=TWICE,
        true_loss=1.1899,
    ),
)
