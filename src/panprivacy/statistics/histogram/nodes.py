"""The state of a histogram: for each bin the open nodes of a tree of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.statistics.running.stepwise.nodes import StepNodes
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.counters.mechanism import Floats, Integers, StepAnswers
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
class BinNodes(StepNodes[RunningBins]):
    """The open nodes of all bins, and public numbers.

    The sum of the open node of each bin and level stands first; `RunningBins` says what is known.

    Args:
        forest: the mechanism, with a tree for each bin.
    """

    forest: Forest

    says = "noisy sums of the events of a bin, one for each level of a tree of steps"

    @property
    def mechanism(self) -> Forest:
        """The tree of each bin."""
        return self.forest

    @property
    def cells(self) -> int:
        """The number of sums."""
        return self.forest.trees * len(self.forest.radices)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return 8 * ((1 + _ROWS) * self.cells + 1 + 2 * (_SPREADS + self.forest.trees))

    def sums(self, table: Table, tick: int, coins: Coins) -> list[RunningBins]:
        """Return the counts of all bins, as one."""
        memory, known = self._memory(table, tick)
        return [RunningBins(self.forest, coins, known, memory=memory)]

    def picture_values(self, table: Table) -> Integers:
        """Return the sum of the open nodes of the lowest level of each bin."""
        cells, _, _ = self._parts(table)
        return cells[:, 0].copy()

    def _parts(self, table: Table) -> tuple[Integers, Floats, Floats]:
        trees, levels = self.forest.trees, len(self.forest.radices)
        numbers = table[self.cells :].view(np.float64)
        told = numbers[: _ROWS * self.cells].reshape(trees, _ROWS, levels)
        return table[: self.cells].reshape(trees, levels), told, numbers[_ROWS * self.cells :]
