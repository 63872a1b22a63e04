"""The counts that come to mind first; their errors grow with the root of the steps, or faster.

Reference: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", chapter 12; Naor,
"Foundations of Privacy", lecture 10, slides 9 to 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import randomised_response
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import (
    CounterState,
    Floats,
    Integers,
    Mechanism,
    StepAnswers,
)
from panprivacy.tables.counters.tree import laplace_cumulants

_GRID: Final = 1 << 20
MOST_BOUND: Final = 1 << 12
"""Maximum bound of randomised response, which draws a number below it for each step."""
_VARIANCE, _FOURTH = range(2)
"""The rows of `told`: variance and fourth cumulant of the noise in the one cell."""


def _grown(memory: CounterState, steps: int, each: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the noise cumulants after each of some steps, which grow by `each` per step."""
    count = np.arange(1, steps + 1)
    variances, fourths = (memory.told[row, 0] + count * each[row] for row in (_VARIANCE, _FOURTH))
    memory.told[:, 0] += steps * np.array(each)
    return variances, fourths


@dataclass(frozen=True, slots=True)
class Naive(Mechanism):
    """A mechanism of one sum.

    Args:
        horizon: number of steps.
        epsilon: the loss for one event.
        bound: the most that an event adds.
    """

    horizon: int
    epsilon: Fraction
    bound: int = 1

    def initial(self, coins: Coins) -> CounterState:  # noqa: ARG002
        """Return a sum of nothing."""
        return CounterState(np.zeros(1, np.int64), np.zeros((2, 1)))


@dataclass(frozen=True, slots=True)
class RandomisedResponseCounter(Naive):
    """Randomised response at each step; the state is the sum of the responses.

    There is no other state, so intrusions at every step are covered.
    """

    @property
    def grain(self) -> float:
        """Value of an answer of 1."""
        return self.bound / float(2 * randomised_response(self.epsilon) - 1)

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Answer 1 with probability p at the bound, and 1-p at 0; which coins are drawn is public.

        With probability `2p-1` the answer is whether the amount is above a number below the bound,
        else that of a fair coin.
        """
        surest, steps = randomised_response(self.epsilon), len(amounts)
        tossed = coins.bernoulli(Fraction(1, 2), steps).astype(np.int64)
        honest = coins.bernoulli(2 * surest - 1, steps)
        below = coins.categorical([1] * self.bound, steps)
        np.copyto(tossed, amounts > below, where=honest.view(bool))
        wipe(honest, below)
        sums = memory.cells[0] + np.cumsum(tossed)
        ticks = memory.tick + np.arange(1, steps + 1)
        unit = self.grain
        values = (sums - ticks * float(1 - surest)) * unit
        most = float(surest * (1 - surest)) if self.bound == 1 else 0.25
        variances, fourths = _grown(memory, len(amounts), (most * unit**2, 0.0))
        wipe(tossed)
        memory.cells[0], memory.tick = sums[-1], memory.tick + len(amounts)
        return StepAnswers(values, variances, fourths, sums)

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Do nothing: the complete state has been released."""


@dataclass(frozen=True, slots=True)
class NoisySteps(Naive):
    """A sum to which each step adds its amount and noise of its own, which stays.

    The state is the last answer, so intrusions at every step are covered.
    """

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Add each step with noise."""
        scale = self.bound / self.epsilon
        noise = coins.discrete_laplace(scale, len(amounts))
        noise += amounts
        sums = memory.cells[0] + np.cumsum(noise)
        wipe(noise)
        variances, fourths = _grown(memory, len(amounts), laplace_cumulants(float(scale)))
        memory.cells[0], memory.tick = sums[-1], memory.tick + len(amounts)
        return StepAnswers(sums.astype(float), variances, fourths, sums)

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Do nothing: the complete state has been released."""


@dataclass(frozen=True, slots=True)
class FreshNoise(Naive):
    """One sum with initial noise; each answer adds fresh output noise.

    An event before a look is hidden by the initial noise from the look on, and before it by that
    of at most `horizon - 1` answers; one after all looks by that of at most `horizon` answers.
    """

    def initial(self, coins: Coins) -> CounterState:
        """Draw the initial noise."""
        memory = Naive.initial(self, coins)
        self.rerandomise(memory, coins)
        return memory

    @property
    def _losses(self) -> tuple[Fraction, Fraction]:
        """Losses of the initial noise and of the noise of an answer, with the smallest error."""
        others = self.horizon - 1
        if not others:
            return self.epsilon, self.epsilon
        share = Fraction(round(_GRID / (1 + others ** (2 / 3))), _GRID)
        birth = self.epsilon * max(share, Fraction(1, self.horizon))
        return birth, (self.epsilon - birth) / others

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Add each step, and answer with fresh noise."""
        scale = self.bound / self._losses[1]
        noise = coins.discrete_laplace(scale, len(amounts))
        sums = np.cumsum(amounts)
        sums += memory.cells[0]
        noise += sums
        variance, fourth = laplace_cumulants(float(scale))
        each = np.ones(len(amounts))
        told = memory.told[_VARIANCE, 0] + variance, memory.told[_FOURTH, 0] + fourth
        memory.cells[0], memory.tick = sums[-1], memory.tick + len(amounts)
        wipe(sums)
        return StepAnswers(noise.astype(float), told[0] * each, told[1] * each, noise)

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Add noise of the same law as the initial noise."""
        scale = self.bound / self._losses[0]
        noise = coins.discrete_laplace(scale, 1)
        memory.cells += noise
        wipe(noise)
        memory.told[:, 0] += laplace_cumulants(float(scale))
