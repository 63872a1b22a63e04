"""Continual counters as they are printed.

Reference: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", figure 12.1; Naor,
"Foundations of Privacy", lecture 10, slides 17 to 19.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from panprivacy.audit.controls.control import Control, Counted, shown_by_one
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.neighbours import short_streams
from panprivacy.audit.streams import RELEASE
from panprivacy.coins import Coins

_BYTES = 8


class NoisyBeginning:
    """Figure 12.1, one of its intervals: a sum that is born with noise, and leaves as it is."""

    def __init__(self, coins: Coins, epsilon: Fraction) -> None:
        self._sum = int(coins.discrete_laplace(1 / epsilon, 1)[0])

    def update(self, events: Sequence[object], _deltas: object = None) -> None:
        """Count events."""
        self._sum += len(events)

    def release(self) -> Counted:
        """The sum, at the end of the interval."""
        return Counted((self._sum,))

    def state(self) -> bytes:
        """The sum."""
        return self._sum.to_bytes(_BYTES, "little", signed=True)


class DelayedUpdates:
    """Slide 18: the count since the last answer as it is, and a noisy threshold for it."""

    def __init__(self, coins: Coins, epsilon: Fraction, delay: int) -> None:
        self._count = 0
        self._threshold = delay + int(coins.discrete_laplace(1 / epsilon, 1)[0])

    def update(self, events: Sequence[object], _deltas: object = None) -> None:
        """Count events."""
        self._count += len(events)

    def state(self) -> bytes:
        """The count and the threshold."""
        kept = self._count, self._threshold
        return b"".join(one.to_bytes(_BYTES, "little", signed=True) for one in kept)


CONTINUAL = (
    Control(
        name="r2",
        says="noise of birth alone: who has looked knows it, and subtracts it from the answer",
        make=lambda coins: NoisyBeginning(coins, Fraction(1)),
        claimed=Fraction(1),
        streams=list(short_streams([[0], [1]], 2, releases=1)),
        coins=EnumeratedCoins(tail=8),
        adjacency="event",
        pair=([[1], [0], RELEASE], [[1], [], RELEASE]),
    ),
    shown_by_one(
        "n3",
        "a noisy threshold hides no exact count that is kept beside it",
        lambda coins: DelayedUpdates(coins, Fraction(1), delay=1),
        claimed=Fraction(2),
        true_loss=math.inf,
    ),
)
