"""The plan of a `DistinctCount`: how many levels, and how many cells in each."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.distinct.decoder import LevelModel, deviations
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.release import Name
from panprivacy.statistics.slicing import Slicing
from panprivacy.tables.addressing import Addressing, Levelled
from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.decoders.separate import SeparateModel
from panprivacy.tables.hashing import KEY_BYTES
from panprivacy.tables.planning.bits import best_splits
from panprivacy.tables.planning.regret import WORST_ERROR, Designs, grid
from panprivacy.tables.planning.request import Request, Split


@dataclass(frozen=True, slots=True)
class LevelledPlan(CountPlan):
    """The common part of all plans that count different users.

    Args:
        expected: lowest and highest number of users the plan is good for.
        levels: number of levels.
        cells_per_level: cells of each.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    expected: tuple[int, int]
    levels: int
    cells_per_level: int
    request: Request
    split: Split

    limits = 1.0, 0.5
    unit = "users"
    measure = "the number of users"
    name = Name("", "distinct")
    key_bytes = KEY_BYTES

    @abstractmethod
    def model(self, epoch: int) -> LevelModel:
        """Return the estimate model of counts released after `epoch` announced intrusions."""

    reads_separately = True

    def joint_model(self, epoch: int, tables: int) -> SeparateModel:
        """Return the estimate model of counts of several tables of disjoint users."""
        return SeparateModel(self.model(epoch), tables)

    @property
    def largest(self) -> float:
        """The most users that are planned for."""
        return float(self.expected[1])

    @property
    def planned(self) -> tuple[float, float]:
        """The lowest and the highest number of users that it is made for."""
        low, high = self.expected
        return float(low), float(high)

    @property
    def cells(self) -> int:
        """Cells of all levels."""
        return self.levels * self.cells_per_level

    @property
    def slicing(self) -> Slicing:
        """The slices of each level."""
        return Slicing(self, self.cells, self.levels, field="cells_per_level", per_run=True)

    @property
    def groups(self) -> int:
        """A release publishes one count a level; a user moves one of them."""
        return self.levels

    def address(self, key: bytes) -> Addressing:
        """Return the addressing of a user's cell."""
        return Levelled(self.levels, self.cells_per_level, key)

    @classmethod
    def planning_errors(
        cls, designs: Sequence[Self], users: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The errors by which designs are compared."""
        return cls.errors_of([one.model(one.request.intrusions) for one in designs], users)

    @staticmethod
    def errors_of(models: Sequence[LevelModel], users: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same by their models."""
        return np.fmin(deviations(models, users) / users, WORST_ERROR)

    def reach(self, confidence: float, truth: float | None) -> float:
        """Return the bound on an answer's error at this probability, in standard deviations."""
        users = grid(*self.planned)
        worst = float(users[int(np.argmax(self.relative_errors(users)))])
        share = self.model(self.request.intrusions).output_share(truth or worst)
        return noise_quantile(confidence, share)


@dataclass(frozen=True, slots=True)
class DistinctPlan(LevelledPlan):
    """The parameters of a `DistinctCount` of users that appeared: presence bits."""

    proofs: ClassVar[tuple[str, ...]] = ("bits", "releases")
    checks: ClassVar[tuple[str, ...]] = (
        "exact/test_exact", "statistical/test_bits", "statistical/test_distinct_count",
    )  # fmt: skip
    question = "how many different users appeared?"

    @property
    def table(self) -> BitCells:
        """The table's cells."""
        return BitCells(self.cells, self.split.budget.state, self.request.intrusions)

    def check_deltas(self, deltas: Deltas) -> None:
        """Nobody leaves."""
        refuse_deltas(
            deltas < 1,
            "delta must be at least 1; if users can leave, say deletions=strict, or deletions "
            "with bound=",
        )

    def model(self, epoch: int) -> LevelModel:
        """Return the estimate model of counts released after `epoch` announced intrusions."""
        planned = epoch == self.request.intrusions
        contrast = self.split.contrast if planned else float(self.table.contrast(epoch))
        return LevelModel(
            self.levels,
            self.cells_per_level,
            contrast=contrast,
            full=(1 + contrast) / 2,
            decay=1,
            noise_variance=self.split.noise_variance,
        )

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Everybody who came."""
        return float(len(states))


@functools.lru_cache(maxsize=256)
def plan_distinct(expected: tuple[int, int], memory: int, request: Request) -> DistinctPlan:
    """Plan a `DistinctCount` within `memory` bytes of table."""
    return _designs(expected, request).best(8 * memory)


@functools.lru_cache(maxsize=8)
def _designs(expected: tuple[int, int], request: Request) -> Designs[DistinctPlan]:
    """The designs for any memory."""

    def made(levels: int, cells: Sequence[int]) -> list[DistinctPlan]:
        splits = zip(cells, best_splits(request, cells), strict=True)
        return [DistinctPlan(expected, levels, each, request, split) for each, split in splits]

    return Designs(made, expected)
