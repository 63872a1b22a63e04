"""The interface of running counts: initial state, steps, and re-randomisation.

A mechanism is public and frozen. All its state between two steps is its `CounterState`; an
intruder's view of it, together with all outputs, has privacy loss epsilon (or rho) for one event
at most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(slots=True)
class CounterState:
    """The complete state between two steps.

    Args:
        cells: int64, what has been counted, with noise; the one part that is not public.
        told: float64, the outputs that later answers need, and their error bounds.
        tick: number of completed steps.
    """

    cells: Integers
    told: Floats
    tick: int = 0


@dataclass(frozen=True, slots=True)
class StepAnswers:
    """The outputs at the end of each of some steps.

    Args:
        values: float64[n], the estimates of the sum of all steps so far.
        variances: float64[n], of their noise; it depends on public numbers alone.
        fourths: float64[n], the fourth cumulants of the noise.
        released: the noisy whole numbers in the output, which determine the values.
    """

    values: Floats
    variances: Floats
    fourths: Floats
    released: Integers


class Mechanism(ABC):
    """The public parameters of a running count, and what it does.

    Args:
        horizon: number of steps.
        bound: the most that one event adds; two neighbouring streams differ in one step, by it.
    """

    __slots__ = ()

    horizon: int
    bound: int
    estimates: ClassVar[int] = 0
    """Number of the first rows of `told` that may be negative: the others are no estimates."""

    @property
    def grain(self) -> float:
        """Upper bound on the spacing of the values of an answer's noise."""
        return 1.0

    @abstractmethod
    def initial(self, coins: Coins) -> CounterState:
        """Return the memory before the first step."""

    @abstractmethod
    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Take in steps, one after another, and answer at the end of each.

        All noise is drawn before the memory changes, so an error changes nothing.

        Args:
            memory: changed in place.
            amounts: amount that each step adds.
            coins: source of randomness.
        """

    @abstractmethod
    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Add fresh noise to the state after an intrusion, so that one more is covered.

        It costs no epsilon: an event before the look is hidden by the noise of before, one after
        it by this one. The error of what is still open grows.
        """

    def add(self, memory: CounterState, amount: int) -> None:
        """Count events of an unfinished step; only if intrusions within a step are covered."""
        raise NotImplementedError

    def spreads(self, told: Floats) -> Floats:
        """Return the part of `told` that is never negative: all but the estimates."""
        return told[self.estimates :]

    def hidden(self, memory: CounterState) -> float:  # noqa: ARG002
        """Return an upper bound on the part of the sum that the last answer may omit."""
        return 0.0


class Silent:
    """Coins without noise, for quantities that do not depend on it, such as error bounds."""

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:  # noqa: ARG002
        """Return zeros."""
        return np.zeros(size, np.uint8)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:  # noqa: ARG002
        """Return zeros."""
        return np.zeros(size, np.uint32)

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:  # noqa: ARG002
        """Return zeros."""
        return np.zeros(size, np.int64)

    def discrete_gaussian(self, variance: Fraction, size: int) -> Integers:  # noqa: ARG002
        """Return zeros."""
        return np.zeros(size, np.int64)

    def key(self, nbytes: int) -> bytes:
        """Return zeros."""
        return bytes(nbytes)


def variances(mechanism: Mechanism, steps: int | None = None) -> Floats:
    """Return the variance of the answer after each step, float64[steps].

    Args:
        mechanism: mechanism of the count.
        steps: number of steps; None for all.
    """
    silent = Silent()
    count = mechanism.horizon if steps is None else steps
    return mechanism.run(mechanism.initial(silent), np.zeros(count, np.int64), silent).variances
