"""A running count by the square root of the matrix of partial sums, with Gaussian noise.

With `f_k = binom(2k, k)/4**k`, whose power series is `(1-z)**(-1/2)`, each step adds
`f_0, f_1, ...` to its own coordinate and to all later ones. The coordinates have initial noise
`z`, and each leaves at the end of its step with noise `z'` of the same law. An answer is the
combination of those that have left that has the sum of all steps as its mean. The `f_k` are rounded
to whole numbers, and the combination inverts exactly these.

Privacy: until a look, what has left and what is kept is `F x + z`, with more noise on what has
left; after it, what leaves adds `F x` of the later steps and `z'`. So both events before and after
the look are hidden as by the Gaussian mechanism on `F x`: rho is `|f|**2 bound**2/(2 variance)`.
[docs/guarantees/continual.md]

Reference: Fichtenberger, Henzinger, Upadhyay, "Constant matters: Fine-grained complexity of
differentially private continual observation", 2023, for the factorisation without a look.
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
from panprivacy.tables.counters.mechanism import (
    CounterState,
    Floats,
    Integers,
    Mechanism,
    StepAnswers,
)

UNIT: Final = 1 << 12
"""Coefficients are whole multiples of a 4,096th."""
MOST_BOUND: Final = 1_000
"""Maximum bound: sums of products by Fourier transforms stay exact below it."""

_LEFT, _VARIANCE = range(2)
"""The rows of `told`: the output of each coordinate, and the variance of its noise."""


@dataclass(frozen=True, slots=True)
class Factorised(Mechanism):
    """The parameters of a factorised count.

    Args:
        horizon: number of steps; there are as many coordinates.
        rho: the loss for one event, of zero-concentrated differential privacy.
        bound: the most that an event adds.
    """

    horizon: int
    rho: Fraction
    bound: int = 1
    estimates: ClassVar[int] = 1

    @property
    def grain(self) -> float:
        """Grain of the coordinates."""
        return 1 / UNIT

    @property
    def variance(self) -> int:
        """Variance of the noise on a coordinate, the same for initial noise and output noise."""
        return math.ceil(Fraction(_squares(self.horizon) * self.bound**2) / (2 * self.rho))

    def initial(self, coins: Coins) -> CounterState:
        """Draw the initial noise of every coordinate."""
        memory = CounterState(np.zeros(self.horizon, np.int64), np.zeros((2, self.horizon)))
        self.rerandomise(memory, coins)
        return memory

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Take in steps, and answer at the end of each."""
        start, end = memory.tick, memory.tick + len(amounts)
        noise = coins.discrete_gaussian(Fraction(self.variance), len(amounts))
        kept, told = memory.cells, memory.told
        added = _added(amounts, strategy(self.horizon)[: self.horizon - start])
        kept[start:] += added
        wipe(added)
        noise += kept[start:end]
        kept[start:end] = 0
        told[_LEFT, start:end] = noise
        told[_VARIANCE, start:end] += self.variance
        memory.tick = end
        weights = combination(self.horizon)[:end]
        values = _combined(weights, told[_LEFT, :end], start)
        variances = _combined(weights**2, told[_VARIANCE, :end], start)
        return StepAnswers(values, variances, np.zeros(len(amounts)), noise)

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Add noise of the initial law to every coordinate without an output so far."""
        noise = coins.discrete_gaussian(Fraction(self.variance), self.horizon - memory.tick)
        memory.cells[memory.tick :] += noise
        memory.told[_VARIANCE, memory.tick :] += self.variance
        wipe(noise)


@functools.lru_cache(maxsize=4)
def strategy(horizon: int) -> Integers:
    """Return the weight of a step in its own coordinate and the later ones, in units; read-only."""
    ratios = 1 - 0.5 / np.arange(1, horizon)
    exact = np.cumprod(np.concatenate([[1.0], ratios]))
    rounded = np.rint(UNIT * exact).astype(np.int64)
    rounded.flags.writeable = False
    return rounded


@functools.lru_cache(maxsize=4)
def _squares(horizon: int) -> int:
    """Return the sum of squares of those weights, in squared units."""
    return sum(one**2 for one in strategy(horizon).tolist())


@functools.lru_cache(maxsize=4)
def combination(horizon: int) -> Floats:
    """Return the weights of the outputs, latest first: the power series of `1/((1-z) F(z))`.

    The array is read-only.
    """
    series = np.zeros(1)
    series[0] = 1 / UNIT
    given = np.diff(strategy(horizon), prepend=0).astype(float)  # of (1-z) F(z)
    while len(series) < horizon:  # Newton: each round doubles the number of right terms
        length = min(2 * len(series), horizon)
        product = _convolved(given[:length], series, length)
        product[0] -= 2
        series = -_convolved(product, series, length)
    series.flags.writeable = False
    return series


def _convolved(first: Floats, second: Floats, length: int) -> Floats:
    """Return the first terms of a product of power series."""
    size = 1 << (len(first) + len(second) - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second, size), size)
    return product[:length]


def _added(amounts: Integers, coefficients: Integers) -> Integers:
    """Return the exact contribution of some steps to the coordinates from the first of them on."""
    if len(amounts) == 1:
        return coefficients * amounts[0]
    size = 1 << (len(amounts) + len(coefficients) - 1).bit_length()
    first, second = (np.fft.rfft(one, size) for one in (amounts, coefficients))
    first *= second
    product = np.fft.irfft(first, size)
    np.rint(product, out=product)
    added = product[: len(coefficients)].astype(np.int64)
    wipe(first, product)
    return added


def _combined(weights: Floats, left: Floats, start: int) -> Floats:
    """Return the combination of the outputs, at the end of each step from `start` on."""
    if len(left) == start + 1:
        return np.array([weights @ left[::-1]])
    return _convolved(weights, left, len(left))[start:]
