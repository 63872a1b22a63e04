"""The sizes of a `CroppedSum`: which blocks, how many cells, how epsilon is split."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import Addressing, Levelled
from panprivacy.cells import BlockCells, Law
from panprivacy.cells.difference_sets import DifferenceSet, of_at_least, point
from panprivacy.cells.law import MOST_MODULUS, high_and_low, on_blocks
from panprivacy.cells.modular import counter_type
from panprivacy.decoders import (
    CroppedModel,
    HashedCroppedModel,
    LevelledCroppedModel,
    noise_quantile,
)
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.incidence import MAX_DIRECT_BYTES
from panprivacy.planning.request import Request, Split, budgets, no_signal, noise_variance
from panprivacy.planning.universe import address_in, check_cells, key_bytes_in

MOST_BOUND = MOST_MODULUS // 4
"""Blocks are shorter than this, and there is one more of them than the bound fills."""

_DEFAULT_REACH = 64
"""Without a bound, states may be so many times as large as what counts of them."""

MOST_SHARING = 4
"""So many users of the bound's size may share a hashed cell, and their sum is still told from 0."""

_MOST_INTRUSIONS = 1
_SHARES = np.linspace(0, 1, 17)
_CELLS_PER_USER = tuple(4 << power for power in range(9))
"""Of hashed cells: with more the noise of empty cells grows, with fewer what collisions hide."""


