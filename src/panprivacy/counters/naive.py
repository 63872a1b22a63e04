"""The counts that come to mind first; their errors grow with the root of the steps, or faster.

Reference: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", chapter 12; Naor,
"Foundations of Privacy", lecture 10, slides 9 to 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from panprivacy.coins import Coins
from panprivacy.counters.mechanism import Floats, Integers, Mechanism, Memory, StepAnswers
from panprivacy.counters.tree import laplace_cumulants
from panprivacy.guarantee import randomised_response
from panprivacy.noise import wipe

_GRID: Final = 1 << 20
MOST_BOUND: Final = 1 << 12
"""Of randomised response, which draws a number below it for each step."""
_VARIANCE, _FOURTH = range(2)
"""The rows of `told`: of the noise in the one cell."""


def _grown(memory: Memory, steps: int, each: tuple[float, float]) -> tuple[Floats, Floats]:
    """The cumulants of the noise after each of some steps, as they grow by so much a step."""
    count = np.arange(1, steps + 1)
    variances, fourths = (memory.told[row, 0] + count * each[row] for row in (_VARIANCE, _FOURTH))
    memory.told[:, 0] += steps * np.array(each)
    return variances, fourths


@dataclass(frozen=True, slots=True)
class Naive(Mechanism):
    """One sum.

    Args:
        horizon: how many steps there are.
        epsilon: the loss for one event.
        bound: the most that an event adds.
    """

    horizon: int
    epsilon: Fraction
    bound: int = 1

    def born(self, coins: Coins) -> Memory:  # noqa: ARG002
        """A sum of nothing."""
        return Memory(np.zeros(1, np.int64), np.zeros((2, 1)))


@dataclass(frozen=True, slots=True)
class RandomisedResponse(Naive):
    """Each step is answered at random, and what is kept is the sum of these answers.

    Nothing else is kept, so the memory may be seen at every step.
    """

    @property
    def grain(self) -> float:
        """What an answer of 1 counts."""
        return self.bound / float(2 * randomised_response(self.epsilon) - 1)

    def run(self, memory: Memory, amounts: Integers, coins: Coins) -> StepAnswers:
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

    def rerandomise(self, memory: Memory, coins: Coins) -> None:
        """Nothing: all that is kept has left."""


@dataclass(frozen=True, slots=True)
class NoisySteps(Naive):
    """Each step is added to the sum with noise of its own, which stays.

    What is kept is the last answer, so the memory may be seen at every step.
    """

    def run(self, memory: Memory, amounts: Integers, coins: Coins) -> StepAnswers:
        """Add each step with noise."""
        scale = self.bound / self.epsilon
        noise = coins.discrete_laplace(scale, len(amounts))
        noise += amounts
        sums = memory.cells[0] + np.cumsum(noise)
        wipe(noise)
        variances, fourths = _grown(memory, len(amounts), laplace_cumulants(float(scale)))
        memory.cells[0], memory.tick = sums[-1], memory.tick + len(amounts)
        return StepAnswers(sums.astype(float), variances, fourths, sums)

    def rerandomise(self, memory: Memory, coins: Coins) -> None:
        """Nothing: all that is kept has left."""


@dataclass(frozen=True, slots=True)
class FreshNoise(Naive):
    """One sum, born with noise; each answer has fresh noise on top.

    An event before a look is hidden by the noise of birth from the look on, and before it by that
    of at most `horizon - 1` answers; one after all looks by that of at most `horizon` answers.
    """

    def born(self, coins: Coins) -> Memory:
        """The noise of birth."""
        memory = Naive.born(self, coins)
        self.rerandomise(memory, coins)
        return memory

    @property
    def _losses(self) -> tuple[Fraction, Fraction]:
        """Of the noise of birth, and of that of an answer: what errs least."""
        others = self.horizon - 1
        if not others:
            return self.epsilon, self.epsilon
        share = Fraction(round(_GRID / (1 + others ** (2 / 3))), _GRID)
        birth = self.epsilon * max(share, Fraction(1, self.horizon))
        return birth, (self.epsilon - birth) / others

    def run(self, memory: Memory, amounts: Integers, coins: Coins) -> StepAnswers:
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

    def rerandomise(self, memory: Memory, coins: Coins) -> None:
        """Add noise as large as that of birth."""
        scale = self.bound / self._losses[0]
        noise = coins.discrete_laplace(scale, 1)
        memory.cells += noise
        wipe(noise)
        memory.told[:, 0] += laplace_cumulants(float(scale))
