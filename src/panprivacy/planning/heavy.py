"""The sizes of a `HeavyHitterCount`: how many cells, which blocks, what deltas are rounded to."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from panprivacy.addressing import Independent
from panprivacy.cells import Law, ThresholdCells
from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.cells.law import on_blocks
from panprivacy.decoders import CellsModel, HeavyModel, noise_quantile
from panprivacy.decoders.intervals import Floats
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.cropped import (
    best_of,
    block_chances,
    block_sets,
    cells_within,
    check_memory,
    excess,
    too_small,
)
from panprivacy.planning.request import Request, Split, budgets, noise_variance
from panprivacy.polynomial import WORD_BYTES

MOST_K = 1 << 15
LEAST_INDEPENDENCE, MOST_INDEPENDENCE = 4, 64
"""With 4, pairs of users that share cells are as many as if all cells were independent, and vary
as much; with 2, ids in a row may all share cells or none."""

MOST_TOTAL = 1 << 60

_UNITS, _UNITS_OF_A_USER = 1 << 20, 1 << 8
"""A total is counted in at least so many units, or so many times k, if it has as many."""

_LEAST_THRESHOLD = 0.95
"""A threshold that is a multiple of the resolution may be so much of what it should be."""

_DEVIATIONS = 6
"""By so many standard deviations of the rounding a counter may exceed the total."""

_CELLS_OF_A_USER = tuple(2 << power for power in range(10))
"""Times k: with more the noise of empty cells grows, with fewer what collisions add."""

_MOST_INTRUSIONS = 1
_SHARES = np.linspace(0, 1, 17)


@dataclass(frozen=True, slots=True)
class HeavyPlan:
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

    @property
    def block(self) -> int:
        """The length of a block: the lower threshold, in units of the resolution."""
        return self.total // (2 * self.k * self.resolution)

    @property
    def low(self) -> int:
        """A user counts from this state on; `total / 2k`, rounded down."""
        return self.block * self.resolution

    @property
    def high(self) -> int:
        """A user counts in full from this state on, which is at most `total / k`."""
        return 2 * self.low

    @property
    def limit(self) -> float:
        """The largest possible number of users: `g(x)` is at most `x/2`."""
        return self.total / self.high

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_blocks(self.chosen, self.block, self.split.budget.state)

    @property
    def table(self) -> ThresholdCells:
        """The table's cells."""
        return ThresholdCells(self.cells, self.law, self.block, self.resolution)

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
        """Bytes of addressing key: a point and the coefficients of a polynomial."""
        return WORD_BYTES * (1 + self.independence)

    def address(self, key: bytes) -> Independent:
        """Which cell a user maps to."""
        return Independent(self.cells, key)

    def model(self, epoch: int) -> HeavyModel:
        """What a count that is released after `epoch` announced intrusions says."""
        budget = self.split.budget
        absent, contrast = block_chances(self.chosen, self.block, budget, epoch)
        counted = 2 * absent + contrast - epoch
        coin = counted * (1 - counted)
        light, most = (coin, coin) if epoch else count_variances(self.chosen, self.block, budget)
        # No more cells than this can hold the lower threshold.
        beyond = min(2 * self.limit / self.cells, 1)
        variance = light + beyond * (most - light)
        numbers = (counted, contrast, variance, self.split.noise_variance)
        return HeavyModel(CellsModel(self.cells, self.limit, *numbers), self._rounding)

    @property
    def _rounding(self) -> float:
        """By how much rounding may move the mean of the sum over cells."""
        return self.limit / math.sqrt(self.block) if self.resolution > 1 else 0.0

    def error(self, users: float | None = None) -> float:
        """The root mean square of the error, at most, after all planned intrusions.

        Args:
            users: the soft count of users; None for where the error is largest.
        """
        model = self.model(self.request.intrusions)
        return float(model.deviation(_SHARES * self.limit if users is None else users).max())

    def margin(self, confidence: float) -> float:
        """How far from the truth an answer strays at most with this probability."""
        model = self.model(self.request.intrusions)
        quantile = noise_quantile(confidence, model.output_share(0.0))
        # What collisions add is no noise: bias + q sd <= hypot(1, q) hypot(bias, sd).
        return math.hypot(1, quantile) * self.error()


@functools.lru_cache(maxsize=64)
def count_range(chosen: DifferenceSet) -> int:
    """The largest difference of what two values count for: 0, 1 or 2, by block."""
    return int(np.ptp(_counted(chosen)))


