"""Counters as they are printed.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 2 and Theorem 7; M. Naor, "Foundations of Privacy", lecture 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from panprivacy.audit.controls.control import Control, Counted, revealed_by_single
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.streams import RELEASE
from panprivacy.privacy.coins import Coins

_ONE = 1 << 40
"""Weights of laws are multiples of 1/_ONE of the smallest, rounded towards less loss."""


class CroppedMoment:
    """Algorithm 2: counters modulo 2 tau, each user's updates times a weight of 1 to 2.

    Everything is on a grid, with `grid` cells between two whole numbers: printed with real
    numbers, whose low digits leak.
    """

    def __init__(
        self, coins: Coins, epsilon: Fraction, tau: int, grid: int, universe: int = 2
    ) -> None:
        self._coins, self._modulus = coins, 2 * tau * grid
        self._scale = self._modulus / epsilon
        self._weights = [grid + byte % (grid + 1) for byte in coins.key(universe)]
        law = [math.floor(math.exp(epsilon) * _ONE)] * grid + [_ONE] * (self._modulus - grid)
        self._counters = coins.categorical(law, universe).astype(np.int64)

    def update(self, users: Sequence[int], deltas: Iterable[int] | None = None) -> None:
        """Add each delta, times the user's weight."""
        for user, delta in zip(users, deltas or [1] * len(users), strict=True):
            moved = self._counters[user] + self._weights[user] * delta
            self._counters[user] = moved % self._modulus

    def release(self) -> Counted:
        """Return the sum of the counters, with noise of scale 2 tau/epsilon."""
        noise = self._coins.discrete_laplace(self._scale, 1)
        return Counted((int(self._counters.sum()) + int(noise[0]),))

    def state(self) -> bytes:
        """Return the weights and the counters."""
        return bytes(self._weights) + self._counters.astype(np.uint8).tobytes()


class ManyPrimes:
    """Incidence counting: for each prime a counter of both users, each with all of epsilon."""

    def __init__(self, coins: Coins, epsilon: float, primes: Sequence[int]) -> None:
        self._primes, self._tables = primes, []
        for prime in primes:  # weights that fall from 1 to e**-epsilon
            falls = [math.exp(-epsilon * i / (prime - 1)) for i in range(prime)]
            law = [math.ceil(_ONE * weight) for weight in falls]
            self._tables.append(coins.categorical(law, 2))

    def update(self, users: Iterable[int], _deltas: object = None) -> None:
        """Add one to every counter of each user."""
        for user in users:
            for prime, table in zip(self._primes, self._tables, strict=True):
                table[user] = (table[user] + 1) % prime

    def state(self) -> bytes:
        """Return the bytes of all counters."""
        return b"".join(table.astype(np.uint8).tobytes() for table in self._tables)


COUNTERS = (
    Control(
        name="m3",
        says="to replace a user moves two counters: 4 epsilon, printed as 2 epsilon",
        make=lambda coins: CroppedMoment(coins, Fraction(1), tau=2, grid=2),
        claimed=Fraction(2),
        streams=[[[(0, 3)], [(0, 5)], RELEASE], [[(0, 3)], RELEASE, [(0, 5)]]],
        coins=EnumeratedCoins(addressing_key=bytes([0, 1]), tail=14),
        adjacency="replace",
        pair=([[(0, 3)], [(0, 5)], RELEASE], [[(1, 3)], [(1, 5)], RELEASE]),
        true_loss=2 + 13 / 8,
    ),
    revealed_by_single(
        "n1",
        "a counter for each of L primes costs L epsilon, printed as epsilon",
        lambda coins: ManyPrimes(coins, 1, primes=(3, 5)),
        claimed=Fraction(1),
        true_loss=2.0,
    ),
)
