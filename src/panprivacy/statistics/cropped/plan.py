"""The plan of a `CroppedSum`: which blocks, how many cells, how epsilon is split."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import Addressing, Levelled
from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.cells.law import Law, on_blocks, outside
from panprivacy.cells.modular import BlockCells
from panprivacy.decoders.blocks import CroppedModel
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
    too_small,
)
from panprivacy.planning.request import Request, Split, budgets, noise_variance
from panprivacy.planning.universe import (
    address_in,
    cells_within,
    check_cells,
    check_memory,
)
from panprivacy.statistics.cropped.decoder import HashedCroppedModel
from panprivacy.statistics.cropped.levels_decoder import LevelledCroppedModel
from panprivacy.statistics.plan import (
    CountPlan,
    UserStates,
    made_up_alike,
    one_answer,
)
from panprivacy.statistics.release import Name, Release

MOST_SHARING = 4
"""So many users of the bound's size may share a hashed cell, and their sum is still told from 0."""

_CELLS_PER_USER = tuple(4 << power for power in range(9))
"""Of hashed cells: with more the noise of empty cells grows, with fewer what collisions hide."""


@dataclass(frozen=True, slots=True)
class CroppedPlan(CountPlan):
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

    proofs = ("modular", "blocks", "sums")
    checks = ("exact/test_cropped", "statistical/test_cropped_sum")
    measure = "the largest sum, tau times all users"

    @property
    def question(self) -> str:
        """What it answers, in words."""
        return f"how much have all users done, if nobody counts for more than {self.tau:,}?"

    @property
    def unit(self) -> str:
        """What answers count."""
        return f"sum, at most {self.tau:,} of each user"

    @property
    def name(self) -> Name:
        """What the answer is called."""
        return Name("", "cropped_sum", (("tau", self.tau),))

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
    def counted(self) -> tuple[Fraction, Fraction]:
        """How often a cell counts: least, and most."""
        return outside(self.chosen, self.tau, self.split.budget.state)

    @property
    def groups(self) -> int:
        """A release publishes one count a level; a user moves one of them."""
        return self.levels

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
        return worst(model, self.largest) if total is None else float(model.deviation(total))

    @property
    def largest(self) -> float:
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
        share = max(model.output_share(float(x)) for x in SHARES * self.largest)
        quantile = noise_quantile(confidence, share)
        # What collisions hide is no noise: bias + q sd <= hypot(1, q) hypot(bias, sd).
        return (quantile if self.universe else math.hypot(1, quantile)) * self.error()

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The sum of distances from 0, each cropped."""
        return float(np.minimum(np.abs(states), self.tau).sum())

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:
        """As many users of tau as the sum says."""
        return made_up_alike(one_answer(answers) / self.tau, self.tau, self.universe)


def worst(model: CroppedModel | LevelledCroppedModel, most: float) -> float:
    """The largest standard deviation over all sums up to one."""
    return float(model.deviation(SHARES * most).max())


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
    return max(tau, min(DEFAULT_REACH * tau, most))


def check_blocks(tau: int, bound: int, request: Request) -> None:
    """Refuse what blocks cannot tell."""
    if tau > bound:
        message = f"tau ({tau:,}) exceeds the bound ({bound:,}): no state would be cropped there"
        raise PlanError(message)
    check_intrusions(request, "a cropped sum", "a fresh one")


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
