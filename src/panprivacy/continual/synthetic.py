"""A synthetic running count: whole numbers that never fall, and rise as a count can."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.continual.counter import Counter
from panprivacy.errors import PlanError
from panprivacy.ground.kernels import kernel


class Synthetic:
    """The answers of a counter as whole numbers that never fall and rise by at most `bound` a step.

    >>> import panprivacy as pp
    >>> visits = pp.continual.Synthetic(pp.continual.Counter(horizon=100, epsilon=1.0))
    >>> before = visits.step(1)
    >>> visits.step(0) in (before, before + 1)
    True

    Guarantee: that of the counter. It reads nothing but the answers of the counter.

    Accuracy: after each step it is off by at most the largest error of the counter so far, rounded
    to whole numbers: it follows the answers as fast as a count could.
    [tests/unit/test_continual.py]

    Args:
        counter: what it follows, from here on.

    Raises:
        PlanError: it is no counter, one whose steps are open, which may rise by any number, or a
            signed one, which may fall.

    Reference: Naor, "Foundations of Privacy", lecture 10, slide 22.
    """

    __slots__ = ("_value", "counter")

    def __init__(self, counter: Counter) -> None:
        if not isinstance(counter, Counter) or counter.open_steps or counter.signed:
            message = "what is followed must be a Counter, made without open_steps and signed"
            raise PlanError(message)
        self.counter, self._value = counter, max(round(counter.value), 0)

    @property
    def value(self) -> int:
        """The number after the last step."""
        return self._value

    def step(self, amount: int) -> int:
        """Take in a step; the number after it."""
        return int(self.run([amount])[0])

    def run(self, amounts: ArrayLike) -> NDArray[np.int64]:
        """Take in many steps; the number after each, int64[n]."""
        followed = _followed(self.counter.run(amounts), self._value, self.counter.bound)
        if followed.size:
            self._value = int(followed[-1])
        return followed


@kernel("int64[::1](float64[::1], int64, int64)")
def _followed(values: NDArray[np.float64], value: int, bound: int) -> NDArray[np.int64]:
    """Step towards each value."""
    followed = np.empty(values.size, np.int64)
    for step in range(values.size):
        value += min(max(math.floor(values[step] + 0.5) - value, 0), bound)
        followed[step] = value
    return followed
