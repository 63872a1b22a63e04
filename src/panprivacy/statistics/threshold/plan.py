"""The plan of a `ThresholdCount`: which blocks, how many cells, how epsilon is split."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.cells.law import Law, on_blocks
from panprivacy.cells.threshold import ThresholdCells
from panprivacy.decoders.intervals import noise_quantile
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.blocks import (
    DEFAULT_REACH,
    MOST_BOUND,
    SHARES,
    best_of,
    block_chances,
    block_sets,
    check_intrusions,
    count_range,
    count_variances,
    soft_count,
    too_small,
)
from panprivacy.planning.request import Request, Split, budgets, noise_variance
from panprivacy.planning.universe import (
    cells_within,
    check_cells,
    check_memory,
)
from panprivacy.statistics.plan import (
    CountPlan,
    UserStates,
    made_up_alike,
    one_answer,
)
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.threshold.decoder import ThresholdModel


@dataclass(frozen=True, slots=True)
class ThresholdPlan(CountPlan):
    """The parameters of a `ThresholdCount`.

    Args:
        threshold: the state from which on users are asked for.
        bound: the largest state.
        universe: number of possible users.
        cells: number of counters: one for each user, or fewer for a sample.
        chosen: the set of blocks on which the law of the counters is larger.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    threshold: int
    bound: int
    universe: int
    cells: int
    chosen: DifferenceSet
    request: Request
    split: Split

    proofs = ("modular", "heavy", "blocks", "sums")
    checks = ("exact/test_threshold", "statistical/test_threshold")
    measure = "the universe"

    @property
    def question(self) -> str:
        """What it answers, in words."""
        part = f"in full from {self.high:,} on, in part above {self.low:,}"
        return f"how many users are in a state of about {self.threshold:,} or more, {part}?"

    @property
    def unit(self) -> str:
        """What answers count."""
        return f"users with {self.threshold:,} or more (above {self.low:,} in part)"

    @property
    def name(self) -> Name:
        """What the answer is called."""
        return Name("", "threshold", (("threshold", self.threshold),))

    @property
    def largest(self) -> float:
        """The universe."""
        return float(self.universe)

    @property
    def low(self) -> int:
        """A user counts from this state on: half of the threshold, the length of a block."""
        return self.threshold // 2

    @property
    def high(self) -> int:
        """A user counts in full from this state on, which is at most the threshold."""
        return 2 * self.low

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_blocks(self.chosen, self.low, self.split.budget.state)

    @property
    def table(self) -> ThresholdCells:
        """The table's cells."""
        return ThresholdCells(self.cells, self.law, self.low, resolution=1)

    def sensitivity(self, epoch: int) -> int:
        """By how much a user's cell may move the count: after an intrusion it counts for 0 or 1."""
        return 1 if epoch else count_range(self.chosen)

    def model(self, epoch: int) -> ThresholdModel:
        """What a count that is released after `epoch` announced intrusions says."""
        budget = self.split.budget
        absent, contrast = block_chances(self.chosen, self.low, budget, epoch)
        counted = 2 * absent + contrast - epoch
        # After an intrusion a cell counts for 0 or 1: a coin has a variance of at most a quarter.
        most = 0.25 if epoch else count_variances(self.chosen, self.low, budget)[1]
        noise = noise_variance(self.sensitivity(epoch), budget)
        return ThresholdModel(self.universe, self.cells, 1, counted, contrast, noise, most)

    def error(self, users: float | None = None) -> float:
        """The predicted standard deviation, at most, after all planned intrusions.

        Args:
            users: the soft count of users; None for where the deviation is largest.
        """
        model = self.model(self.request.intrusions)
        return float(model.deviation(SHARES * self.universe if users is None else users).max())

    def margin(self, confidence: float) -> float:
        """How far from the truth an answer strays at most with this probability."""
        model = self.model(self.request.intrusions)
        share = max(model.output_share(float(x)) for x in SHARES * self.universe)
        return noise_quantile(confidence, share) * self.error()

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The soft count of users."""
        return soft_count(states, self.low)

    def facts(self, states: UserStates) -> list[str]:
        """How many users count in full by the threshold that was named."""
        full = int((states >= self.threshold).sum())
        return [f"{full:,} users are at the threshold or above"]

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:
        """As many users that count in full as the answer says."""
        return made_up_alike(one_answer(answers), self.high, self.universe)


@functools.lru_cache(maxsize=64)
def plan_threshold(
    threshold: int,
    bound: int | None,
    universe: int,
    cells: int | None,
    request: Request,
    memory: int | None = None,
) -> ThresholdPlan:
    """Plan a `ThresholdCount`.

    Args:
        threshold: the state from which on users are asked for.
        bound: the largest state; None for 64 times the threshold, as far as counters reach.
        universe: number of possible users.
        cells: number of counters; None for one each, as far as the memory reaches.
        request: epsilon and what it covers.
        memory: bytes of the counters, at most; None for 64 MiB.

    Raises:
        PlanError: they do not go together, or no signal would be left.
    """
    reach = max(threshold, min(DEFAULT_REACH * threshold, MOST_BOUND)) if bound is None else bound
    _check(threshold, reach, universe, cells, request)
    check_memory(cells, memory)
    block = threshold // 2

    def planned(budget: Budget, chosen: DifferenceSet) -> ThresholdPlan:
        contrast = block_chances(chosen, block, budget, request.intrusions)[1]
        split = Split(budget, contrast, noise_variance(count_range(chosen), budget))
        size = min(universe, fitting(chosen)) if cells is None else cells
        return ThresholdPlan(threshold, reach, universe, size, chosen, request, split)

    def fitting(chosen: DifferenceSet) -> int:
        return cells_within(memory, block * chosen.modulus)

    sets = block_sets(block, reach)
    small = [one for one in sets if cells is not None or fitting(one)]
    if not small:
        raise too_small(1, block, sets)
    return best_of([planned(budget, one) for one in small for budget in budgets(request)], request)


def _check(threshold: int, bound: int, universe: int, cells: int | None, request: Request) -> None:
    """Refuse what blocks cannot tell."""
    if threshold < 2:
        message = "threshold must be at least 2; for who came at all, count distinct users"
        raise PlanError(message)
    if threshold > bound:
        message = f"threshold ({threshold:,}) exceeds the bound ({bound:,}): nobody would count"
        raise PlanError(message)
    check_cells(universe, cells)
    check_intrusions(request, "a threshold", "a fresh count")
