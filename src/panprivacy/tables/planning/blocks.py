"""Laws on sets and blocks of values: which there are, and what they make of a count of cells."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.law import MOST_MODULUS, high_and_low, hit_and_miss
from panprivacy.tables.cells.modular import counter_type
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.request import (
    Request,
    Split,
    budgets,
    no_signal,
    noise_variance,
)
from panprivacy.tables.planning.room import sets_of

MOST_BOUND = MOST_MODULUS // 4
"""Blocks are shorter than this, and there is one more of them than the bound fills."""

_REACH = 64
"""Maximum ratio of the largest state to the crop, without a bound."""

MOST_ANNOUNCED = 1
"""The most intrusions where a release counts the counters of some values, each once."""


def excess(chosen: DifferenceSet, tau: int, budget: Budget) -> float:
    """Return the ratio of the weights of values inside and outside the chosen blocks, minus 1."""
    high, low = high_and_low(tau * chosen.modulus, budget.state)
    return (high - low) / low


@functools.lru_cache(maxsize=1024)
def block_chances(
    chosen: DifferenceSet, tau: int, budget: Budget, epoch: int
) -> tuple[float, float]:
    """Return the probability that a cell of state 0 counts, and the increase from state tau on.

    Args:
        chosen: the set of blocks.
        tau: the length of the blocks.
        budget: epsilon of the intrusion for which the law is made.
        epoch: 0, or 1 after an announced intrusion.
    """
    more = excess(chosen, tau, budget)
    weight = chosen.modulus + more * chosen.size
    own = more * (chosen.size - chosen.overlap)
    if epoch:
        hit = (weight + more * (more + 1) * chosen.size) / (tau * weight**2)
        return 1 - hit, float(more * own / (tau * weight**2))
    return float((chosen.modulus - chosen.size) / weight), float(own / weight)


def block_split(
    chosen: DifferenceSet, block: int, request: Request, budget: Budget, moved: int = 1
) -> Split:
    """Return the split of a budget for counters with this law; a user moves a count by `moved`."""
    contrast = block_chances(chosen, block, budget, request.intrusions)[1]
    return Split(budget, contrast, noise_variance(moved, budget))


def blocks_within(tau: int, bound: int) -> int:
    """Return the number of blocks up to the bound, plus one."""
    return -(-bound // tau) + 1


def block_sets(tau: int, bound: int) -> list[DifferenceSet]:
    """Return the difference sets to choose from: their blocks cover one block above the bound.

    Raises:
        PlanError: the largest possible modulus is too small.
    """
    fitting = sets_of(blocks_within(tau, bound), tau)
    if not fitting:
        message = (
            f"counters would have more than {MOST_MODULUS:,} values: lower the bound, or take a "
            "coarser resolution where there is one"
        )
        raise PlanError(message)
    return fitting


def too_small(cells: int, block: int, sets: Sequence[DifferenceSet]) -> PlanError:
    """Build the error for a memory that is smaller than the fewest counters."""
    modulus = block * min(one.modulus for one in sets)
    least = cells * counter_type(modulus).itemsize
    return PlanError(f"memory must be at least {least:,}: the bytes of the fewest counters here")


def default_reach(counted: int, most: int = MOST_BOUND) -> int:
    """Return the default of the largest state: 64 times the crop, or less if counters are small."""
    return max(counted, min(_REACH * counted, most))


@functools.lru_cache(maxsize=64)
def count_range(chosen: DifferenceSet) -> int:
    """Return the largest difference of what two values count for: 0, 1 or 2, by block."""
    return int(np.ptp(_counted(chosen)))


@functools.lru_cache(maxsize=1024)
def count_variances(chosen: DifferenceSet, block: int, budget: Budget) -> tuple[float, float]:
    """Return variance bounds of a cell's value: below the lower threshold, and anywhere.

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
    """Return the number of times that a cell with a value in each of the blocks counts."""
    outside = np.ones(chosen.modulus)
    outside[chosen.members()] = 0
    return outside + np.roll(outside, 1)


@functools.lru_cache(maxsize=16)
def _over_shifts(chosen: DifferenceSet) -> tuple[Floats, Floats]:
    """Return the sums of blocks' values and of their square over the set shifted by 0, 1, ..."""
    counted, members = _counted(chosen), np.zeros(chosen.modulus)
    members[chosen.members()] = 1
    spectrum = np.fft.rfft(members).conj()

    def sums(values: Floats) -> Floats:
        return np.rint(np.fft.irfft(np.fft.rfft(values) * spectrum, chosen.modulus))

    return sums(counted), sums(counted**2)


def best_counters(
    request: Request, cells: Sequence[int], sets: tuple[DifferenceSet, ...]
) -> list[tuple[Split, DifferenceSet]]:
    """The splits and sets with the smallest error for counts of few users in so many cells each."""
    options, contrasts, variances, noises = _options(request, sets)
    readable = contrasts > 0
    errors = np.full((len(cells), len(options)), math.inf)
    deviations = np.sqrt(np.array(cells)[:, None] * variances + noises)
    np.divide(deviations, contrasts, where=readable, out=errors)
    if not np.isfinite(errors.min(axis=1)).all():
        raise no_signal(request)
    found = errors.argmin(axis=1).tolist()
    spent = {}
    for best in set(found):
        budget, chosen = options[best]
        high, low = high_and_low(chosen.modulus, budget.state)
        if not high > low:
            raise no_signal(request)
        spent[best] = Split(budget, float(contrasts[best]), float(noises[best])), chosen
    return [spent[best] for best in found]


@functools.lru_cache(maxsize=64)
def _options(
    request: Request, sets: tuple[DifferenceSet, ...]
) -> tuple[list[tuple[Budget, DifferenceSet]], Floats, Floats, Floats]:
    """Every split and set; what a user adds to a cell, and the variances of a cell and of noise."""
    options = [(budget, chosen) for budget in budgets(request) for chosen in sets]
    chances = [hit_and_miss(chosen, budget.state, request.intrusions) for budget, chosen in options]
    hit, miss = np.array(chances).T
    noises = np.array([noise_variance(1, budget) for budget, _ in options])
    return options, hit - miss, (hit * (1 - hit) + miss * (1 - miss)) / 2, noises
