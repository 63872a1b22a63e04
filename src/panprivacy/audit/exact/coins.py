"""Coins that walk every outcome, each with its exact probability."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.exact.numbers import exp, short_exp
from panprivacy.audit.streams import repeated
from panprivacy.errors import PlanError

TAIL: Final = 6
"""Bound of the enumeration: output noise to ±2·TAIL; outcomes with noise beyond ±TAIL are set
aside."""

Path = tuple[int, ...]
"""Outcome of each draw in order: an index into its law."""


@dataclass(slots=True)
class EnumeratedCoins:
    """Coins that walk every outcome: iterate, and run the same program once for each round.

    >>> coins = EnumeratedCoins()
    >>> [(coins.bernoulli(Fraction(1, 3), 2).tolist(), str(coins.probability)) for _ in coins]
    [([0, 0], '4/9'), ([0, 1], '2/9'), ([1, 0], '2/9'), ([1, 1], '1/9')]

    Noise of infinite support is walked to ±2·tail, with the probabilities of the whole law: a
    rational number within a relative 1e-33 stands for `exp(-1/scale)`, the same one everywhere.

    Keys are public constants: the law of a key does not depend on the stream, and the guarantee
    holds for every key, so the audit fixes one.

    Args:
        addressing_key: what `key` returns, cut or repeated to length.
        tail: noise beyond ± this marks the outcome as `far`.
        state_tail: the same of noise in steps that publish nothing, which stays in the state; None
            for the same. Counts of a release lie up to four times as far apart, and the tail must
            reach over that.
        probability: probability of this round.
        far: whether noise of this round lies beyond the tail.
        noise: noise of this round.
        gaussian: whether any round drew Gaussian noise.
        tossed: number of draws in this round.
        publishing: whether the step that is walked is a release.
    """

    addressing_key: bytes = bytes(16)
    tail: int = TAIL
    state_tail: int | None = None
    probability: Fraction = Fraction(1)
    far: bool = False
    noise: list[int] = field(default_factory=list)
    gaussian: bool = False
    tossed: int = 0
    publishing: bool = False
    _given: Path = ()
    _choices: list[list[int]] = field(default_factory=list)
    _laws: dict[Hashable, Sequence[Fraction]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[None]:
        """Yield once for every outcome."""
        return self.after(())

    def after(self, path: Path) -> Iterator[None]:
        """Yield once for every outcome whose first draws come out as on `path`.

        `probability`, `far` and `noise` are those of the draws after the path.
        """
        self._given, self._choices = path, []
        while True:
            self.probability, self.far, self.noise, self.tossed = Fraction(1), False, [], 0
            yield
            while self._choices and len(self._choices[-1]) == 1:
                self._choices.pop()
            if not self._choices:
                return
            self._choices[-1].pop()

    @property
    def path(self) -> Path:
        """Outcome of every draw of this round so far."""
        return self._given + tuple(choices[-1] for choices in self._choices)

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:
        """Return bits that are 1 with `probability`."""
        one = Fraction(probability)
        law = self._laws.get(one) or self._cached(one, (1 - one, one))
        return np.array([self._choose(law) for _ in range(size)], np.uint8)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
        """Return indices; `i` has probability `weights[i] / sum(weights)`."""
        whole = tuple(map(int, weights))
        law = self._laws.get(whole) or self._cached(whole, whole)
        return np.array([self._choose(law) for _ in range(size)], np.uint32)

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers with `P(k)` proportional to `exp(-|k|/scale)`, up to ±2·tail."""
        return self._draw_noise(_laplace_law(Fraction(scale), 2 * self._tail), size)

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers with `P(k)` proportional to `exp(-k**2/(2*variance))`, up to ±2·tail."""
        self.gaussian = True
        return self._draw_noise(_gaussian_law(Fraction(variance), 2 * self._tail), size)

    def key(self, nbytes: int) -> bytes:
        """Return the fixed key."""
        return repeated(self.addressing_key, nbytes)

    def secret(self, nbytes: int) -> bytes:
        """Return bytes of a secret; every value is equally likely."""
        return self.categorical([1] * 256, nbytes).astype(np.uint8).tobytes()

    @property
    def _tail(self) -> int:
        """Tail of the noise in the step that is enumerated."""
        return self.tail if self.publishing or self.state_tail is None else self.state_tail

    def _cached(self, name: Hashable, weights: Sequence[Fraction | int]) -> Sequence[Fraction]:
        """Return the law with these weights, kept for the rounds to come."""
        if min(weights) < 0:
            message = "a probability lies outside of 0 to 1"
            raise PlanError(message)
        total = sum(weights)
        self._laws[name] = law = [Fraction(weight, total) for weight in weights]
        return law

    def _choose(self, law: Sequence[Fraction]) -> int:
        """Return the outcome of one draw in this round; impossible outcomes are skipped."""
        place, self.tossed = self.tossed - len(self._given), self.tossed + 1
        if place < 0:
            return self._given[place]
        if place == len(self._choices):  # from the last to the first, which is this round's
            self._choices.append([index for index in reversed(range(len(law))) if law[index]])
        index = self._choices[place][-1]
        self.probability *= law[index]
        return index

    def _draw_noise(self, law: Sequence[Fraction], size: int) -> NDArray[np.int64]:
        start = self.tossed
        noise = np.array([self._choose(law) for _ in range(size)], np.int64) - 2 * self._tail
        fresh = noise[max(len(self._given) - start, 0) :].tolist()
        self.noise += fresh
        self.far |= any(abs(value) > self._tail for value in fresh)
        return noise


@functools.lru_cache(maxsize=64)
def _laplace_law(scale: Fraction, reach: int) -> tuple[Fraction, ...]:
    """Return the probabilities of -reach .. reach."""
    ratio = short_exp(-1 / scale)
    return tuple((1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-reach, reach + 1))


@functools.lru_cache(maxsize=64)
def _gaussian_law(variance: Fraction, reach: int) -> tuple[Fraction, ...]:
    """Return the probabilities of -reach .. reach; the total omits terms below e**-100."""
    far = max(reach, math.isqrt(math.ceil(200 * variance)) + 1)
    weights = {k: exp(-k * k / (2 * variance)) for k in range(far + 1)}
    total = 2 * sum(weights.values()) - 1
    return tuple(weights[abs(k)] / total for k in range(-reach, reach + 1))
