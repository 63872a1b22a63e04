"""A program that crashes, and goes on from its last sealed checkpoint, as the audit leads it.

A checkpoint is sealed: an intruder who sees the program does not see it. So a crash makes a tree of
the program's life. What was counted after the checkpoint is on a branch that ends with the crash,
and an intrusion into that branch is the one look, as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins


class Restarted:
    """A program with `save` and `crash`, for streams with `SAVE` and `CRASH` steps.

    >>> from panprivacy.audit import CRASH, RELEASE, SAVE, Restarted, exact_loss
    >>> import panprivacy as pp
    >>> def density(coins):
    ...     return pp.Density(universe=1, epsilon=1, coins=coins)
    >>> stream, neighbour = ([SAVE, rows, CRASH, rows, RELEASE] for rows in ([0], []))
    >>> exact_loss(lambda coins: Restarted(density, coins), stream, neighbour).within(1)
    True

    Args:
        make: makes the program with the coins it is given; it has `state` and `resume`.
        coins: source of all randomness.
    """

    def __init__(self, make: Callable[[Any], Any], coins: Coins) -> None:
        self._make, self._coins = make, coins
        self.program = make(coins)
        self._saved = b""
        self._released = self._announced = 0

    def update(self, *rows: Any) -> None:
        """Count a batch."""
        self.program.update(*rows)

    def release(self) -> Any:
        """Publish an answer; that there was one is written down elsewhere."""
        self._released += 1
        return self.program.release()

    def announce_intrusion(self) -> None:
        """Announce an intrusion; that there was one is written down elsewhere."""
        self._announced += 1
        self.program.announce_intrusion()

    def state(self) -> bytes:
        """Return the state that an intruder sees; the sealed file is no part of it."""
        state: bytes = self.program.state()
        return state

    def save(self) -> None:
        """Write the sealed file."""
        self._saved = self.program.state()

    def crash(self) -> None:
        """End the process, and have a new one go on from the sealed file."""
        coins = _Overwritten(self._coins)
        later = self._make(coins)
        coins.live = True
        later.resume(self._saved, released=self._released, announced=self._announced)
        self.program.forget()
        self.program = later


class _Overwritten:
    """Coins that are not walked until a new program goes on from a state.

    What it draws before that is overwritten: `tests/contract/test_resume.py` checks that two new
    programs with other coins hold the same after they resume the same state.
    """

    def __init__(self, coins: Coins) -> None:
        self._coins, self.live = coins, False

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:
        if self.live:
            return self._coins.bernoulli(probability, size)
        return np.full(size, round(probability), np.uint8)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
        if self.live:
            return self._coins.categorical(weights, size)
        return np.full(size, int(np.argmax(weights)), np.uint32)

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        if self.live:
            return self._coins.discrete_laplace(scale, size)
        return np.zeros(size, np.int64)

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        if self.live:
            return self._coins.discrete_gaussian(variance, size)
        return np.zeros(size, np.int64)

    def key(self, nbytes: int) -> bytes:
        return self._coins.key(nbytes)
