"""The state of a histogram: for each bin the open nodes of a tree of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.counters.mechanism import CounterState, Floats, Integers, StepAnswers
from panprivacy.tables.counters.running import RunningState

_SPREADS = 2
"""Public numbers beside the answers: the variance and the fourth cumulant of their noise."""

_ROWS = 5
"""Of what a tree knows of each level."""


class RunningBins(RunningState):
    """The running count of each bin.

    Its public numbers are the number of steps before this memory, and twice the variance, the
    fourth cumulant and the count of each bin: of the steps before, and of all steps.
    """

    __slots__ = ()

    spreads = slice(_SPREADS)

    @property
    def forest(self) -> Forest:
        """The mechanism: a tree of steps for each bin."""
        return cast("Forest", self.mechanism)

    @property
    def variance(self) -> float:
        """Variance of the noise of each bin after the last step."""
        return float(self._last[0])

    @property
    def fourth(self) -> float:
        """Fourth cumulant of that noise."""
        return float(self._last[1])

    @property
    def values(self) -> Floats:
        """The count of each bin after the last step, float64[bins]; a copy."""
        return self._last[_SPREADS:].copy()

    def add(self, counts: Integers) -> None:
        """Count events of the open step, int64[bins]."""
        self.forest.add_all(self._memory, counts)

    def end_step(self) -> StepAnswers:
        """End the open step, and answer for each bin."""
        before = self._before
        nothing = np.zeros((self.forest.trees, 1), np.int64)
        answers = self._advance(nothing, before[_SPREADS:, None], *before[:_SPREADS])
        self._last[:_SPREADS] = answers.variances[-1], answers.fourths[-1]
        self._last[_SPREADS:] = answers.values[:, -1]
        return answers


@dataclass(frozen=True, slots=True)
class BinNodes:
    """The open nodes of all bins, and public numbers.

    A table is int64: the sum of the open node of each bin and level, the bits of
    `CounterState.told`, and those of what `RunningBins` knows. The number of steps is not in it.

    Args:
        forest: the mechanism, with a tree for each bin.
    """

    forest: Forest

    is_presence = False
    says = "noisy sums of the events of a bin, one for each level of a tree of steps"

    @property
    def cells(self) -> int:
        """The number of sums."""
        return self.forest.trees * len(self.forest.radices)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return 8 * ((1 + _ROWS) * self.cells + 1 + 2 * (_SPREADS + self.forest.trees))

    def initial(self, coins: Coins) -> Table:
        """Return a table that has counted nothing."""
        table, newborn = np.zeros(self.nbytes // 8, np.int64), self.forest.initial(coins)
        cells, told, _ = self._parts(table)
        cells[:], told[:] = newborn.cells, newborn.told
        wipe(newborn.cells)
        return table

    def is_table(self, table: Table) -> bool:
        """Return whether every public number is one."""
        _, told, known = self._parts(table)
        return bool(np.isfinite(told).all() and np.isfinite(known).all())

    def fresh_noise(self, coins: Coins, table: Table, tick: int) -> Table:
        """Return the noise that an announced intrusion adds to every open node."""
        (bins,) = self.sums(table, tick, coins)
        noise = np.zeros(self.nbytes // 8, np.int64)
        cells, told, _ = self._parts(noise)
        self.forest.rerandomise(CounterState(cells, told, tick - bins.start), coins)
        return noise

    def rerandomise(
        self,
        table: Table,
        noise: Table,
        tick: int,  # noqa: ARG002 - the noise is of this step
        coins: Coins,  # noqa: ARG002 - and drawn
    ) -> None:
        """Add fresh noise to the sums, and what is known of it to what is known of them."""
        (cells, told, _), (drawn, of_drawn, _) = self._parts(table), self._parts(noise)
        cells += drawn
        told += of_drawn

    def sums(self, table: Table, tick: int, coins: Coins) -> list[RunningBins]:
        """Return the counts of all bins, as one, in place, after so many steps."""
        cells, told, known = self._parts(table)
        begun = int(known[0]) if np.isfinite(known[0]) else 0  # else `check` refuses it
        memory = CounterState(cells, told, tick - begun)
        return [RunningBins(self.forest, coins, known, memory=memory)]

    def restart(self, table: Table, tick: int, coins: Coins) -> None:
        """Restart at a later step with new nodes, on top of the last answers."""
        (bins,) = self.sums(table, tick, coins)
        bins.restart(tick)

    def picture_values(self, table: Table) -> Integers:
        """Return the sum of the open nodes of the lowest level of each bin."""
        cells, _, _ = self._parts(table)
        return cells[:, 0].copy()

    def _parts(self, table: Table) -> tuple[Integers, Floats, Floats]:
        """Sums, what has left, and what is known, in place."""
        trees, levels = self.forest.trees, len(self.forest.radices)
        numbers = table[self.cells :].view(np.float64)
        told = numbers[: _ROWS * self.cells].reshape(trees, _ROWS, levels)
        return table[: self.cells].reshape(trees, levels), told, numbers[_ROWS * self.cells :]
