"""The plan of a `HeavyHitterCount`: how many cells, which blocks, what deltas are rounded to."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from panprivacy.addressing import Independent
from panprivacy.cells.difference_sets import DifferenceSet
from panprivacy.cells.law import Law, on_blocks
from panprivacy.cells.protocol import Deltas
from panprivacy.cells.threshold import ThresholdCells
from panprivacy.decoders.intervals import noise_quantile
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.blocks import (
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
from panprivacy.planning.universe import cells_within, check_memory
from panprivacy.polynomial import WORD_BYTES
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.heavy.decoder import CellsModel, HeavyModel
from panprivacy.statistics.plan import CountPlan, UserStates, made_up_alike, one_answer
from panprivacy.statistics.release import Name, Release

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


@dataclass(frozen=True, slots=True)
class HeavyPlan(CountPlan):
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

    proofs = ("modular", "heavy", "blocks", "sums", "independent")
    checks = ("exact/test_heavy", "statistical/test_heavy_hitters")
    measure = "k"

    @property
    def question(self) -> str:
        """What it answers, in words."""
        return f"how many users hold at least 1/{self.k:,} of a public total of {self.total:,}?"

    @property
    def unit(self) -> str:
        """What answers count."""
        return f"users with 1/{self.k:,} of the total or more"

    @property
    def name(self) -> Name:
        """What the answer is called."""
        return Name("", "heavy_hitters", (("k", self.k),))

    @property
    def largest(self) -> float:
        """The most users that can hold 1/k of the total."""
        return float(self.k)

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

    def sensitivity(self, epoch: int) -> int:
        """By how much a user's cell may move the count: after an intrusion it counts for 0 or 1."""
        return 1 if epoch else count_range(self.chosen)

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key: a point and the coefficients of a polynomial."""
        return WORD_BYTES * (1 + self.independence)

    def address(self, key: bytes) -> Independent:
        """Which cell a user maps to."""
        return Independent(self.cells, key)

    def check_deltas(self, deltas: Deltas) -> None:
        """None is larger than what all add up to."""
        refuse_beyond(deltas, self.total, signed=False, what="total")

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
        noise = noise_variance(self.sensitivity(epoch), budget)
        numbers = (counted, contrast, variance, noise)
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
        return float(model.deviation(SHARES * self.limit if users is None else users).max())

    def margin(self, confidence: float) -> float:
        """How far from the truth an answer strays at most with this probability."""
        model = self.model(self.request.intrusions)
        quantile = noise_quantile(confidence, model.output_share(0.0))
        # What collisions add is no noise: bias + q sd <= hypot(1, q) hypot(bias, sd).
        return math.hypot(1, quantile) * self.error()

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The soft count of users."""
        return soft_count(states, self.low)

    def facts(self, states: UserStates) -> list[str]:
        """How many users hold what was asked for, and whether the total is right."""
        heavy, deltas = int((states >= self.total / self.k).sum()), int(states.sum())
        return [
            f"{heavy:,} users hold 1/k of the total or more",
            f"all deltas add up to {deltas:,}",
        ]

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:
        """As many users that count in full as the answer says."""
        return made_up_alike(one_answer(answers), self.high)


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
    check_intrusions(request, "a count of heavy hitters", "a fresh one")


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
