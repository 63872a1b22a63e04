"""The plan of a `HeavyHitterCount`: how many cells, which blocks, what deltas are rounded to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from panprivacy.addressing import Independent
from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.cells.protocol import Deltas
from panprivacy.cells.threshold import ThresholdCells
from panprivacy.planning.blocks import block_chances, count_variances
from panprivacy.planning.request import Request, Split, noise_variance
from panprivacy.polynomial import WORD_BYTES
from panprivacy.statistics.block_plans import Soft, SoftPlan
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.heavy.decoder import CellsModel, HeavyModel
from panprivacy.statistics.plan import UserStates
from panprivacy.statistics.release import Name


class Heavy(Soft):
    """What plans of counts of heavy hitters say of themselves."""

    __slots__ = ()

    k: int
    total: int
    cells: int
    independence: int

    measure = "k"

    @property
    def unit(self) -> str:
        """What answers count."""
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
        """Which cell a user maps to."""
        return Independent(self.cells, key)

    def facts(self, states: UserStates) -> list[str]:
        """How many users hold what was asked for, and whether the total is right."""
        heavy, deltas = int((states >= self.total / self.k).sum()), int(states.sum())
        return [
            f"{heavy:,} users hold 1/k of the total or more",
            f"all deltas add up to {deltas:,}",
        ]


@dataclass(frozen=True, slots=True)
class HeavyPlan(Heavy, SoftPlan):
    """The parameters of a `HeavyHitterCount`.

    Args:
        k: a user of `total / k` counts.
        total: the sum of all deltas.
        resolution: what deltas are rounded to multiples of.
        cells: number of hashed counters.
        independence: of so many users the cells are independent.
        chosen: the set of blocks on which the law of the counters is larger.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    k: int
    total: int
    resolution: int
    cells: int
    independence: int
    chosen: DifferenceSet
    request: Request
    split: Split

    proofs = ("modular", "heavy", "blocks", "releases")
    checks = ("exact/test_heavy", "statistical/test_heavy_hitters")

    @property
    def question(self) -> str:
        """What it answers, in words."""
        return f"how many users hold at least 1/{self.k:,} of a public total of {self.total:,}?"

    @property
    def name(self) -> Name:
        """What the answer is called."""
        return Name("", "heavy_hitters", (("k", self.k),))

    @property
    def block(self) -> int:
        """The length of a block: the lower threshold, in units of the resolution."""
        return self.total // (2 * self.k * self.resolution)

    @property
    def low(self) -> int:
        """A user counts from this state on; `total / 2k`, rounded down."""
        return self.block * self.resolution

    @property
    def range_of_states(self) -> tuple[int, int]:
        """From 0, as none below 0 has room, to the whole total."""
        return 0, self.total

    @property
    def table(self) -> ThresholdCells:
        """The table's cells."""
        return ThresholdCells(self.cells, self.law, self.block, self.resolution)

    def check_deltas(self, deltas: Deltas) -> None:
        """None is larger than what all add up to."""
        refuse_beyond(deltas, self.total, signed=False, what="total")

    def model(self, epoch: int) -> HeavyModel:
        """What a count that is released after `epoch` announced intrusions says."""
        return self.joint_model(epoch, 1)

    def joint_model(self, epoch: int, tables: int) -> HeavyModel:
        """What the counts of several tables say, added up: their users share the total."""
        budget, cells = self.split.budget, tables * self.cells
        absent, contrast = block_chances(self.chosen, self.block, budget, epoch)
        counted = 2 * absent + contrast - epoch
        coin = counted * (1 - counted)
        light, most = (coin, coin) if epoch else count_variances(self.chosen, self.block, budget)
        # No more cells than this can hold the lower threshold.
        beyond = min(2 * self.limit / cells, 1)
        variance = light + beyond * (most - light)
        noise = noise_variance(self.sensitivity(epoch), budget)
        numbers = (counted, contrast, variance, noise)
        rounding = self.limit / math.sqrt(self.block) if self.resolution > 1 else 0.0
        return HeavyModel(CellsModel(cells, self.limit, *numbers), rounding, tables)
