"""The sizes of a `ThresholdCount`: which blocks, how many cells, how epsilon is split."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from panprivacy.addressing import Addressing
from panprivacy.cells import Law, ThresholdCells
from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.cells.law import on_blocks
from panprivacy.decoders import ThresholdModel, noise_quantile
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.cropped import (
    MOST_BOUND,
    best_of,
    block_chances,
    block_sets,
    cells_within,
    check_memory,
    too_small,
)
from panprivacy.planning.heavy import count_range, count_variances
from panprivacy.planning.request import Request, Split, budgets, noise_variance
from panprivacy.planning.universe import address_in, check_cells, key_bytes_in

_DEFAULT_REACH = 64
"""Without a bound, states may be so many times as large as the threshold."""

_MOST_INTRUSIONS = 1
_SHARES = np.linspace(0, 1, 17)


@dataclass(frozen=True, slots=True)
class ThresholdPlan:
    """The parameters of a `ThresholdCount`.

    Args:
        least: the state from which on users are asked for.
        bound: the largest state.
        universe: number of possible users.
        cells: number of counters: one for each user, or fewer for a sample.
        chosen: the set of blocks on which the law of the counters is larger.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    least: int
    bound: int
    universe: int
    cells: int
    chosen: DifferenceSet
    request: Request
    split: Split

    @property
    def low(self) -> int:
        """A user counts from this state on, half of `least` rounded down: the length of a block."""
        return self.least // 2

    @property
    def high(self) -> int:
        """A user counts in full from this state on, which is at most `least`."""
        return 2 * self.low

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_blocks(self.chosen, self.low, self.split.budget.state)

    @property
    def table(self) -> ThresholdCells:
        """The table's cells."""
        return ThresholdCells(self.cells, self.law, self.low, resolution=1)

    @property
    def groups(self) -> int:
        """A release publishes one count."""
        return 1

    @property
    def sensitivity(self) -> int:
        """By how much a user's cell may move the count."""
        return count_range(self.chosen)

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key; a full table needs none."""
        return key_bytes_in(self.universe, self.cells)

    def address(self, key: bytes) -> Addressing:
        """Which cell a user maps to."""
        return address_in(self.universe, self.cells, key)

    def model(self, epoch: int) -> ThresholdModel:
        """What a count that is released after `epoch` announced intrusions says."""
        budget = self.split.budget
        absent, contrast = block_chances(self.chosen, self.low, budget, epoch)
        counted = 2 * absent + contrast - epoch
        # After an intrusion a cell counts for 0 or 1: a coin has a variance of at most a quarter.
        most = 0.25 if epoch else count_variances(self.chosen, self.low, budget)[1]
        noise = self.split.noise_variance
        return ThresholdModel(self.universe, self.cells, 1, counted, contrast, noise, most)

    def error(self, users: float | None = None) -> float:
        """The predicted standard deviation, at most, after all planned intrusions.

        Args:
            users: the soft count of users; None for where the deviation is largest.
        """
        model = self.model(self.request.intrusions)
        return float(model.deviation(_SHARES * self.universe if users is None else users).max())

    def margin(self, confidence: float) -> float:
        """How far from the truth an answer strays at most with this probability."""
        model = self.model(self.request.intrusions)
        share = max(model.output_share(float(x)) for x in _SHARES * self.universe)
        return noise_quantile(confidence, share) * self.error()


@functools.lru_cache(maxsize=64)
def plan_threshold(
    least: int,
    bound: int | None,
    universe: int,
    cells: int | None,
    request: Request,
    memory: int | None = None,
) -> ThresholdPlan:
    """Plan a `ThresholdCount`.

    Args:
        least: the state from which on users are asked for.
        bound: the largest state; None for 64 times `least`, as far as counters reach.
        universe: number of possible users.
        cells: number of counters; None for one each, as far as the memory reaches.
        request: epsilon and what it covers.
        memory: bytes of the counters, at most; None for 64 MiB.

    Raises:
        PlanError: they do not go together, or no signal would be left.
    """
    reach = max(least, min(_DEFAULT_REACH * least, MOST_BOUND)) if bound is None else bound
    _check(least, reach, universe, cells, request)
    check_memory(cells, memory)
    block = least // 2

    def planned(budget: Budget, chosen: DifferenceSet) -> ThresholdPlan:
        contrast = block_chances(chosen, block, budget, request.intrusions)[1]
        split = Split(budget, contrast, noise_variance(count_range(chosen), budget))
        size = min(universe, fitting(chosen)) if cells is None else cells
        return ThresholdPlan(least, reach, universe, size, chosen, request, split)

    def fitting(chosen: DifferenceSet) -> int:
        return cells_within(memory, block * chosen.modulus)

    sets = block_sets(block, reach)
    small = [one for one in sets if cells is not None or fitting(one)]
    if not small:
        raise too_small(1, block, sets)
    return best_of([planned(budget, one) for one in small for budget in budgets(request)], request)


def _check(least: int, bound: int, universe: int, cells: int | None, request: Request) -> None:
    """Refuse what blocks cannot tell."""
    if least < 2:
        message = "least must be at least 2; for who came at all, count distinct users"
        raise PlanError(message)
    if least > bound:
        message = f"least ({least:,}) exceeds the bound ({bound:,}): nobody would count"
        raise PlanError(message)
    check_cells(universe, cells)
    if request.intrusions > _MOST_INTRUSIONS:
        message = (
            "a threshold cannot be read after more than one announced intrusion; make a fresh "
            "count after each"
        )
        raise PlanError(message)