@dataclass(frozen=True, slots=True)
class CroppedPlan:
    """The parameters of a `CroppedSum`.

    Args:
        tau: where states are cropped.
        bound: the largest distance of a state from 0.
        universe: number of possible users; None if nobody knows who might come.
        cells: number of counters; one for each user, fewer for a sample, or hashed ones.
        expected: the most users that hashed counters are planned for, or the range of those that
            levels are planned for, counting for tau each; None with a universe.
        chosen: the set of blocks on which the law of the counters is larger.
        request: epsilon and what it covers.
        split: how epsilon is spent.
        levels: of hashed counters; a level takes half as many users as the one before it.
    """

    tau: int
    bound: int
    universe: int | None
    cells: int
    expected: int | tuple[int, int] | None
    chosen: DifferenceSet
    request: Request
    split: Split
    levels: int = 1

    @property
    def signed(self) -> bool:
        """With a cell each, states below 0 count by their distance from 0.

        Blocks have no direction; but below 0 users of one cell would take from one another.
        """
        return self.universe is not None

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_blocks(self.chosen, self.tau, self.split.budget.state)

    @property
    def table(self) -> BlockCells:
        """The table's cells."""
        return BlockCells(self.cells, self.law)

    @property
    def groups(self) -> int:
        """A release publishes one count a level; a user moves one of them."""
        return self.levels

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key; a full table needs none."""
        return key_bytes_in(self.universe, self.cells)

    def address(self, key: bytes) -> Addressing:
        """Which cell a user maps to."""
        if self.universe is None:
            return Levelled(self.levels, self.cells // self.levels, key)
        return address_in(self.universe, self.cells, key)

    def model(self, epoch: int) -> CroppedModel | LevelledCroppedModel:
        """What counts that are released after `epoch` announced intrusions say."""
        chances = block_chances(self.chosen, self.tau, self.split.budget, epoch)
        noise = self.split.noise_variance
        if isinstance(self.expected, tuple):
            each = self.cells // self.levels
            sizes = self.levels, each, noise, self.tau
            return LevelledCroppedModel(*sizes, *chances, MOST_SHARING)
        if self.universe is None:
            return HashedCroppedModel(self.cells, self.cells, self.tau, *chances, noise)
        return CroppedModel(self.universe, self.cells, self.tau, *chances, noise)

    def error(self, total: float | None = None) -> float:
        """The predicted standard deviation of the answer, after all planned intrusions.

        Of hashed counters it is the root mean square of the error, with what collisions may hide.

        Args:
            total: the cropped sum; None for where the deviation is largest.
        """
        model = self.model(self.request.intrusions)
        return worst(model, self.most) if total is None else float(model.deviation(total))

    @property
    def most(self) -> float:
        """The largest sum that is planned for."""
        return float(self.tau * (self.universe or self.most_users or 0))

    @property
    def most_users(self) -> int | None:
        """The most users that hashed counters are planned for; None with a universe."""
        return self.expected[1] if isinstance(self.expected, tuple) else self.expected

    def planning_errors(self, users: NDArray[np.float64]) -> NDArray[np.float64]:
        """Errors relative to sums of so many users of tau each, by which designs are compared."""
        totals = self.tau * users
        errors: NDArray[np.float64] = self.model(self.request.intrusions).deviation(totals) / totals
        return errors

    def margin(self, confidence: float) -> float:
        """How far from the truth an answer strays at most with this probability."""
        model = self.model(self.request.intrusions)
        share = max(model.output_share(float(x)) for x in _SHARES * self.most)
        quantile = noise_quantile(confidence, share)
        # What collisions hide is no noise: bias + q sd <= hypot(1, q) hypot(bias, sd).
        return (quantile if self.universe else math.hypot(1, quantile)) * self.error()


def worst(model: CroppedModel | LevelledCroppedModel, most: float) -> float:
    """The largest standard deviation over all sums up to one."""
    return float(model.deviation(_SHARES * most).max())


def excess(chosen: DifferenceSet, tau: int, budget: Budget) -> float:
    """By how much values in the chosen blocks are more likely than others: their ratio less 1."""
    high, low = high_and_low(tau * chosen.modulus, budget.state)
    return (high - low) / low


def block_chances(
    chosen: DifferenceSet, tau: int, budget: Budget, epoch: int
) -> tuple[float, float]:
    """How often a cell of state 0 counts, and how much more often one of tau or more does.

    Args:
        chosen: the set of blocks.
        tau: their length.
        budget: epsilon of the look that the law is made for.
        epoch: 0, or 1 after an announced intrusion.
    """
    more = excess(chosen, tau, budget)
    weight = chosen.modulus + more * chosen.size
    own = more * (chosen.size - chosen.overlap)
    if epoch:
        hit = (weight + more * (more + 1) * chosen.size) / (tau * weight**2)
        return 1 - hit, float(more * own / (tau * weight**2))
    return float((chosen.modulus - chosen.size) / weight), float(own / weight)


@functools.lru_cache(maxsize=64)
def plan_cropped(
    tau: int,
    bound: int | None,
    universe: int | None,
    cells: int | None,
    expected: int | None,
    request: Request,
    memory: int | None = None,
) -> CroppedPlan:
    """Plan a `CroppedSum`.

    Args:
        tau: where states are cropped.
        bound: the largest distance of a state from 0; None for 64 times tau.
        universe: number of possible users.
        cells: number of counters; None for one each, as far as the memory reaches.
        expected: the most users of hashed counters.
        request: epsilon and what it covers.
        memory: bytes of the counters, at most; None for 64 MiB.

    Raises:
        PlanError: they do not go together, or no signal would be left.
    """
    reach = default_bound(tau, universe) if bound is None else bound
    check_blocks(tau, reach, request)
    _check_sizes(universe, cells, expected)
    check_memory(cells, memory)

    def spending(budget: Budget, chosen: DifferenceSet) -> Split:
        contrast = block_chances(chosen, tau, budget, request.intrusions)[1]
        return Split(budget, contrast, noise_variance(1, budget))

    shares = budgets(request)
    sets = block_sets(tau, reach if universe else MOST_SHARING * reach)
    plans = [
        CroppedPlan(tau, reach, universe, size, expected, chosen, request, spent)
        for chosen in sets
        for spent in [spending(budget, chosen) for budget in shares]
        for size in _cells(universe, cells, expected, tau * chosen.modulus, memory)
    ]
    if not plans:
        raise too_small(1 if expected is None else 2 * expected, tau, sets)
    return best_of(plans, request)


def default_bound(tau: int, universe: int | None) -> int:
    """The bound where nobody says: 64 times tau, as far as counters reach."""
    most = MOST_BOUND if universe else MOST_BOUND // MOST_SHARING
    return max(tau, min(_DEFAULT_REACH * tau, most))


def check_blocks(tau: int, bound: int, request: Request) -> None:
    """Refuse what blocks cannot tell."""
    if tau > bound:
        message = f"tau ({tau:,}) exceeds the bound ({bound:,}): no state would be cropped there"
        raise PlanError(message)
    if request.intrusions > _MOST_INTRUSIONS:
        message = (
            "a cropped sum cannot be read after more than one announced intrusion; make a fresh "
            "one after each"
        )
        raise PlanError(message)


def _check_sizes(universe: int | None, cells: int | None, expected: int | None) -> None:
    """Refuse sizes that do not say how many users there are, or contradict each other."""
    if (universe is None) == (expected is None):
        message = (
            "say either universe= (how many users there could be) or, for open-ended ids, "
            "expected= (the most that may come)"
        )
        raise PlanError(message)
    check_cells(universe, cells)
    if expected is not None and cells is not None and cells < 2 * expected:
        message = (
            f"cells ({cells:,}) must be at least twice the {expected:,} users expected, because "
            "those who share one hide each other"
        )
        raise PlanError(message)


def block_sets(tau: int, bound: int) -> list[DifferenceSet]:
    """The difference sets to choose from: their blocks reach a block beyond the bound.

    Raises:
        PlanError: the largest possible modulus is too small.
    """
    blocks = -(-bound // tau) + 1
    sets = [*of_at_least(max(blocks, 3)), point(blocks)]
    fitting = [one for one in sets if one.modulus * tau <= MOST_MODULUS]
    if not fitting:
        message = (
            f"counters would have more than {MOST_MODULUS:,} values: lower the bound, or take a "
            "coarser resolution where there is one"
        )
        raise PlanError(message)
    return fitting


def _cells(
    universe: int | None, cells: int | None, expected: int | None, modulus: int, memory: int | None
) -> list[int]:
    """How many counters there may be: one for each user, or several hashed ones; none to fit."""
    if cells is not None:
        return [cells]
    fitting = cells_within(memory, modulus)
    if universe is not None:
        return [min(universe, fitting)] if fitting else []
    users = expected or 1
    if fitting < 2 * users:
        return []
    return sorted({min(times * users, fitting) for times in _CELLS_PER_USER})


def check_memory(cells: int | None, memory: int | None) -> None:
    """Refuse two words on one size."""
    if cells is not None and memory is not None:
        message = "say cells= or memory=, not both"
        raise PlanError(message)


def cells_within(memory: int | None, modulus: int) -> int:
    """How many counters fit in so many bytes; None for 64 MiB."""
    return (MAX_DIRECT_BYTES if memory is None else memory) // counter_type(modulus).itemsize


def too_small(cells: int, block: int, sets: Sequence[DifferenceSet]) -> PlanError:
    """What to raise where the fewest counters do not fit."""
    modulus = block * min(one.modulus for one in sets)
    least = cells * counter_type(modulus).itemsize
    return PlanError(f"memory must be at least {least:,}: the bytes of the fewest counters here")


class _BlockPlan(Protocol):
    """The plan of one count of cells with a block law."""

    @property
    def split(self) -> Split:
        """How epsilon is spent."""

    @property
    def law(self) -> Law:
        """The noise of the counters."""

    def error(self) -> float:
        """The largest predicted error."""


P = TypeVar("P", bound=_BlockPlan)


def best_of(plans: Sequence[P], request: Request) -> P:
    """The plan with the smallest largest error.

    Raises:
        PlanError: none leaves anything of what a state does to a count.
    """
    readable = [p for p in plans if p.split.contrast > 0 and math.isfinite(p.split.noise_variance)]
    best = min(readable, key=lambda plan: plan.error(), default=None)
    if best is None or best.law.ratio == 1:
        raise no_signal(request)
    return best
