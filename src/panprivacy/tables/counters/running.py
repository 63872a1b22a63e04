"""The state of running counts between two steps: memory, earlier steps, last answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

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

    def interval(self, confidence: float, *, signed: bool = False) -> tuple[float, float]:
        """Return both ends of the interval that holds the truth so often.

        Args:
            confidence: how often.
            signed: whether the truth, and what the answer omits, may be below 0.
        """
        reach = self.reach(confidence)
        if signed:
            return self.value - reach - self.hidden, self.value + reach + self.hidden
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


class RunningState:
    """The state of running counts between two steps, and what is public beside it.

    It belongs to one thread at a time. Its public numbers are how many steps came before its
    memory, the answer after these steps, and the last answer.

    Args:
        mechanism: mechanism of the counts.
        coins: source of all randomness.
        known: float64, the public numbers, changed in place; zeros for new counts.
        memory: to go on with, changed in place; None for that of new counts.
        horizon: maximum number of steps; None for that of the mechanism.
        every: number of steps from one answer to the next.
    """

    __slots__ = ("_coins", "_known", "_memory", "_open", "every", "horizon", "mechanism")

    spreads: ClassVar[slice]
    """The numbers of an answer that are never negative: its variance, and what else it may omit."""

    def __init__(
        self,
        mechanism: Mechanism,
        coins: Coins,
        known: Floats,
        *,
        memory: CounterState | None = None,
        horizon: int | None = None,
        every: int = 1,
    ) -> None:
        self.mechanism, self._coins, self._known = mechanism, coins, known
        self.horizon = mechanism.horizon if horizon is None else horizon
        self.every, self._open = every, 0
        self._memory = mechanism.initial(coins) if memory is None else memory

    @property
    def tick(self) -> int:
        """Number of completed steps.

        It is derived from the memory: an interrupt between the two must not allow steps for which
        no node with noise remains.
        """
        return self.answered + self._open

    @property
    def answered(self) -> int:
        """The step after which the last answer was given."""
        return self.start + self._memory.tick * self.every

    @property
    def start(self) -> int:
        """Number of steps before the start of the current memory."""
        return int(self._known[0])

    @property
    def left(self) -> int:
        """Number of steps that remain."""
        return self.horizon - self.tick

    def rerandomise(self) -> None:
        """Add fresh noise to the state after an announced intrusion."""
        self.mechanism.rerandomise(self._memory, self._coins)

    def restart(self, tick: int, before: Sequence[float] | None = None) -> None:
        """Continue at a later step with a new memory, on top of an answer.

        The outputs since this memory was stored are hidden by noise that is gone. A second output
        of the same nodes would reveal them twice, so it never happens.

        Args:
            tick: the number of completed steps.
            before: the published sum of these steps; None for the last answer.
        """
        newborn = self.mechanism.initial(self._coins)
        self._memory.cells[:], self._memory.told[:] = newborn.cells, newborn.told
        self._memory.tick = self._open = 0
        wipe(newborn.cells)
        self._known[0], self._before[:] = tick, self._last if before is None else before

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
        told, known = self._numbers(body)
        start, answers = float(known[0]), known[1:].reshape(2, -1)
        spreads = self.mechanism.spreads(told), answers[:, self.spreads]
        possible = np.isfinite(told).all() and np.isfinite(known).all() and start.is_integer()
        possible = possible and not any((one < 0).any() for one in spreads)
        if not possible or not 0 <= start <= tick <= self.horizon:
            message = "the state is damaged: no such state can come about"
            raise InputError(message)

    def unpack(self, tick: int, body: memoryview) -> None:
        """Continue from the body of `packed()` after `tick` steps, once `check` has accepted it."""
        memory = self._memory
        cells = np.frombuffer(body, np.int64, count=memory.cells.size)
        memory.cells[:] = cells.reshape(memory.cells.shape)
        memory.told[:], self._known[:] = self._numbers(body)
        memory.tick, self._open = divmod(tick - self.start, self.every)

    def _advance(
        self, amounts: Integers, value: float | Floats, variance: float, fourth: float
    ) -> StepAnswers:
        """Take in what is added until each of some answers; the answers, on top of an earlier one.

        Args:
            amounts: as the mechanism takes them.
            value: of the earlier answer.
            variance: of its noise.
            fourth: the fourth cumulant of its noise.
        """
        found = self.mechanism.run(self._memory, amounts, self._coins)
        return StepAnswers(
            found.values + value, found.variances + variance, found.fourths + fourth, found.released
        )

    @property
    def _before(self) -> Floats:
        """The answer after the steps before this memory, in place."""
        return self._known[1 : (self._known.size + 1) // 2]

    @property
    def _last(self) -> Floats:
        """The last answer, in place."""
        return self._known[(self._known.size + 1) // 2 :]

    def _numbers(self, body: memoryview) -> tuple[Floats, Floats]:
        """Return the numbers behind the cells: those of the memory, and those beside it."""
        told = self._memory.told
        numbers = np.frombuffer(body, np.float64, offset=self._memory.cells.nbytes)
        return numbers[: told.size].reshape(told.shape), numbers[told.size :]


KNOWN = 1 + 2 * len(Sum._fields)
"""Public numbers: how many steps came before, their `Sum`, and the last one."""


class Running(RunningState):
    """One running count and its state.

    Args:
        mechanism: mechanism of the count.
        coins: source of all randomness.
        memory: to go on with, changed in place; None for that of a new count.
        known: float64[11], what is public beside it, changed in place: how many steps came before
            this memory, their `Sum`, and that of all steps; None for a new count.
    """

    __slots__ = ()

    spreads = slice(1, None)

    def __init__(
        self,
        mechanism: Mechanism,
        coins: Coins,
        memory: CounterState | None = None,
        known: Floats | None = None,
    ) -> None:
        numbers = np.zeros(KNOWN) if known is None else known
        super().__init__(mechanism, coins, numbers, memory=memory)

    @property
    def last(self) -> Sum:
        """The answer of the last step."""
        return Sum(*self._last.tolist())

    def run(self, amounts: Integers) -> StepAnswers:
        """Take in steps, each with what it adds, and answer at the end of each."""
        before = Sum(*self._before.tolist())
        answers = self._advance(amounts, before.value, before.variance, before.fourth)
        self._last[:] = (
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
