"""The plan of a `HeavyHitterCount`: how many cells, which blocks, what deltas are rounded to."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.heavy.decoder import CellsModel, HeavyModel
from panprivacy.statistics.release import Name
from panprivacy.statistics.soft.block_plans import Soft, SoftPlan
from panprivacy.statistics.soft.sloped_plans import Slope, SlopedPlan
from panprivacy.tables.addressing import Independent
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.cells.threshold import ThresholdCells
from panprivacy.tables.planning.blocks import block_chances, count_variances
from panprivacy.tables.planning.request import Request, Split, noise_variance
from panprivacy.tables.polynomial import WORD_BYTES


@dataclass(frozen=True, slots=True)
class Heavy(Soft):
    """The common part of plans that count heavy hitters.

    Args:
        k: a user of `total / k` counts.
        total: the sum of all deltas, at the end.
        cells: number of hashed counters.
        independence: of so many users the cells are independent.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    k: int
    total: int
    cells: int
    independence: int
    request: Request
    split: Split

    measure = "k"

    @property
    def unit(self) -> str:
        """The unit of answers."""
        return f"users with 1/{self.k:,} of the total or more"

    @property
    def largest(self) -> float:
        """The most users that can hold 1/k of the total."""
        return float(self.k)

    @property
    def limit(self) -> float:
        """The largest possible number of users: `g(x)` is at most `x/2`."""
        return self.total / self.high

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key: a point and the coefficients of a polynomial."""
        return WORD_BYTES * (1 + self.independence)

    def address(self, key: bytes) -> Independent:
        """Return the addressing of a user's cell."""
        return Independent(self.cells, key)

    def facts(self, states: UserStates) -> list[str]:
        """Return the number of heavy hitters, and whether the declared total is right."""
        heavy, deltas = int((states >= self.total / self.k).sum()), int(states.sum())
        return [
            f"{heavy:,} users hold 1/k of the total or more",
            f"all deltas add up to {deltas:,}",
        ]


class HeavyCount(Heavy):
    """The description of plans of a `HeavyHitterCount`, whatever its reading."""

    __slots__ = ()

    resolution: int

    proofs = ("modular", "heavy", "blocks", "releases")
    checks = ("exact/test_heavy", "statistical/test_heavy_hitters")

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return f"how many users hold at least 1/{self.k:,} of a public total of {self.total:,}?"

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "heavy_hitters", (("k", self.k),))

    @property
    def units(self) -> int:
        """The lower threshold, in units of the resolution."""
        return self.total // (2 * self.k * self.resolution)

    @property
    def low(self) -> int:
        """A user counts from this state on; `total / 2k`, rounded down."""
        return self.units * self.resolution

    def check_deltas(self, deltas: Deltas) -> None:
        """None is larger than what all add up to."""
        refuse_beyond(deltas, self.total, signed=False, what="total")

    def model(self, epoch: int) -> HeavyModel:
        """Return the estimate model of a count released after `epoch` announced intrusions."""
        return self.joint_model(epoch, 1)

    @abstractmethod
    def joint_model(self, epoch: int, tables: int) -> HeavyModel:
        """Return the estimate model of added counts of tables whose users share the total."""

    def read(
        self, counted: float, contrast: float, light: float, most: float, noise: float, tables: int
    ) -> HeavyModel:
        """The model of such counts.

        Args:
            counted: what a cell of light users counts for, on average.
            contrast: by how much more one of a heavy user does.
            light: the variance below the lower threshold, at most.
            most: the variance anywhere, at most.
            noise: variance of the output noise.
            tables: how many tables are counted together.
        """
        cells = tables * self.cells
        # No more cells than this can hold the lower threshold.
        beyond = min(2 * self.limit / cells, 1)
        variance = light + beyond * (most - light)
        rounding = self.limit / math.sqrt(self.units) if self.resolution > 1 else 0.0
        over_cells = CellsModel(cells, self.limit, counted, contrast, variance, noise)
        return HeavyModel(over_cells, rounding, tables)


@dataclass(frozen=True, slots=True)
class HeavyPlan(HeavyCount, SoftPlan):
    """The parameters of a `HeavyHitterCount`.

    Args:
        resolution: what deltas are rounded to multiples of.
        below: 0 where somebody says that there are no states below 0, else None.
        chosen: the set of blocks on which the law of the counters is larger.
    """

    resolution: int
    below: int | None
    chosen: DifferenceSet

    @property
    def block(self) -> int:
        """The length of a block: the lower threshold."""
        return self.units

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The range of states: from 0, as none below 0 has room, to the complete total."""
        return 0, self.total

    @property
    def table(self) -> ThresholdCells:
        """The table's cells."""
        return ThresholdCells(self.cells, self.law, self.block, self.resolution)

    def joint_model(self, epoch: int, tables: int) -> HeavyModel:
        """Return the estimate model of added counts of tables whose users share the total."""
        budget = self.split.budget
        absent, contrast = block_chances(self.chosen, self.block, budget, epoch)
        counted = 2 * absent + contrast - epoch
        coin = counted * (1 - counted)
        light, most = (coin, coin) if epoch else count_variances(self.chosen, self.block, budget)
        noise = noise_variance(self.sensitivity(epoch), budget)
        return self.read(counted, contrast, light, most, noise, tables)


@dataclass(frozen=True, slots=True)
class SlopedHeavyPlan(HeavyCount, SlopedPlan):
    """The parameters of a `HeavyHitterCount` with room for states below 0.

    Args:
        resolution: what deltas are rounded to multiples of.
        slope: the law of the counters, and what users count.
    """

    resolution: int
    slope: Slope

    proofs = ("modular", "heavy", "thresholds", "releases")

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The range of states: from the lowest with room to the complete total."""
        return -self.below, self.total

    def joint_model(self, epoch: int, tables: int) -> HeavyModel:
        """Return the estimate model of added counts of tables whose users share the total."""
        votes = self.votes(epoch)
        noise = noise_variance(votes.range, self.split.budget)
        return self.read(votes.absent, votes.contrast, votes.below, votes.above, noise, tables)