@functools.lru_cache(maxsize=1024)
def count_variances(chosen: DifferenceSet, block: int, budget: Budget) -> tuple[float, float]:
    """The variance of what a cell counts for, at most: below the lower threshold, and anywhere.

    A state within a block has a mean and a mean square between those of its two ends, on lines; so
    its variance exceeds theirs by at most a quarter of the square of the difference of the means,
    which is 0 within the first block.
    """
    more = excess(chosen, block, budget)
    weight = chosen.modulus + more * chosen.size
    counted, (over_set, squares) = _counted(chosen), _over_shifts(chosen)
    means = (counted.sum() + more * over_set) / weight
    ends = ((counted**2).sum() + more * squares) / weight - means**2
    if block == 1:  # all states are ends
        return float(ends[:2].max()), float(ends.max())
    bulges = (means - np.roll(means, -1)) ** 2 / 4
    return float(ends[:2].max()), float((np.maximum(ends, np.roll(ends, -1)) + bulges).max())


@functools.lru_cache(maxsize=16)
def _counted(chosen: DifferenceSet) -> Floats:
    """How often a cell counts whose value is in each of the blocks."""
    outside = np.ones(chosen.modulus)
    outside[chosen.members()] = 0
    return outside + np.roll(outside, 1)


@functools.lru_cache(maxsize=16)
def _over_shifts(chosen: DifferenceSet) -> tuple[Floats, Floats]:
    """The sums of what blocks count for, and of its square, over the set shifted by 0, 1, ..."""
    counted, members = _counted(chosen), np.zeros(chosen.modulus)
    members[chosen.members()] = 1
    spectrum = np.fft.rfft(members).conj()

    def sums(values: Floats) -> Floats:
        return np.rint(np.fft.irfft(np.fft.rfft(values) * spectrum, chosen.modulus))

    return sums(counted), sums(counted**2)


@functools.lru_cache(maxsize=64)
def plan_heavy(
    k: int,
    total: int,
    cells: int | None,
    resolution: int | None,
    request: Request,
    memory: int | None = None,
    independence: int = LEAST_INDEPENDENCE,
) -> HeavyPlan:
    """Plan a `HeavyHitterCount`.

    Args:
        k: a user of `total / k` counts.
        total: the sum of all deltas.
        cells: number of counters; None for the smallest error within the memory.
        resolution: what deltas are rounded to multiples of; None for the finest that counters of
            a moderate size allow.
        request: epsilon and what it covers.
        memory: bytes of the counters, at most; None for 64 MiB.
        independence: of so many users the cells are to be independent, at least 4.

    Raises:
        PlanError: they do not go together, or no signal would be left.
    """
    _check(k, total, cells, request)
    check_memory(cells, memory)
    unit = -(-total // max(_UNITS, _UNITS_OF_A_USER * k)) if resolution is None else resolution
    block = total // (2 * k * unit)
    if not block:
        message = f"total ({total:,}) must be at least 2 k times the resolution ({2 * k * unit:,})"
        raise PlanError(message)
    if unit > 1 and block * unit < _LEAST_THRESHOLD * total / (2 * k):
        message = f"a resolution of {unit:,} moves the thresholds; take one that divides total/2k"
        raise PlanError(message)

    def spending(budget: Budget, chosen: DifferenceSet) -> Split:
        contrast = block_chances(chosen, block, budget, request.intrusions)[1]
        return Split(budget, contrast, noise_variance(count_range(chosen), budget))

    shares = budgets(request)
    sets = block_sets(block, _reach(total, unit))
    plans = [
        HeavyPlan(k, total, unit, size, independence, chosen, request, spent)
        for chosen in sets
        for spent in [spending(budget, chosen) for budget in shares]
        for size in _sizes(k, cells, block * chosen.modulus, memory)
    ]
    if not plans:
        raise too_small(2 * k, block, sets)
    return best_of(plans, request)


def _check(k: int, total: int, cells: int | None, request: Request) -> None:
    """Refuse what leaves nothing to tell."""
    if total < 2 * k:
        message = f"total ({total:,}) must be at least 2 k ({2 * k:,}), or users of 1 would count"
        raise PlanError(message)
    if cells is not None and cells < 2 * k:
        message = f"cells ({cells:,}) must be at least 2 k ({2 * k:,}): users who share one add up"
        raise PlanError(message)
    if request.intrusions > _MOST_INTRUSIONS:
        message = (
            "a count of heavy hitters cannot be read after more than one announced intrusion; make "
            "a fresh one after each"
        )
        raise PlanError(message)


def _reach(total: int, unit: int) -> int:
    """The largest state of a counter: all of the total, and what rounding may add."""
    units = -(-total // unit)
    return units + (_DEVIATIONS * math.isqrt(units) if unit > 1 else 0)


def _sizes(k: int, cells: int | None, modulus: int, memory: int | None) -> list[int]:
    """How many counters there may be: several times k, as far as the memory reaches."""
    if cells is not None:
        return [cells]
    fitting = cells_within(memory, modulus)
    return sorted({min(times * k, fitting) for times in _CELLS_OF_A_USER if fitting >= 2 * k})
