"""Plans of counters whose law is larger on some blocks of values."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.cells.law import Law, on_blocks
from panprivacy.planning.blocks import count_range
from panprivacy.statistics.plan import CountPlan, UserStates
from panprivacy.statistics.release import Name


class BlockPlan(CountPlan):
    """The plan of a count of cells with a block law."""

    __slots__ = ()

    chosen: DifferenceSet

    @property
    @abstractmethod
    def block(self) -> int:
        """The length of a block."""

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_blocks(self.chosen, self.block, self.split.budget.state)


class SoftPlan(BlockPlan):
    """The plan of a count of users beyond a soft threshold: those in between count in part."""

    __slots__ = ()

    @property
    @abstractmethod
    def low(self) -> int:
        """A user counts from this state on."""

    @property
    def high(self) -> int:
        """A user counts in full from this state on, which is at most the threshold."""
        return 2 * self.low

    def sensitivity(self, epoch: int) -> int:
        """By how much a user's cell may move the count: after an intrusion it counts for 0 or 1."""
        return 1 if epoch else count_range(self.chosen)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The soft count of users: each counts as far as he is on the way from `low` to `high`."""
        return float(np.clip(states / self.low - 1, 0, 1).sum())

    def alike(self, answer: float) -> tuple[float, int]:
        """Users that count in full."""
        return answer, self.high
