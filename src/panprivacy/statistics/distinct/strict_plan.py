"""The plan of a `DistinctCount` of a strict stream, in which a user is in or out."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from panprivacy.statistics.deltas import refuse_moves
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.statistics.distinct.net_plan import LeavingPlan
from panprivacy.tables.cells.difference_sets import point
from panprivacy.tables.cells.parity import ParityCells
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.planning.blocks import best_counters
from panprivacy.tables.planning.regret import Designs
from panprivacy.tables.planning.request import Request


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
        """The probability that a cell is a one: for an even number of users, and for an odd one."""
        noise = self.table.noise
        return noise, 1 - noise

    def check_deltas(self, deltas: Deltas) -> None:
        """Users come and go, one at a time."""
        refuse_moves(deltas)

    def model(self, epoch: int) -> LevelModel:
        """Return the estimate model of counts released after `epoch` announced intrusions.

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
    return _designs(expected, request).best(8 * memory)


@functools.lru_cache(maxsize=8)
def _designs(expected: tuple[int, int], request: Request) -> Designs[StrictDistinctPlan]:
    """The designs for any memory."""

    def made(levels: int, cells: Sequence[int]) -> list[StrictDistinctPlan]:
        spent = zip(cells, best_counters(request, cells, (point(2),)), strict=True)
        return [
            StrictDistinctPlan(expected, levels, each, request, one) for each, (one, _) in spent
        ]

    return Designs(made, expected)
