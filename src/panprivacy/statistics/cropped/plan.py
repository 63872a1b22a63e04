"""The plan of a `CroppedSum`: which blocks, how many cells, how epsilon is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from panprivacy.statistics.amounts import in_units
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.cropped.decoder import (
    HashedCroppedModel,
    LevelledCroppedModel,
    deviations,
)
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.means.plans import MeanAsked, MeanOfBlocks
from panprivacy.statistics.release import Name
from panprivacy.statistics.slicing import Slicing
from panprivacy.statistics.soft.block_plans import BlockPlan
from panprivacy.statistics.soft.scored_plans import ScoredPlan, Tents
from panprivacy.tables.addressing import Addressing, Levelled
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.law import outside
from panprivacy.tables.cells.modular import BlockCells
from panprivacy.tables.decoders.blocks import CroppedModel
from panprivacy.tables.decoders.separate import SeparateModel
from panprivacy.tables.planning.blocks import block_chances
from panprivacy.tables.planning.regret import grid
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.planning.universe import address_in

MOST_SHARING = 4
"""So many users of the bound's size may share a hashed cell, and their sum is still told from 0."""


@dataclass(frozen=True, slots=True)
class Cropped(CountPlan):
    """The common part of all plans of a cropped sum, whatever its reading.

    Args:
        tau: where states are cropped.
        universe: number of possible users; None if nobody knows who might come.
        cells: number of counters; one for each user, fewer for a sample, or hashed ones.
        expected: the most users that hashed counters are planned for, or the range of those that
            levels are planned for, counting for tau each; None with a universe.
        request: epsilon and what it covers.
        split: how epsilon is spent.
        amount: the unit of amounts that are counted; None for whole deltas.
    """

    tau: int
    universe: int | None
    cells: int
    expected: int | tuple[int, int] | None
    request: Request
    split: Split
    amount: float | None = field(default=None, kw_only=True)

    checks = ("exact/test_cropped", "statistical/test_cropped_sum")

    @property
    def measure(self) -> str:
        """The quantity that relative errors refer to, in words."""
        ranged = isinstance(self.expected, tuple)
        return "the sum" if ranged else "the largest sum, tau times all users"

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        of = "" if self.amount is None else f" in {in_units(self.amount)}"
        return f"how much have all users done{of}, if nobody counts for more than {self.tau:,}?"

    @property
    def unit(self) -> str:
        """The unit of answers."""
        of = "" if self.amount is None else f" in {in_units(self.amount)}"
        return f"sum{of}, at most {self.tau:,} of each user"

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "cropped_sum", (("tau", self.tau),))

    @property
    def largest(self) -> float:
        """The largest sum that is planned for."""
        users = self.expected[1] if isinstance(self.expected, tuple) else self.expected
        return float(self.tau * (self.universe or users or 0))

    @property
    def planned(self) -> tuple[float, float]:
        """The sums of as many users of tau each as are expected; any sum of a universe."""
        low = self.expected[0] if isinstance(self.expected, tuple) else 0
        return float(self.tau * low), self.largest

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The sum of distances from 0, each cropped."""
        return float(np.minimum(np.abs(states), self.tau).sum())

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Users of tau."""
        return answer / self.tau, self.tau


@dataclass(frozen=True, slots=True)
class ScoredCroppedPlan(MeanAsked, Cropped, ScoredPlan):
    """The parameters of a `CroppedSum` into which several intrusions are announced.

    Args:
        bound: the largest distance of a state from 0.
        tents: the law of the counters, and what users count.
    """

    universe: int
    bound: int
    tents: Tents

    signed = True
    """Tents have no direction."""

    @property
    def recipe(self) -> Tents:
        """The law of the counters, and what users count."""
        return self.tents

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right."""
        reach = self.tents.modulus - self.tau
        return -reach, reach

    @property
    def full(self) -> int:
        """The score of a user who counts in full: tau."""
        return self.tau


@dataclass(frozen=True, slots=True)
class CroppedPlan(MeanOfBlocks, Cropped, BlockPlan):
    """The parameters of a `CroppedSum`.

    Args:
        bound: the largest distance of a state from 0.
        chosen: the set of blocks on which the law of the counters is larger.
        levels: of hashed counters; a level takes half as many users as the one before it.
    """

    bound: int
    chosen: DifferenceSet
    levels: int = 1

    proofs = ("modular", "blocks", "releases")

    @property
    def signed(self) -> bool:
        """Whether states below 0 count by their distance from 0: with a cell for each user.

        Blocks have no direction; but below 0 users of one cell would take from one another.
        """
        return self.universe is not None

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right, of each user that shares a cell."""
        reach = self.modulus - self.tau
        return (-reach, reach) if self.signed else (0, reach // MOST_SHARING)

    @property
    def block(self) -> int:
        """The length of a block: tau."""
        return self.tau

    @property
    def table(self) -> BlockCells:
        """The table's cells."""
        return BlockCells(self.cells, self.law)

    @property
    def counted(self) -> tuple[Fraction, Fraction]:
        """The smallest and largest probability that a cell counts."""
        return outside(self.chosen, self.tau, self.split.budget.state)

    @property
    def sharing(self) -> int | None:
        """Users of the bound's size that may share a cell; None where each has an own one."""
        return None if self.universe is not None else MOST_SHARING

    @property
    def slicing(self) -> Slicing:
        """The slices of each level."""
        return Slicing(self, self.cells, self.levels)

    @property
    def groups(self) -> int:
        """A release publishes one count a level; a user moves one of them."""
        return self.levels

    def address(self, key: bytes) -> Addressing:
        """Return the addressing of a user's cell."""
        if self.universe is None:
            return Levelled(self.levels, self.cells // self.levels, key)
        return address_in(self.universe, self.cells, key)

    def model(self, epoch: int) -> CroppedModel | LevelledCroppedModel:
        """Return the estimate model of counts released after `epoch` announced intrusions."""
        chances = block_chances(self.chosen, self.tau, self.split.budget, epoch)
        noise = self.split.noise_variance
        if isinstance(self.expected, tuple):
            each = self.cells // self.levels
            sizes = self.levels, each, noise, self.tau
            return LevelledCroppedModel(*sizes, *chances, MOST_SHARING)
        if self.universe is None:
            return HashedCroppedModel(self.cells, self.cells, self.tau, *chances, noise)
        return CroppedModel(self.universe, self.cells, self.tau, *chances, noise)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks about the bias of an answer by collisions, where users share cells."""
        if self.universe is not None:
            return ()
        truths = grid(*self.planned) if self.error_points else np.array([self.largest])
        share = float((self.model(self.request.intrusions).bias(truths) / truths).max())
        what = "the sum" if self.error_points else "the largest sum"
        return (f"collisions move the mean of an answer by at most {share:.2g} times {what}",)

    @property
    def reads_separately(self) -> bool:  # type: ignore[override]
        """Whether tables are read separately: collision bias depends on the users of a table."""
        return self.universe is None

    def joint_model(self, epoch: int, tables: int) -> CroppedModel | SeparateModel:
        """Return the estimate model of counts of several tables of disjoint users."""
        model = self.model(epoch)
        if self.reads_separately or not isinstance(model, CroppedModel):
            return SeparateModel(model, tables, hides=True)
        return replace(model, tables=tables)

    @classmethod
    def planning_errors(
        cls, designs: Sequence[Self], users: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Errors relative to sums of so many users of tau each, by which designs are compared."""
        totals = designs[0].tau * users
        models: Any = [one.model(one.request.intrusions) for one in designs]
        return deviations(models, totals) / totals
