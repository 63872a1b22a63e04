"""Coins that watch, break, or walk every outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from panprivacy.testing import SeededCoins


class SpyCoins:
    """Seeded coins that note what was asked of them: `(name, size)` for each call."""

    def __init__(self, seed: int = 0) -> None:
        self.calls: list[tuple[str, int]] = []
        self._coins = SeededCoins(seed)

    @staticmethod
    def _noted(name: str) -> Callable[..., Any]:
        def call(self, *arguments):
            self.calls.append((name, arguments[-1]))
            return getattr(self._coins, name)(*arguments)

        return call

    bernoulli, categorical, key = map(_noted, ("bernoulli", "categorical", "key"))
    discrete_laplace = _noted("discrete_laplace")
    discrete_gaussian = _noted("discrete_gaussian")

    def sizes(self, name: str) -> list[int]:
        """How many samples each call of `name` asked for."""
        return [size for called, size in self.calls if called == name]


class EntropyError(OSError):
    """The failure of a byte source."""


class BreakableCoins(SeededCoins):
    """Seeded coins whose byte source fails once `reads_left` reads have been answered."""

    reads_left: float = float("inf")

    @contextmanager
    def _stream(self):
        with super()._stream() as draw:

            def fail_at_last(nbytes):
                if self.reads_left < 1:
                    raise EntropyError
                self.reads_left -= 1
                return draw(nbytes)

            yield fail_at_last


def reads_of_an_announcement(case, **life) -> int:
    """How often the byte source of such coins is read for one: it may fail at the last."""
    coins, many = BreakableCoins(3), 10**6
    statistic = case.make(coins=coins, **life)
    coins.reads_left = many
    statistic.announce_intrusion()
    return int(many - coins.reads_left)


class ScriptedCoins:
    """Coins that play back outcomes and go on with the first possible ones, noting the rest.

    Args:
        script: the outcomes of the first coins.
        given: how many of these are taken for granted: `probability` is that of the rest.
    """

    def __init__(self, script: tuple[int, ...] = (), given: int = 0) -> None:
        self.untried: list[tuple[int, ...]] = []
        self._script = script
        self._given = given
        self._tossed: list[int] = []
        self._numerator = self._denominator = 1

    @property
    def probability(self) -> Fraction:
        """The probability of the outcomes so far."""
        return Fraction(self._numerator, self._denominator)

    def bernoulli(self, probability: Fraction, size: int) -> np.ndarray:
        """Bits that are 1 with `probability`."""
        heads, total = probability.as_integer_ratio()
        return np.array([self._toss((total - heads, heads)) for _ in range(size)], np.uint8)

    def categorical(self, weights: list[int], size: int) -> np.ndarray:
        """Indices; `i` has probability `weights[i] / sum(weights)`."""
        return np.array([self._toss(weights) for _ in range(size)], np.uint32)

    def key(self, nbytes: int) -> bytes:
        """A fixed key: the law of a key does not depend on the stream."""
        return bytes(range(1, nbytes + 1))

    def _toss(self, weights: Sequence[int]) -> int:
        if len(self._tossed) < len(self._script):
            side = self._script[len(self._tossed)]
        else:
            side, *others = (side for side, weight in enumerate(weights) if weight)
            self.untried += [(*self._tossed, other) for other in others]
        if len(self._tossed) >= self._given:
            self._numerator *= weights[side]
            self._denominator *= sum(weights)
        self._tossed.append(side)
        return side


def exact_law(
    run: Callable[[ScriptedCoins], Hashable], given: tuple[int, ...] = ()
) -> dict[Hashable, Fraction]:
    """The law of what `run` returns, by running it once for every outcome of its coins.

    Args:
        run: the same program every time.
        given: outcomes of the first coins; the law is conditional on them.
    """
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    scripts = [given]
    while scripts:
        coins = ScriptedCoins(scripts.pop(), len(given))
        law[run(coins)] += coins.probability
        scripts += coins.untried
    return dict(law)
