"""What every running count does: it is born, takes in steps, and survives being seen.

A mechanism is public and frozen. All that survives between two steps is its `Memory`; what an
intruder finds there, and all that has left, tells of one event no more than epsilon (or rho).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.coins import Coins

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(slots=True)
class Memory:
    """All that survives between two steps.

    Args:
        cells: int64, what has been counted, with noise; the one part that is not public.
        told: float64, what has left, as far as later answers need it, and how far it may stray.
        tick: how many steps have ended.
    """

    cells: Integers
    told: Floats
    tick: int = 0


@dataclass(frozen=True, slots=True)
class StepAnswers:
    """What left at the end of each of some steps.

    Args:
        values: float64[n], the estimates of the sum of all steps so far.
        variances: float64[n], of their noise; it depends on public numbers alone.
        fourths: float64[n], the fourth cumulants of the noise.
        released: the noised whole numbers that left, of which the values are a function.
    """

    values: Floats
    variances: Floats
    fourths: Floats
    released: Integers


class Mechanism(ABC):
    """The public parameters of a running count, and what it does.

    Args:
        horizon: how many steps there are.
        bound: the most that one event adds; two neighbouring streams differ in one step, by it.
    """

    __slots__ = ()

    horizon: int
    bound: int
    estimates: ClassVar[int] = 0
    """How many of the first rows of `told` may be negative: the others are no estimates."""

    @property
    def grain(self) -> float:
        """How far apart the values are that the noise of an answer has, at most."""
        return 1.0

    @abstractmethod
    def born(self, coins: Coins) -> Memory:
        """The memory before the first step."""

    @abstractmethod
    def run(self, memory: Memory, amounts: Integers, coins: Coins) -> StepAnswers:
        """Take in steps, one after another, and answer at the end of each.

        All noise is drawn before the memory changes, so an error changes nothing.

        Args:
            memory: changed in place.
            amounts: what each step adds.
            coins: source of randomness.
        """

    @abstractmethod
    def rerandomise(self, memory: Memory, coins: Coins) -> None:
        """Add fresh noise to what is kept, once somebody has seen it, so that it may be seen again.

        It costs no epsilon: an event before the look is hidden by the noise of before, one after
        it by this one. The error of what is still open grows.
        """

    def add(self, memory: Memory, amount: int) -> None:
        """Count events of a step that has not ended; only where it may be seen before its end."""
        raise NotImplementedError

    def hidden(self, memory: Memory) -> float:  # noqa: ARG002
        """How much of the sum the last answer may leave out, at most."""
        return 0.0


class Silent:
    """Coins without noise, for what does not depend on it: how far answers stray."""

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:  # noqa: ARG002
        """Zeros."""
        return np.zeros(size, np.uint8)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:  # noqa: ARG002
        """Zeros."""
        return np.zeros(size, np.uint32)

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:  # noqa: ARG002
        """Zeros."""
        return np.zeros(size, np.int64)

    def discrete_gaussian(self, variance: Fraction, size: int) -> Integers:  # noqa: ARG002
        """Zeros."""
        return np.zeros(size, np.int64)

    def key(self, nbytes: int) -> bytes:
        """Zeros."""
        return bytes(nbytes)


def variances(mechanism: Mechanism, steps: int | None = None) -> Floats:
    """The variance of the answer after each step, float64[steps].

    Args:
        mechanism: of the count.
        steps: how many; None for all.
    """
    silent: Any = Silent()
    count = mechanism.horizon if steps is None else steps
    return mechanism.run(mechanism.born(silent), np.zeros(count, np.int64), silent).variances
