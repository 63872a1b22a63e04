"""The plan of a `ThresholdCount`: which blocks, how many cells, how epsilon is split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.release import Name
from panprivacy.statistics.soft.block_plans import IN_PART, Soft, SoftPlan, best_plan
from panprivacy.statistics.soft.scored_plans import Rise, ScoredPlan, Tents, best_tents
from panprivacy.statistics.soft.sloped_plans import MOST_REACH, Search, Slope, SlopedPlan
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.threshold import ThresholdCells
from panprivacy.tables.decoders.blocks import ScoredModel
from panprivacy.tables.planning.blocks import (
    MOST_ANNOUNCED,
    block_chances,
    count_range,
    count_variances,
)
from panprivacy.tables.planning.request import Request, Split, noise_variance
from panprivacy.tables.planning.room import MOST_COST
from panprivacy.tables.planning.universe import cells_within


@dataclass(frozen=True, slots=True)
class AnyThreshold(CountPlan):
    """The common part of all plans of a `ThresholdCount`.

    Args:
        threshold: the state from which on users are asked for.
        bound: the largest state.
        universe: number of possible users.
        cells: number of counters: one for each user, or fewer for a sample.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    threshold: int
    bound: int
    universe: int
    cells: int
    request: Request
    split: Split

    checks = ("exact/test_threshold", "statistical/test_threshold")
    measure = "the universe"

    @property
    def largest(self) -> float:
        """The universe."""
        return float(self.universe)


class SoftThreshold(AnyThreshold, Soft):
    """The description of all plans of a soft `ThresholdCount`, whatever its reading."""

    __slots__ = ()

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        part = f"in full from {self.high:,} on, in part above {self.low:,}"
        return f"how many users are in a state of about {self.threshold:,} or more, {part}?"

    @property
    def unit(self) -> str:
        """The unit of answers."""
        return f"users with {self.threshold:,} or more (above {self.low:,} in part)"

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "threshold", (("threshold", self.threshold),))

    @property
    def low(self) -> int:
        """A user counts from this state on: half of the threshold."""
        return self.threshold // 2

    def joint_model(self, epoch: int, tables: int) -> ScoredModel:
        """Return the estimate model of added counts of several tables of disjoint users."""
        model: Any = self.model(epoch)
        return replace(model, tables=tables)

    def facts(self, states: UserStates) -> list[str]:
        """Return the number of users who count in full by the named threshold."""
        full = int((states >= self.threshold).sum())
        return [f"{full:,} users are at the threshold or above"]


@dataclass(frozen=True, slots=True)
class ThresholdPlan(SoftThreshold, SoftPlan):
    """The parameters of a `ThresholdCount`.

    Args:
        below: 0 where somebody says that there are no states below 0, else None.
        chosen: the set of blocks on which the law of the counters is larger.
    """

    below: int | None
    chosen: DifferenceSet

    proofs = ("modular", "heavy", "blocks", "releases")

    @property
    def block(self) -> int:
        """The length of a block: half of the threshold."""
        return self.low

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right."""
        return 0, self.modulus - self.block

    @property
    def table(self) -> ThresholdCells:
        """The table's cells."""
        return ThresholdCells(self.cells, self.law, self.block, resolution=1)

    def model(self, epoch: int) -> ScoredModel:
        """Return the estimate model of a count released after `epoch` announced intrusions."""
        budget = self.split.budget
        absent, contrast = block_chances(self.chosen, self.block, budget, epoch)
        counted = 2 * absent + contrast - epoch
        # After an intrusion a cell counts for 0 or 1: a coin has a variance of at most a quarter.
        most = 0.25 if epoch else count_variances(self.chosen, self.block, budget)[1]
        noise = noise_variance(self.sensitivity(epoch), budget)
        return ScoredModel(self.universe, self.cells, 1, counted, contrast, noise, most, most)


@dataclass(frozen=True, slots=True)
class SlopedThresholdPlan(SoftThreshold, SlopedPlan):
    """The parameters of a `ThresholdCount` with room for states below 0.

    Args:
        slope: the law of the counters, and what users count.
    """

    slope: Slope

    resolution = 1
    proofs = ("modular", "laws", "thresholds", "releases")

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right."""
        return -self.below, self.slope.shape.bound * self.slope.block

    def model(self, epoch: int) -> ScoredModel:
        """Return the estimate model of a sum of scores."""
        return self.read_votes(self.universe, epoch)


@dataclass(frozen=True, slots=True)
class ScoredThresholdPlan(SoftThreshold, ScoredPlan):
    """The parameters of a `ThresholdCount` into which several intrusions are announced.

    Args:
        below: so far below 0 nobody counts; 0 or None for no room there.
        tents: the law of the counters, and what users count.
    """

    below: int | None
    tents: Tents

    @property
    def caveat(self) -> str | None:
        """The caveat that users below 0 count, where they are possible and there is no room."""
        return IN_PART if self.below is None else None

    @property
    def recipe(self) -> Tents:
        """The law of the counters, and what users count."""
        return self.tents

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right."""
        lowest = self.tents.first * self.low
        return lowest, self.tents.modulus - self.low + lowest


def soft_plan(
    threshold: int,
    bound: int,
    universe: int,
    cells: int | None,
    memory: int | None,
    request: Request,
    *,
    room: bool = False,
    below: int | None = 0,
) -> SoftThreshold:
    """The plan of the smallest largest error, of all sets of blocks, or one with room.

    Args:
        threshold: the state from which on users are asked for.
        bound: the largest state.
        universe: number of possible users.
        cells: how many counters there are; None for one for each user, as far as memory reaches.
        memory: bytes of them, at most.
        request: epsilon and what it covers.
        room: whether counters reach beyond the bound where that is nearly free.
        below: how far below 0 nobody may count; None for as far as is nearly free.

    Raises:
        PlanError: they do not go together, or no signal would be left.
    """
    low = threshold // 2

    def counters(modulus: int) -> int:
        return cells or min(universe, cells_within(memory, modulus))

    if request.intrusions > MOST_ANNOUNCED or (request.intrusions and below):
        return _announced_plan(threshold, bound, universe, counters, request, below)

    def plain(*, room: bool) -> ThresholdPlan:
        return best_plan(
            lambda number, chosen, split: ThresholdPlan(
                threshold, bound, universe, number, request, split, below, chosen
            ),
            request,
            low,
            bound,
            cells=cells,
            memory=memory,
            wanted=[universe],
            moved=count_range,
            room=room,
        )

    tight = plain(room=False)
    wide = plain(room=True) if room else tight
    if below == 0 or request.intrusions:
        return wide
    few_times = min(wide.range_of_states[1], MOST_REACH * bound)
    search = Search(
        lambda slope, number, split: SlopedThresholdPlan(
            threshold, bound, universe, number, request, split, slope
        ),
        lambda modulus: [number] if (number := counters(modulus)) else [],
        low,
        few_times if room and below is None else bound,
        tight,
    )
    if below is None:
        return search.nearly_free(MOST_COST * tight.absolute_error()) or wide
    return search.with_room(below)


def _announced_plan(
    threshold: int,
    bound: int,
    universe: int,
    counters: Callable[[int], int],
    request: Request,
    below: int | None,
) -> ScoredThresholdPlan:
    """The plan of `soft_plan` whose counters are read by their scores, after more intrusions."""
    low = threshold // 2
    tents = -(-below // low) if below else 0
    return best_tents(
        lambda number, recipe, split: ScoredThresholdPlan(
            threshold, bound, universe, number, request, split, below, recipe
        ),
        request,
        Rise(low, 2 + tents, bound, -tents),
        counters,
    )
