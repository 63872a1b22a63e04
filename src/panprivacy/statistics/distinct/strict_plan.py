"""The plan of a `DistinctCount` of a strict stream, in which a user is in or out."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

from panprivacy.cells.difference_sets import point
from panprivacy.cells.parity import ParityCells
from panprivacy.cells.protocol import Deltas
from panprivacy.planning.regret import least_regret
from panprivacy.planning.request import Request
from panprivacy.statistics.deltas import refuse_moves
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.statistics.distinct.net_plan import LeavingPlan, best_counters


@dataclass(frozen=True, slots=True)
class StrictDistinctPlan(LeavingPlan):
    """The parameters of a `DistinctCount` of users that are in: parities."""

    checks = ("exact/test_strict", "statistical/test_strict")
    range_of_states = 0, 1

    @property
    def table(self) -> ParityCells:
        """The table's cells."""
        return ParityCells(self.cells, self.split.budget.state)

    @property
    def counted(self) -> tuple[Fraction, Fraction]:
        """How often a cell is a one: with an even number of users, and with an odd one."""
        noise = self.table.noise
        return noise, 1 - noise

    def check_deltas(self, deltas: Deltas) -> None:
        """Users come and go, one at a time."""
        refuse_moves(deltas)

    def model(self, epoch: int) -> LevelModel:
        """What counts that are released after `epoch` announced intrusions say.

        With `x` users in a cell on average the number of them is odd with probability
        `(1 - exp(-2 x)) / 2`.
        """
        return LevelModel(
            self.levels,
            self.cells_per_level,
            contrast=float(self.table.contrast(epoch)) / 2,
            full=1 / 2,
            decay=2,
            noise_variance=self.split.noise_variance,
        )


@functools.lru_cache(maxsize=256)
def plan_strict_distinct(
    expected: tuple[int, int], memory: int, request: Request
) -> StrictDistinctPlan:
    """Plan a `DistinctCount` of a strict stream within `memory` bytes of table."""

    def design(levels: int, cells_per_level: int) -> StrictDistinctPlan:
        split, _ = best_counters(request, cells_per_level, (point(2),))
        return StrictDistinctPlan(expected, levels, cells_per_level, request, split)

    return least_regret(design, expected, 8 * memory)
