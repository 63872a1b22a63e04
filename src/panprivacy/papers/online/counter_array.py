"""The state of many running counts between two steps."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.counters.mechanism import Floats, Integers, StepAnswers
from panprivacy.tables.counters.running import RunningState, Sum

_SPREADS = 2
"""Public numbers of a `PublicAnswers` beside its values: the variance and the fourth cumulant."""


class PublicAnswers:
    """The answers of one moment, all of it public.

    Args:
        numbers: float64[2 + counters], changed in place: variance and fourth cumulant of the noise,
            which all counters share, and the values.
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: Floats) -> None:
        self.numbers = numbers

    @property
    def values(self) -> Floats:
        """The answer of each counter."""
        return self.numbers[_SPREADS:]

    def reach(self, confidence: float) -> float:
        """Return the half-width of the confidence interval of an answer."""
        variance, fourth = self.numbers[:_SPREADS].tolist()
        return Sum(0.0, variance, fourth, grain=1.0).reach(confidence)


class CounterArray(RunningState):
    """Many running counts and their state. They answer together, and not at every step.

    Args:
        counters: number of counters.
        horizon: number of steps.
        every: after how many steps all counters answer.
        epsilon: the loss for one event.
        open_steps: whether an intrusion is possible between two answers, so that `count` can count.
        coins: source of all randomness.
    """

    __slots__ = ()

    spreads = slice(_SPREADS)

    def __init__(
        self,
        counters: int,
        horizon: int,
        every: int,
        epsilon: Fraction,
        coins: Coins,
        *,
        open_steps: bool,
    ) -> None:
        forest = Forest.planted(counters, -(-horizon // every), epsilon, open_steps=open_steps)
        known = np.zeros(1 + 2 * (_SPREADS + counters))
        super().__init__(forest, coins, known, horizon=horizon, every=every)

    @property
    def forest(self) -> Forest:
        """The mechanism of the counts."""
        return cast("Forest", self.mechanism)

    @property
    def last(self) -> PublicAnswers:
        """The last answers, in place."""
        return PublicAnswers(self._last)

    @property
    def due(self) -> int:
        """Number of steps until the next answers."""
        return self.every - self._open

    def count(self, events: Integers) -> None:
        """Count events, each the number of its counter."""
        self.forest.count(self._memory, events)

    def wait(self, steps: int) -> None:
        """End steps before the one after which answers are due."""
        self._open += steps

    def answer(self, amounts: Integers) -> StepAnswers:
        """End steps up to the next answers, and as many more as end with answers; the answers.

        Args:
            amounts: what each counter rises by until each of these answers, beside what was
                counted: int64[counters, answers]; wiped.
        """
        before = self._before
        try:
            answers = self._advance(amounts, before[_SPREADS:, None], *before[:_SPREADS])
        finally:
            wipe(amounts)
        self._open = 0
        self._last[:_SPREADS] = answers.variances[-1], answers.fourths[-1]
        self._last[_SPREADS:] = answers.values[:, -1]
        return answers
