"""A running count that moves only when it is far behind, repaired.

One sum has initial noise. At each step it is compared with the last answer, with fresh noise; once
it seems `delay` above it, it leaves with fresh noise as the next answer. So many answers leave at
most; then the count stands still.

As printed, the sum is kept as it is, and a noisy threshold beside it: an intruder into both knows
how each later comparison ends (erratum N3). Here no noise of a comparison is kept. That costs a
delta: each answer that does not move says a little. [docs/guarantees/continual.md]

Reference: Naor, "Foundations of Privacy", lecture 10, slides 17 to 19.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import CounterState, Integers, Mechanism, StepAnswers
from panprivacy.tables.counters.tree import laplace_cumulants

_PARTS: Final = 8
"""Number of parts of epsilon: one is for the sum, one for the answers, the others for comparisons.
"""
_GRID: Final = 1 << 10
_MOST_UPDATES: Final = 10_000
MOST_BOUND: Final = 1 << 12
_ROUNDED: Final = 1 - 1e-6
"""Share of epsilon that is spent; the rest covers the rounding of floats."""

_TOLD, _LEFT, _VARIANCE, _FOURTH = range(4)
"""The entries of `told`: the last answer, how many may follow, and the noise of the sum."""


@dataclass(frozen=True, slots=True)
class Delayed(Mechanism):
    """The parameters of a delayed count.

    Args:
        horizon: number of steps.
        epsilon: the loss for one event, at `delta`.
        delta: above 0; see `PrivacyLoss`.
        bound: the most that an event adds.
    """

    horizon: int
    epsilon: Fraction
    delta: Fraction
    bound: int = 1
    estimates: ClassVar[int] = 1

    @property
    def updates(self) -> int:
        """Maximum number of answers, such that chance rarely causes one."""
        unhurried = self.horizon * float(self.epsilon) / (4 * math.log(self.horizon + 1))
        return min(max(math.isqrt(math.floor(unhurried)), 1), _MOST_UPDATES)

    @property
    def delay(self) -> int:
        """Largest apparent lag of an answer: its part of the horizon, and a bound on the noise."""
        part = self.horizon * self.bound / self.updates
        return math.ceil(part + float(self.scales[1]) * math.log1p(self.horizon / self.updates))

    @property
    def scales(self) -> tuple[Fraction, Fraction, Fraction]:
        """Scales of the initial noise, of the noise of a comparison and of an answer."""
        part = self.epsilon / _PARTS
        compared = comparison_scale((_PARTS - 2) * part, self.updates, self.delta, self.bound)
        return self.bound / part, compared, self.updates * self.bound / part

    def initial(self, coins: Coins) -> CounterState:
        """Draw the initial noise."""
        memory = CounterState(np.zeros(1, np.int64), np.array([0.0, self.updates, 0.0, 0.0]))
        self.rerandomise(memory, coins)
        return memory

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Compare at each step, and answer anew where the last answer is far behind."""
        _, compared, answered = self.scales
        told, left, variance, fourth = memory.told.tolist()
        sums = memory.cells[0] + np.cumsum(amounts)
        noise = coins.discrete_laplace(compared, len(amounts))
        noise += sums
        values, released, at = np.full(len(amounts), told), [], 0
        while left and (late := noise[at:] >= told + self.delay).any():
            at += int(late.argmax())
            drawn = coins.discrete_laplace(answered, 1)
            told, left = float(sums[at] + drawn[0]), left - 1
            wipe(drawn)
            released.append(int(told))
            values[at:], at = told, at + 1
        memory.cells[0], memory.tick = sums[-1], memory.tick + len(amounts)
        memory.told[:_VARIANCE] = told, left
        wipe(sums, noise)
        # Whether an answer moved or not, noise of the larger kind stands between it and the sum.
        more, more_fourth = laplace_cumulants(float(max(compared, answered)))
        each = np.ones(len(amounts))
        return StepAnswers(
            values, (variance + more) * each, (fourth + more_fourth) * each, np.array(released, int)
        )

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Add noise of the same law as the initial noise."""
        scale = self.scales[0]
        noise = coins.discrete_laplace(scale, 1)
        memory.cells += noise
        wipe(noise)
        memory.told[_VARIANCE:] += laplace_cumulants(float(scale))

    def hidden(self, memory: CounterState) -> float:
        """Return the delay; once no answer may follow, as much as ever comes."""
        return float(self.delay if memory.told[_LEFT] else self.horizon * self.bound)


@functools.lru_cache(maxsize=64)
def comparison_scale(epsilon: Fraction, updates: int, delta: Fraction, bound: int) -> Fraction:
    """Return the least scale of a comparison's noise at which all cost epsilon and delta at most.

    They cost `updates bound/scale + kappa g`: each that ends in an answer `bound/scale`, all others
    together `kappa` times their hazard, which is above `g` with a probability of delta at most.
    """
    most, hazard = float(epsilon) * _ROUNDED, _hazard(updates, float(delta))

    def cost(units: int) -> float:
        scale = units * bound / _GRID
        return updates * bound / scale + _kappa(scale, bound) * hazard

    low, high = _GRID // 32, _GRID // 16  # with less, exp(-bound/scale) would be 0
    while cost(high) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) > most else (low, middle)
    return Fraction(high * bound, _GRID)


def _kappa(scale: float, bound: int) -> float:
    """Return the largest relative growth of a hazard when the sum grows by the bound.

    The hazard is `-ln(1-p)`, and noise is `j` or more with the probability p. It grows most where
    `j` was 1 .. bound; then it may be 0 or less, and has the probability `1-p` of falling short.
    """
    tail, needed = math.exp(-1 / scale), np.arange(1, bound + 1)
    before = -np.log1p(-np.exp(-needed / scale) / (1 + tail))
    after = math.log1p(tail) + (bound - needed + 1) / scale
    return float((after / before).max() - 1)


def _hazard(updates: int, delta: float) -> float:
    """Return the bound that a sum of exponential variables exceeds with probability delta at most.

    It exceeds g where a Poisson variable of mean g is below `updates`.
    """

    def tail(hazard: float) -> float:
        terms = (n * math.log(hazard) - hazard - math.lgamma(n + 1) for n in range(updates))
        return math.fsum(map(math.exp, terms))

    low, high = 0.0, float(updates)
    while tail(high) > delta * _ROUNDED:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > delta * _ROUNDED else (low, middle)
    return high
