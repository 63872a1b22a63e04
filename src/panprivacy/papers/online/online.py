"""The base class of online algorithms: counters that answer together, and their sizes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import positive_fraction, positive_integer
from panprivacy.papers.online.counter_array import CounterArray
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Epsilon, Guarantee, Ledger, format_rounded_up
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.running.stepwise.step_counter import StepCounter
from panprivacy.tables.planning.request import LEAST_EPSILON, MOST_EPSILON

MOST_COUNTERS = 1 << 24
MOST_HORIZON = 1 << 40
MOST_ANSWERS = 1 << 24
"""Maximum number of answers of one counter, so that errors can be predicted in seconds."""


class Online(StepCounter[CounterArray]):
    """An algorithm that decides at every step by many running counts.

    Args:
        counters: number of counters.
        horizon: maximum number of steps.
        every: after how many steps all counters answer.
        epsilon: the loss, in nats.
        affected: how many counters a neighbour changes, each by one event.
        open_steps: whether events are counted between two answers.
        sizes: what else the public front of a state has.
        ledger: budget shared with others; None for one of its own.
        coins: source of all randomness; None for the operating system's.
    """

    __slots__ = ("_each", "_epsilon", "_open_steps", "_sizes")

    def __init__(
        self,
        counters: int,
        horizon: int,
        every: int,
        epsilon: Epsilon,
        *,
        affected: int,
        open_steps: bool,
        sizes: dict[str, Any],
        ledger: Ledger | None,
        coins: Coins | None,
    ) -> None:
        self._epsilon = positive_fraction(epsilon=epsilon)
        if not LEAST_EPSILON <= self._epsilon <= MOST_EPSILON:
            told = f"from {float(LEAST_EPSILON):.6f} to {MOST_EPSILON:,}"
            message = f"epsilon must be {told}: most counts need 0.1 to 10"
            raise PlanError(message)
        if -(-horizon // every) > MOST_ANSWERS:
            message = f"a counter has at most {MOST_ANSWERS:,} answers: ask for fewer steps, or "
            message += "for more of them between two answers"
            raise PlanError(message)
        self._each, self._open_steps = self._epsilon / affected, open_steps
        if horizon > (1 << 54) * min(self._each, Fraction(1)):
            message = "sums and their noise must fit into 64 bits: ask for fewer steps or for "
            message += "more epsilon"
            raise PlanError(message)
        self._sizes = {"n": counters, "horizon": horizon, "every": every, **sizes}
        super().__init__(self._epsilon, ledger, coins)

    @property
    def n(self) -> int:
        """Number of counters, experts or elements."""
        return int(self._sizes["n"])

    @property
    def horizon(self) -> int:
        """Maximum number of steps."""
        return int(self._sizes["horizon"])

    @property
    def every(self) -> int:
        """Number of steps between two answers of all counters."""
        return int(self._sizes["every"])

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of each event."""
        return Guarantee(
            self._epsilon,
            adjacency="event",
            conditions=self._conditions,
            crash=self.crash_cost(self._epsilon, open_steps=self._open_steps),
            crash_again=self._epsilon,
        )

    @property
    def _conditions(self) -> tuple[str, ...]:
        return ("what is hidden is one event, not all events of a user",)

    def predicted_error(self) -> float:
        """Return the root of the mean over all answers of the squared error of a count's noise."""
        return float(np.sqrt(self._now.forest.variances().mean()))

    def _new(self) -> CounterArray:
        sizes = self.n, self.horizon, self.every
        return CounterArray(*sizes, self._each, self._coins, open_steps=self._open_steps)

    @property
    def _public(self) -> dict[str, Any]:
        return {"sizes": self._sizes, "request": {"epsilon": str(self._epsilon)}}

    def _numbers(self, given: ArrayLike, least: int) -> NDArray[np.int64]:
        """Return a copy of numbers of counters, to be wiped.

        Raises:
            InputError: they are no row of whole numbers, or one is out of range.
        """
        try:
            taken = np.asarray(given)
        except ValueError:  # rows of several lengths
            taken = np.empty((0, 0))
        if taken.ndim != 1 or (taken.size and taken.dtype.kind not in "iu"):
            message = "say which by whole numbers, in one row of integers"
            raise InputError(message)
        outside = (taken < least) | (taken >= self.n)
        if outside.any():
            none = ", or -1 for none" if least < 0 else ""
            message = f"each is a whole number, 0 to {self.n - 1:,}{none}"
            raise InputError(message, row=int(outside.argmax()) + 1)
        numbers = np.array(taken, np.int64)
        if isinstance(given, (list, tuple)):  # else it is the caller's own
            wipe(taken)
        return numbers

    def __repr__(self) -> str:
        return f"<{type(self).__name__} n={self.n:,} epsilon={format_rounded_up(self._epsilon)}>"


def sizes_of(n: object, horizon: object) -> tuple[int, int]:
    """Read how many counters and how many steps there are.

    Raises:
        PlanError: one is out of range.
    """
    return positive_integer(MOST_COUNTERS, n=n), positive_integer(MOST_HORIZON, horizon=horizon)
