"""A running count as it runs: its mechanism, its memory, and what was counted before it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from panprivacy.errors import InputError
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import (
    CounterState,
    Floats,
    Integers,
    Mechanism,
    StepAnswers,
)
from panprivacy.tables.decoders.intervals import Measured, noise_quantiles


class Sum(NamedTuple):
    """An answer.

    Args:
        value: the estimate.
        variance: variance of its noise.
        fourth: the fourth cumulant of its noise.
        hidden: bound on the part of the truth that it may omit.
        grain: the spacing of the values of its noise.
    """

    value: float = 0.0
    variance: float = 0.0
    fourth: float = 0.0
    hidden: float = 0.0
    grain: float = 0.0

    @property
    def measured(self) -> Measured:
        """The estimate, its standard error, and what it may leave out."""
        return Measured(self.value, math.sqrt(self.variance), self.hidden)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return both ends of the interval that holds the truth so often."""
        reach = self.reach(confidence)
        return max(self.value - reach, 0.0), max(self.value + reach + self.hidden, 0.0)

    def reach(self, confidence: float) -> float:
        """Return the half-width of the confidence interval.

        The noise counts as a normal and a Laplace part that have its variance and its fourth
        cumulant together, and the interval reaches half a grain further: that is where the next
        value of the noise begins.
        """
        share = math.sqrt(max(self.fourth, 0.0) / 3) / self.variance if self.variance else 0.0
        quantile = float(noise_quantiles(confidence, np.array(min(share, 1.0))))
        return quantile * math.sqrt(self.variance) + self.grain / 2


_PARTS = len(Sum._fields)
KNOWN = 1 + 2 * _PARTS
"""Public numbers: how many steps came before, their `Sum`, and the last one."""
_BEFORE, _LAST = slice(1, 1 + _PARTS), slice(1 + _PARTS, KNOWN)


class Running:
    """A running count and its state; it belongs to one thread at a time.

    Args:
        mechanism: mechanism of the count.
        coins: source of all randomness.
        memory: to go on with, changed in place; None for that of a new count.
        known: float64[11], what is public beside it, changed in place: how many steps came before
            this memory, what they added up to, and the last answer; None for a new count.
    """

    __slots__ = ("_coins", "_known", "_memory", "mechanism")

    def __init__(
        self,
        mechanism: Mechanism,
        coins: Coins,
        memory: CounterState | None = None,
        known: Floats | None = None,
    ) -> None:
        self.mechanism, self._coins = mechanism, coins
        self._memory = mechanism.initial(coins) if memory is None else memory
        self._known = np.zeros(KNOWN) if known is None else known

    @property
    def tick(self) -> int:
        """Number of completed steps."""
        return self.start + self._memory.tick

    @property
    def start(self) -> int:
        """Number of steps before the start of the current memory."""
        return int(self._known[0])

    @property
    def horizon(self) -> int:
        """Maximum number of steps."""
        return self.mechanism.horizon

    @property
    def left(self) -> int:
        """Number of steps that remain."""
        return self.horizon - self.tick

    @property
    def last(self) -> Sum:
        """The answer of the last step."""
        return Sum(*self._known[_LAST].tolist())

    def run(self, amounts: Integers) -> StepAnswers:
        """Take in steps, each with what it adds, and answer at the end of each."""
        found = self.mechanism.run(self._memory, amounts, self._coins)
        before = Sum(*self._known[_BEFORE].tolist())
        answers = StepAnswers(
            found.values + before.value,
            found.variances + before.variance,
            found.fourths + before.fourth,
            found.released,
        )
        self._known[_LAST] = (
            answers.values[-1],
            answers.variances[-1],
            answers.fourths[-1],
            before.hidden + self.mechanism.hidden(self._memory),
            self.mechanism.grain,
        )
        return answers

    def add(self, amount: int) -> None:
        """Count events of the open step."""
        self.mechanism.add(self._memory, amount)

    def rerandomise(self) -> None:
        """Add fresh noise to the state after an announced intrusion."""
        self.mechanism.rerandomise(self._memory, self._coins)

    def restart(self, tick: int, before: Sum | None = None) -> None:
        """Continue at a later step with a new memory, on top of an answer.

        The outputs since this memory was stored are hidden by noise that is gone. A second output
        of the same nodes would reveal them twice, so it never happens.

        Args:
            tick: the number of completed steps.
            before: the published sum of these steps; None for the last answer.
        """
        newborn = self.mechanism.initial(self._coins)
        self._memory.cells[:], self._memory.told[:] = newborn.cells, newborn.told
        self._memory.tick = 0
        wipe(newborn.cells)
        self._known[0], self._known[_BEFORE] = tick, self.last if before is None else before

    def forget(self) -> None:
        """Wipe the state."""
        wipe(self._memory.cells)

    @property
    def nbytes(self) -> int:
        """The size of `packed()`, which nothing changes."""
        return self._memory.cells.nbytes + self._memory.told.nbytes + self._known.nbytes

    def packed(self) -> bytes:
        """Return the state as bytes, without the number of steps, which is public."""
        memory = self._memory
        return memory.cells.tobytes() + memory.told.tobytes() + self._known.tobytes()

    def check(self, tick: int, body: memoryview) -> None:
        """Refuse a body that `packed()` cannot have returned after `tick` steps.

        Raises:
            InputError: nothing like it can come about.
        """
        numbers, shape = self._numbers(body), self._memory.told.shape
        told, known = np.split(numbers, [self._memory.told.size])
        start, sums = float(known[0]), known[1:].reshape(2, _PARTS)
        spreads = told.reshape(shape)[self.mechanism.estimates :], sums[:, 1:]
        possible = np.isfinite(numbers).all() and start.is_integer() and 0 <= start <= tick
        possible = possible and not any((one < 0).any() for one in spreads)
        if not possible or tick > self.mechanism.horizon:
            message = "the state is damaged: no such state can come about"
            raise InputError(message)

    def unpack(self, tick: int, body: memoryview) -> None:
        """Continue from the body of `packed()` after `tick` steps, once `check` has accepted it."""
        memory, numbers = self._memory, self._numbers(body)
        memory.cells[:] = np.frombuffer(body, np.int64, count=memory.cells.size)
        memory.told[:] = numbers[: memory.told.size].reshape(memory.told.shape)
        self._known[:] = numbers[memory.told.size :]
        memory.tick = tick - self.start

    def _numbers(self, body: memoryview) -> Floats:
        """Return the numbers behind the cells."""
        return np.frombuffer(body, np.float64, offset=self._memory.cells.nbytes)
