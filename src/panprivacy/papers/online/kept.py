"""The state of many running counts between two steps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from panprivacy.errors import InputError
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.counters.mechanism import Floats, Integers, StepAnswers
from panprivacy.tables.counters.running import Sum

_SPREADS = 2
"""Public numbers of a `PublicAnswers` beside its values: the variance and the fourth cumulant."""


class PublicAnswers:
    """The answers of one moment, all of it public.

    Args:
        numbers: float64[2 + counters], changed in place: variance and fourth cumulant of the noise,
            which all counters share, and the values.
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: Floats) -> None:
        self.numbers = numbers

    @property
    def values(self) -> Floats:
        """The answer of each counter."""
        return self.numbers[_SPREADS:]

    def reach(self, confidence: float) -> float:
        """Return the half-width of the confidence interval of an answer."""
        variance, fourth = self.numbers[:_SPREADS].tolist()
        return Sum(0.0, variance, fourth, grain=1.0).reach(confidence)


class Kept:
    """The state of many running counts; it belongs to one thread at a time.

    Args:
        counters: number of counters.
        horizon: number of steps.
        every: after how many steps all counters answer.
        epsilon: the loss for one event.
        open_steps: whether an intrusion is possible between two answers, so that `count` can count.
        coins: source of all randomness.
    """

    __slots__ = (
        "_before", "_coins", "_memory", "_open", "every", "forest", "horizon", "last", "start",
    )  # fmt: skip

    def __init__(
        self,
        counters: int,
        horizon: int,
        every: int,
        epsilon: Fraction,
        coins: Coins,
        *,
        open_steps: bool,
    ) -> None:
        answers = -(-horizon // every)
        self.forest = Forest.planted(counters, answers, epsilon, open_steps=open_steps)
        self.horizon, self.every, self._coins = horizon, every, coins
        self._memory = self.forest.initial(coins)
        self._before, self.last = (PublicAnswers(np.zeros(_SPREADS + counters)) for _ in range(2))
        self.start = self._open = 0

    @property
    def tick(self) -> int:
        """Number of completed steps.

        It is derived from the memory: an interrupt between the two must not allow steps for which
        no node with noise remains.
        """
        return self.answered + self._open

    @property
    def left(self) -> int:
        """Number of steps that remain."""
        return self.horizon - self.tick

    @property
    def answered(self) -> int:
        """The step after which the last answers were given."""
        return self.start + self._memory.tick * self.every

    @property
    def due(self) -> int:
        """Number of steps until the next answers."""
        return self.every - self._open

    def count(self, events: Integers) -> None:
        """Count events, each the number of its counter."""
        self.forest.count(self._memory, events)

    def wait(self, steps: int) -> None:
        """End steps before the one after which answers are due."""
        self._open += steps

    def answer(self, amounts: Integers) -> StepAnswers:
        """End steps up to the next answers, and as many more as end with answers; the answers.

        Args:
            amounts: what each counter rises by until each of these answers, beside what was
                counted: int64[counters, answers]; wiped.
        """
        try:
            found = self.forest.run(self._memory, amounts, self._coins)
        finally:
            wipe(amounts)
        self._open = 0
        before = self._before.numbers
        answers = StepAnswers(
            found.values + before[_SPREADS:, None],
            found.variances + before[0],
            found.fourths + before[1],
            found.released,
        )
        self.last.numbers[:_SPREADS] = answers.variances[-1], answers.fourths[-1]
        self.last.values[:] = answers.values[:, -1]
        return answers

    def rerandomise(self) -> None:
        """Add fresh noise to the state after an announced intrusion."""
        self.forest.rerandomise(self._memory, self._coins)

    def restart(self, tick: int) -> None:
        """Continue at a later step with a new memory, on top of the last answers."""
        newborn = self.forest.initial(self._coins)
        self._memory.cells[:], self._memory.told[:] = newborn.cells, newborn.told
        wipe(newborn.cells)
        self._memory.tick, self.start, self._open = 0, tick, 0
        self._before.numbers[:] = self.last.numbers

    def forget(self) -> None:
        """Wipe the state."""
        wipe(self._memory.cells)

    @property
    def nbytes(self) -> int:
        """The size of `packed()`, which nothing changes."""
        memory, told = self._memory, self.last.numbers
        return memory.cells.nbytes + memory.told.nbytes + 8 + 2 * told.nbytes

    def packed(self) -> bytes:
        """Return the state as bytes, without the number of steps."""
        numbers = [float(self.start)], self._before.numbers, self.last.numbers
        told = np.concatenate([self._memory.told.ravel(), *numbers])
        return self._memory.cells.tobytes() + told.tobytes()

    def check(self, tick: int, body: memoryview) -> None:
        """Refuse a body that `packed()` cannot have returned after `tick` steps.

        Raises:
            InputError: nothing like it can come about.
        """
        told, start, sums = self._split(body)
        spreads = told[:, self.forest.estimates :], sums[:, :_SPREADS]
        finite = bool(np.isfinite(told).all() and np.isfinite(sums).all())
        possible = finite and start.is_integer() and 0 <= start <= tick <= self.horizon
        if not possible or any((one < 0).any() for one in spreads):
            message = "the state is damaged: no such state can come about"
            raise InputError(message)

    def unpack(self, tick: int, body: memoryview) -> None:
        """Continue from the body of `packed()` after `tick` steps, once `check` has accepted it."""
        told, start, sums = self._split(body)
        cells = self._memory.cells
        cells[:] = np.frombuffer(body, np.int64, count=cells.size).reshape(cells.shape)
        self._memory.told[:] = told
        self._before.numbers[:], self.last.numbers[:] = sums
        self.start = int(start)
        self._memory.tick, self._open = divmod(tick - self.start, self.every)

    def _split(self, body: memoryview) -> tuple[Floats, float, Floats]:
        """Return the parts behind the cells: the nodes' answers, the first step, and both sums."""
        memory = self._memory
        numbers = np.frombuffer(body, np.float64, offset=memory.cells.nbytes)
        told, rest = np.split(numbers, [memory.told.size])
        return told.reshape(memory.told.shape), float(rest[0]), rest[1:].reshape(2, -1)
