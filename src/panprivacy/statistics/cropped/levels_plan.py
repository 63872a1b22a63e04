"""The plan of a `CroppedSum` over levels: for when nobody knows how many users will come."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.blocks import block_chances, block_sets, block_split, too_small
from panprivacy.planning.regret import least_regret
from panprivacy.planning.request import Request, Split, budgets, no_signal
from panprivacy.planning.universe import cells_within
from panprivacy.statistics.cropped.plan import MOST_SHARING, CroppedPlan

_REACH = 8
"""Levels tell sums that are so many times as large as what is expected, for the case that it is
exceeded: beyond the last level crowded cells may pass for empty ones."""


@dataclass(frozen=True, slots=True)
class _Spending:
    """A way to spend epsilon: a set of blocks, a budget, and what they make of a count."""

    chosen: DifferenceSet
    split: Split
    absent: float

    def error(self, cells: int) -> float:
        """The standard deviation of the count of a level that is a quarter full, in users."""
        count = self.absent + self.split.contrast / 4
        variance = cells * count * (1 - count) + self.split.noise_variance
        return float(np.sqrt(variance)) / self.split.contrast


def plan_levels(
    tau: int, bound: int, expected: tuple[int, int], request: Request, memory: int | None
) -> CroppedPlan:
    """Plan a `CroppedSum` that errs by nearly as little as possible over a range of sums.

    Args:
        tau: where states are cropped.
        bound: the largest state.
        expected: lowest and highest number of users, if each counts for tau; of users that count
            for less, more may come.
        request: epsilon and what it covers.
        memory: bytes of the counters, at most; None for 64 MiB.

    Raises:
        PlanError: they do not go together, or no signal would be left.
    """
    sets = block_sets(tau, MOST_SHARING * bound)
    cells = cells_within(memory, tau * max(one.modulus for one in sets))
    if not cells:
        raise too_small(1, tau, sets)
    spendings = _spendings(tau, sets, request)

    def design(levels: int, cells_per_level: int) -> CroppedPlan:
        spent = min(spendings, key=lambda one: one.error(cells_per_level))
        sizes = tau, bound, None, levels * cells_per_level, expected
        return CroppedPlan(*sizes, spent.chosen, request, spent.split, levels)

    low, high = expected
    best = least_regret(design, (low, _REACH * high), cells)
    if not math.isfinite(best.error()):
        message = (
            "memory must be larger: so few counters cannot tell so many users from one another"
        )
        raise PlanError(message)
    return best


def _spendings(tau: int, sets: list[DifferenceSet], request: Request) -> list[_Spending]:
    """All ways to spend epsilon that leave a signal."""

    def spending(chosen: DifferenceSet, budget: Budget) -> _Spending:
        absent, _ = block_chances(chosen, tau, budget, request.intrusions)
        return _Spending(chosen, block_split(chosen, tau, request, budget), absent)

    spendings = [spending(chosen, budget) for chosen in sets for budget in budgets(request)]
    readable = [one for one in spendings if one.split.contrast > 0 and np.isfinite(one.error(1))]
    if not readable:
        raise no_signal(request)
    return readable
