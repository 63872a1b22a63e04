"""Density estimators as they are printed.

Reference: V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream density
estimation", Algorithms 1 to 3 and section 4.2; C. Dwork, A. Roth, "The algorithmic foundations of
differential privacy", section 12.2.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from panprivacy.audit.controls.control import Control, Counted, revealed_by_single
from panprivacy.audit.neighbours import short_streams
from panprivacy.papers.published.redrawn import CellLaws, RedrawnCells
from panprivacy.privacy.coins import Coins


class PrintedBits:
    """The cells of the published classes with constants as printed, and noise on their sum.

    Args:
        absent: probability that a bit is 1 before its user appears.
        present: the same after that.
        unit: what a bit counts for.
        scale: scale of the noise.
    """

    def __init__(
        self,
        coins: Coins,
        absent: Fraction,
        present: Fraction,
        unit: int = 1,
        scale: Fraction = Fraction(1),
    ) -> None:
        self._coins, self._unit, self._scale = coins, unit, scale
        self._cells = RedrawnCells(2, CellLaws.of_bits(absent, present))
        self._table = self._cells.initial(coins)

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Redraw the bit of each user."""
        self._cells.update(self._table, [np.array(users, np.int64)], None, 0, self._coins)

    def release(self) -> Counted:
        """Return the sum of the bits, with noise."""
        noise = self._coins.discrete_laplace(self._scale, 1)
        return Counted((self._unit * int(self._table.sum()) + int(noise[0]),))

    def state(self) -> bytes:
        """Return the bits."""
        return self._table.tobytes()


class DistinctSampling:
    """Algorithm 3 (PPDS): a sample of ids with a level that rises when the sample is full."""

    def __init__(self, coins: Coins, epsilon: Fraction, size: int, universe: int) -> None:
        t = Fraction(math.tanh(epsilon / 2))
        self._coins, self._size, self._present = coins, size, (1 + t) / 2
        self._key = coins.key(8)
        self._sample: set[int] = set()
        self._level = 0
        for user in range(universe):
            if self._hash(user) >= self._level:
                self._add(user, (1 - t) / 2)

    def update(self, users: Iterable[int], _deltas: object = None) -> None:
        """Redraw whether each user is in the sample."""
        for user in users:
            if user in self._sample:
                if not self._flip(self._present):
                    self._sample.remove(user)
            elif self._hash(user) >= self._level:
                self._add(user, self._present)

    def state(self) -> bytes:
        """Return the sample, its level and the key."""
        return self._key + bytes([self._level, *sorted(self._sample)])

    def _hash(self, user: int) -> int:
        """Return the level of a user: l and above for one in 2**l."""
        digest = hashlib.blake2b(bytes([user]), key=self._key, digest_size=8).digest()
        number = int.from_bytes(digest)
        return (number & -number).bit_length() - 1

    def _add(self, user: int, probability: Fraction) -> None:
        if self._flip(probability):
            self._sample.add(user)
        if len(self._sample) >= self._size:
            self._sample = {user for user in self._sample if self._hash(user) > self._level}
            self._level += 1

    def _flip(self, probability: Fraction) -> bool:
        return bool(self._coins.bernoulli(probability, 1)[0])


TENTH, HALF = Fraction(1, 10), Fraction(1, 2)
T, T_HALF = (Fraction(math.tanh(epsilon / 2)) for epsilon in (TENTH, HALF))
OFF_CENTRE = Fraction(4, 5)
OFTEN = 20

DENSITY = (
    revealed_by_single(
        "d1-algorithm-1",
        "output noise 1/(epsilon m) where one bit moves the answer by 4/(epsilon m)",
        lambda coins: PrintedBits(coins, HALF, HALF + TENTH / 4, unit=4),
        claimed=2 * TENTH,
        true_loss=3.37,
        releases=1,
        tail=8,
    ),
    revealed_by_single(
        "d1-algorithm-2",
        "output noise 1/(epsilon m) where one bit moves the answer by 1/(t m)",
        lambda coins: PrintedBits(coins, (1 - T) / 2, (1 + T) / 2, scale=T / TENTH),
        claimed=2 * TENTH,
        true_loss=1.47,
        releases=1,
    ),
    revealed_by_single(
        "d2",
        "bits of mean c (1 ± t) with c = 4/5: zeros tell more than ones",
        lambda coins: PrintedBits(coins, OFF_CENTRE * (1 - T_HALF), OFF_CENTRE * (1 + T_HALF)),
        claimed=HALF,
        true_loss=4.58,
    ),
    Control(
        name="d3",
        says="a level that rises when the sample is full tells how often a user came",
        make=lambda coins: DistinctSampling(coins, TENTH, size=2, universe=3),
        claimed=2 * TENTH,
        streams=[*short_streams([[0], [1]], 2), [[0]] * OFTEN],
        pair=([[0]] * OFTEN, [[]] * OFTEN),
        true_loss=14.9,
    ),
    revealed_by_single(
        "r1",
        "bits of mean 1/2 and 1/2 + epsilon, called epsilon-private",
        lambda coins: PrintedBits(coins, HALF, HALF + TENTH),
        claimed=TENTH,
        true_loss=-math.log(1 - 0.2),
    ),
)
