"""The counter of Dwork and Roth, figure 12.2: one noisy sum, and noise for intervals of time.

An answer is the sum with the noise of all dyadic intervals that hold the step. These are drawn when
they begin and erased when they end. An event before a look is hidden by the initial noise from the
look on, and before it by the noise of intervals that cover the steps before the event and have
ended; one after all looks by that of intervals that cover the steps from it on. At most one
interval of each level is needed, and the initial noise: `1 + levels` noises in all.

Reference: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", Theorem 12.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import CounterState, Integers, Mechanism, StepAnswers
from panprivacy.tables.counters.tree import laplace_cumulants


@dataclass(frozen=True, slots=True)
class Accumulator(Mechanism):
    """The parameters of figure 12.2.

    The first cell is the sum, the others are the noise of the interval of each level that has
    begun and not ended. The rows of `told` are the variance and the fourth cumulant of each.

    Args:
        horizon: number of steps.
        epsilon: the loss for one event.
        bound: the most that an event adds.
    """

    horizon: int
    epsilon: Fraction
    bound: int = 1

    @property
    def _levels(self) -> int:
        return max((self.horizon - 1).bit_length(), 1)

    @property
    def _scale(self) -> Fraction:
        return (1 + self._levels) * self.bound / self.epsilon

    def initial(self, coins: Coins) -> CounterState:
        """Draw the initial noise."""
        memory = CounterState(np.zeros(1 + self._levels, np.int64), np.zeros((2, 1 + self._levels)))
        memory.cells[:1] = coins.discrete_laplace(self._scale, 1)
        memory.told[:, 0] = laplace_cumulants(float(self._scale))
        return memory

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Add each step, and answer with the noise of its intervals."""
        start, end, each = memory.tick, memory.tick + len(amounts), laplace_cumulants(self._float)
        begin = [(end - 1) // size - (start - 1) // size for size in self._sizes]
        drawn = np.split(coins.discrete_laplace(self._scale, sum(begin)), np.cumsum(begin)[:-1])
        sums = np.cumsum(amounts)
        sums += memory.cells[0]
        noise, cumulants = np.zeros(len(amounts), np.int64), np.zeros((2, len(amounts)))
        cumulants += memory.told[:, :1]
        cells, told = memory.cells.copy(), memory.told.copy()
        for level, (size, fresh) in enumerate(zip(self._sizes, drawn, strict=True), 1):
            begun = start % size != 0
            values = np.concatenate([cells[level : level + 1], fresh]) if begun else fresh
            kept = np.repeat(np.array([each]).T, len(values), axis=1)
            if begun:
                kept[:, 0] = told[:, level]
            places = np.arange(start, end) // size - start // size
            noise += values[places]
            cumulants += kept[:, places]
            open_now = end % size != 0
            cells[level] = values[-1] if open_now else 0
            told[:, level] = kept[:, -1] if open_now else 0.0
            wipe(values, fresh)
        noise += sums
        cells[0] = sums[-1]
        answers = StepAnswers(noise.astype(float), cumulants[0], cumulants[1], noise)
        memory.cells[:], memory.told[:], memory.tick = cells, told, end
        wipe(sums, cells)
        return answers

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Add noise to the sum and to the noise of all intervals that have begun."""
        begun = [True, *(memory.tick % size != 0 for size in self._sizes)]
        noise, drawn = np.zeros_like(memory.cells), coins.discrete_laplace(self._scale, sum(begun))
        noise[begun] = drawn
        memory.cells += noise
        wipe(noise, drawn)
        memory.told[:, begun] += np.array([laplace_cumulants(self._float)]).T

    @property
    def _float(self) -> float:
        return float(self._scale)

    @property
    def _sizes(self) -> list[int]:
        """The lengths of the intervals of each level."""
        return [1 << level for level in range(self._levels)]
