"""What a `CroppedSum` is told."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, TypeVar

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.common_sizes import (
    AmountUnit,
    CounterCells,
    CounterMemory,
    PerhapsUniverse,
)
from panprivacy.statistics.cropped.decompounded import DecompoundedPlan
from panprivacy.statistics.cropped.plan import MOST_SHARING, Cropped, CroppedPlan, ScoredCroppedPlan
from panprivacy.statistics.incidence.sizes import IncidenceSizes
from panprivacy.statistics.records import Sizes, integer, learned_bound, learned_users
from panprivacy.statistics.soft.block_plans import best_plan, refused
from panprivacy.statistics.soft.scored_plans import Rise, best_tents
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.blocks import (
    MOST_ANNOUNCED,
    MOST_BOUND,
    block_chances,
    block_sets,
    block_split,
    default_reach,
    too_small,
)
from panprivacy.tables.planning.learning import LearnedBound, highest
from panprivacy.tables.planning.regret import Designs
from panprivacy.tables.planning.request import Request, Split, budgets, no_signal
from panprivacy.tables.planning.universe import cells_within, check_cells

N = TypeVar("N", float, Floats)

_CELLS_PER_USER = tuple(4 << power for power in range(9))
"""Of hashed cells: with more the noise of empty cells grows, with fewer what collisions hide."""

_REACH = 8
"""Levels tell sums that are so many times as large as what is expected, for the case that it is
exceeded: beyond the last level crowded cells may pass for empty ones."""


_MANY_USERS, _LEAST_MODULUS = 10_000, 3
"""From which on a histogram may be read: of fewer, intervals are too short now and then, and far
too many may pass for few."""


class CroppedSizes(Sizes, frozen=True, tag="cropped-sum"):
    """The sum of what users did, of nobody more than tau."""

    tau: Annotated[int, integer("the most that a user counts for", MOST_BOUND, example=10)]
    bound: Annotated[
        int | LearnedBound | None,
        learned_bound("the largest sum of a user's deltas; others spoil answers; 64 tau unless "
                      "told", MOST_BOUND, example=640),
    ] = None  # fmt: skip
    universe: PerhapsUniverse = None
    expected: Annotated[
        Users | None,
        learned_users("for open-ended ids, the most users that may come; or a range of users that "
                      "count for tau each, for an error that is a share of the sum", 100_000),
    ] = None  # fmt: skip
    cells: CounterCells = None
    memory: CounterMemory = None
    unit: AmountUnit = None

    def plan(self, request: Request) -> Cropped:
        """The plan that errs least, which says what amounts are divided by."""
        planned = self._least(request)
        return planned if self.unit is None else replace(planned, amount=self.unit)

    def _least(self, request: Request) -> Cropped:
        """A counter for each user, or hashed ones, or levels of them for a range of users.

        Hashed ones have a block law, or a flat one where that errs less: of very many users.
        """
        universe, expected, bound = self.universe, self.expected, self._highest
        if isinstance(expected, tuple):
            self._check_range()
        if self.tau > bound:
            message = (
                f"tau ({self.tau:,}) exceeds the bound ({bound:,}): no state would be cropped there"
            )
            raise PlanError(message)
        several = request.intrusions > MOST_ANNOUNCED
        if isinstance(expected, tuple):
            if several:
                raise refused(self, request, "levels of a cropped sum")
            return self._levels(bound, expected, request)
        self._check_users()
        if several and universe is not None:
            return self._scored(bound, universe, request)
        flat = None if expected is None else self._decompounded(bound, expected, request)
        if several:
            if flat is None:
                raise refused(self, request, "a cropped sum of so few hashed users")
            return flat
        try:
            blocks = self._blocks(bound, universe, expected, request)
        except PlanError:
            if flat is None:
                raise
            return flat
        return flat if flat and flat.absolute_error() < blocks.absolute_error() else blocks

    @property
    def _highest(self) -> int:
        """The bound of the current window."""
        if self.bound is None:
            return default_reach(self.tau, MOST_BOUND // (1 if self.universe else MOST_SHARING))
        return highest(self.bound, self.tau)

    def _blocks(
        self, bound: int, universe: int | None, expected: int | None, request: Request
    ) -> CroppedPlan:
        """A counter for each user, or hashed ones, with noise on blocks."""
        hashed = [times * (expected or 1) for times in _CELLS_PER_USER]
        return best_plan(
            lambda cells, chosen, split: CroppedPlan(
                self.tau, universe, cells, expected, request, split, bound, chosen
            ),
            request,
            self.tau,
            bound if universe else MOST_SHARING * bound,
            cells=self.cells,
            memory=self.memory,
            wanted=[universe] if universe else hashed,
            fewest=2 * (expected or 1) if universe is None else 1,
            # Counters that are shared, or that reach 64 times as far as tau, have it already.
            room=universe is not None and self.bound is not None,
        )

    def _scored(self, bound: int, universe: int, request: Request) -> ScoredCroppedPlan:
        """A counter for each user, read by scores."""
        return best_tents(
            lambda cells, recipe, split: ScoredCroppedPlan(
                self.tau, universe, cells, None, request, split, bound, recipe
            ),
            request,
            Rise(self.tau, 1, bound),
            lambda modulus: self.cells or min(universe, cells_within(self.memory, modulus)),
        )

    def _decompounded(self, bound: int, expected: int, request: Request) -> DecompoundedPlan | None:
        """Hashed counters with a flat law; None if so many, or so few, cannot be read."""
        if expected < _MANY_USERS:
            return None
        named = {"bound": bound, "expected": expected, "cells": self.cells, "memory": self.memory}
        try:
            counted = IncidenceSizes.read("", named).attempt(request, room=self.bound is not None)
        except PlanError:
            return None
        good = counted.readable and counted.law.modulus >= _LEAST_MODULUS
        return DecompoundedPlan.of(self.tau, counted) if good else None

    def _check_range(self) -> None:
        """Refuse what levels have no use for."""
        if self.universe is not None:
            message = "a universe says how many users there are: leave out expected="
            raise PlanError(message)
        if self.cells is not None:
            message = "a range of expected users is planned by memory=, not by cells="
            raise PlanError(message)

    def _check_users(self) -> None:
        """Refuse sizes that do not say how many users there are, or contradict each other."""
        cells, expected = self.cells, self.expected
        if (self.universe is None) == (expected is None):
            message = (
                "say either universe= (how many users there could be) or, for open-ended ids, "
                "expected= (the most that may come)"
            )
            raise PlanError(message)
        check_cells(self.universe, cells)
        if isinstance(expected, int) and cells is not None and cells < 2 * expected:
            message = (
                f"cells ({cells:,}) must be at least twice the {expected:,} users expected, "
                "because those who share one hide each other"
            )
            raise PlanError(message)

    def _levels(self, bound: int, expected: tuple[int, int], request: Request) -> CroppedPlan:
        """The levels of least regret over a range of sums: see `tables/planning/regret.py`.

        The range is of users that count for tau each; of others, more may come.
        """
        sets = block_sets(self.tau, MOST_SHARING * bound)
        fitting = cells_within(self.memory, self.tau * max(one.modulus for one in sets))
        if not fitting:
            raise too_small(1, self.tau, sets)
        best = _designs(self.tau, bound, expected, request).best(fitting)
        if not isfinite(best.absolute_error()):
            message = (
                "memory must be larger: so few counters cannot tell so many users from one another"
            )
            raise PlanError(message)
        return best


@functools.lru_cache(maxsize=8)
def _designs(
    tau: int, bound: int, expected: tuple[int, int], request: Request
) -> Designs[CroppedPlan]:
    """The designs for any memory.

    Raises:
        PlanError: no signal would be left.
    """
    each = itertools.product(block_sets(tau, MOST_SHARING * bound), budgets(request))
    spendings = [_Spending.of(chosen, tau, request, budget) for chosen, budget in each]
    readable = [one for one in spendings if one.split.contrast > 0 and isfinite(one.error(1))]
    if not readable:
        raise no_signal(request)
    numbers = [(one.absent, one.split.contrast, one.split.noise_variance) for one in readable]
    absent, contrast, noise = np.array(numbers).T

    def design(levels: int, cells_per_level: int) -> CroppedPlan:
        errors = _level_error(absent, contrast, noise, cells_per_level)
        spent = readable[int(np.argmin(errors))]
        sizes = tau, None, levels * cells_per_level, expected
        return CroppedPlan(*sizes, request, spent.split, bound, spent.chosen, levels)

    low, high = expected
    return Designs(
        lambda levels, cells: [design(levels, each) for each in cells], (low, _REACH * high)
    )


@dataclass(frozen=True, slots=True)
class _Spending:
    """A way to spend epsilon: a set of blocks, a budget, and what they make of a count."""

    chosen: DifferenceSet
    split: Split
    absent: float

    @classmethod
    def of(cls, chosen: DifferenceSet, tau: int, request: Request, budget: Budget) -> _Spending:
        """Spend a budget on counters with this set."""
        absent, _ = block_chances(chosen, tau, budget, request.intrusions)
        return cls(chosen, block_split(chosen, tau, request, budget), absent)

    def error(self, cells: int) -> float:
        """The standard deviation of the count of a level that is a quarter full, in users."""
        split = self.split
        return float(_level_error(self.absent, split.contrast, split.noise_variance, cells))


def _level_error(absent: N, contrast: N, noise_variance: N, cells: int) -> N:
    """Return the standard deviation of the count of a level that is a quarter full, in users."""
    count = absent + contrast / 4
    variance = cells * count * (1 - count) + noise_variance
    error: N = np.sqrt(variance) / contrast
    return error
