"""The counters of Mir et al., Algorithm 2, on a grid: how they are planned, updated and read.

A user's updates are multiplied by a weight of 1 to 2 that stays fixed, and counted modulo
`2 tau`; a counter is initialised with more weight on `[0, 1)` than elsewhere. Real numbers would
leak through their low digits, so there are `grid` steps to the unit, and all of it is whole
numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Budget
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.release import Name
from panprivacy.statistics.soft.block_plans import BlockPlan, best_of
from panprivacy.tables.addressing import Direct, Slots
from panprivacy.tables.cells.difference_sets import DifferenceSet, point
from panprivacy.tables.cells.law import MOST_MODULUS
from panprivacy.tables.cells.modular import ModularCells
from panprivacy.tables.cells.protocol import Deltas, Table, with_deltas
from panprivacy.tables.decoders.intervals import EstimateModel, noise_quantile
from panprivacy.tables.ids import ByteIds, IntegerIds
from panprivacy.tables.planning.blocks import block_split, default_reach, excess
from panprivacy.tables.planning.request import Request, Split, budgets

Floats = NDArray[np.float64]

MOST_UNIVERSE = 1 << 24
_SHIFTS = 1025
"""Number of counter states at which the variance is computed; it is smooth between them."""

_PIECE = 1 << 12


class Weighted(Direct):
    """A cell for each user, and a weight of `grid` to `2 grid`, as part of the slot.

    With `n = grid + 1` weights slot `s` is cell `s // n` and weight `grid + s % n`. A weight comes
    from the low bits of a uniform byte for each user.
    """

    def __init__(self, universe: int, grid: int, weights: bytes) -> None:
        super().__init__(universe)
        self._grid = grid
        self._weights = weights

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        cells = super()._piece(ids)
        slots = cells * (self._grid + 1)
        drawn = np.frombuffer(self._weights, np.uint8)[cells] & np.uint8(self._grid)
        slots += drawn
        wipe(drawn)
        return slots


@dataclass(frozen=True, slots=True)
class MomentCells(ModularCells):
    """Counters that take each delta times the weight in its slot; a release adds them all up.

    Guarantee: as for `ModularCells`: the weight only determines how far a user shifts the counter.
    [tests/exact/test_published.py]
    """

    grid: int

    def update(
        self, table: Table, slots: Iterable[Slots], deltas: Deltas | None, epoch: int, coins: Coins
    ) -> None:
        """Add each delta, times the user's weight, to its cell."""
        for piece, given in with_deltas(slots, deltas):
            cells, moved = np.divmod(piece, self.grid + 1)
            moved += self.grid
            if given is not None:
                reduced = given % self.law.modulus
                moved *= reduced
                wipe(reduced)
            ModularCells.update(self, table, [cells], moved, epoch, coins)
            wipe(cells, moved)

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the sum of all counters, in steps of the grid; there is one group."""
        histogram = self.histogram(table)
        total = int(histogram @ np.arange(self.law.modulus))
        wipe(histogram)
        return np.array([total])


@dataclass(frozen=True, slots=True)
class MomentModel(EstimateModel):
    """The distribution of the noisy sum of counters, given `sum min(a, crop)`.

    Args:
        cells: number of counters, a user each.
        crop: the most that a user counts for.
        base: the mean of a counter of state 0.
        gain: by how much the mean of a counter moves for each unit of its weighted state.
        cell_variance: the largest variance of a counter.
        noise_variance: variance of the output noise on the sum.
        least: the smallest that a user adds on average, for each unit of the user's true value.
        most: the largest.
        spread: the largest variance of what a user adds, over weights.
        scale: what the estimate of the weighted states is divided by.
    """

    cells: int
    crop: int
    base: float
    gain: float
    cell_variance: float
    noise_variance: float
    least: float
    most: float
    spread: float
    scale: float

    def weighted(self, sums: ArrayLike) -> float:
        """Return the sum of all contributions, `sum (w a mod 2 tau)`, before scaling."""
        return (float(np.sum(sums)) - self.cells * self.base) / self.gain

    def estimate(self, sums: ArrayLike) -> float:
        """Return the answer; not cut, so that its mean stays what it is."""
        return self.weighted(sums) / self.scale

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the largest standard deviation: counters, output noise and weights."""
        noise = (self.cells * self.cell_variance + self.noise_variance) / self.gain**2
        deviation = math.sqrt(noise + self.cells * self.spread) / self.scale
        return np.full(np.shape(truth), deviation)

    def bias(self, truth: ArrayLike) -> Floats:
        """Return infinity: the bias is unknown, since it depends on the states."""
        return np.full(np.shape(truth), math.inf)

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that output noise causes."""
        total = float(self.deviation(truth)) * self.gain * self.scale
        return self.noise_variance / total**2

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return all sums that may have led to the estimate, for any states of the users."""
        reach = noise_quantile(confidence, self.output_share(0)) * float(self.deviation(0))
        limit = float(self.cells * self.crop)
        low = max(estimate - reach, 0.0) * self.scale / self.most
        high = max(estimate + reach, 0.0) * self.scale
        return min(low, limit), min(high / self.least, limit) if self.least > 0 else limit


@dataclass(frozen=True, slots=True)
class CroppedMomentPlan(BlockPlan):
    """The parameters of one run of Algorithm 2, as `plan_moment` takes them, and their split.

    The counters are initialised with a bump of one unit, which is a block of `grid` values.
    """

    tau: int
    crop: int
    bound: int
    universe: int
    grid: int
    chosen: DifferenceSet
    request: Request
    split: Split

    @property
    def cells(self) -> int:
        """A counter for each user."""
        return self.universe

    @property
    def block(self) -> int:
        """The length of the bump."""
        return self.grid

    @property
    def table(self) -> MomentCells:
        """The table's cells."""
        return MomentCells(self.universe, self.law, self.grid)

    proofs = ("modular", "published")
    checks = ("exact/test_published", "statistical/test_published")
    question = "how much have all users done, if nobody counts for more, as random weights tell it?"
    unit = "sum of cropped states"
    measure = "the largest sum"

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "cropped_first_moment", (("tau", self.tau),))

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002 - there are no intrusions
        """Return the largest amount by which a user may move the sum of all counters."""
        return self.modulus - 1

    @property
    def key_bytes(self) -> int:
        """A byte for the weight of each user."""
        return self.universe

    def address(self, key: bytes) -> Weighted:
        """Return the addressing that gives each user a cell and a weight."""
        return Weighted(self.universe, self.grid, key)

    def check_deltas(self, deltas: Deltas) -> None:
        """Accept any whole number: counters are modular."""

    def model(self, epoch: int) -> MomentModel:  # noqa: ARG002 - there are no intrusions
        """Return the model of a noisy sum."""
        least, most, spread = contributions(self.tau, self.grid, self.bound, self.crop)
        more = excess(self.chosen, self.grid, self.split.budget)
        weight = self.modulus + more * self.grid
        corners = self.modulus * (self.modulus - 1) + more * self.grid * (self.grid - 1)
        return MomentModel(
            cells=self.universe,
            crop=self.crop,
            base=corners / (2 * weight),
            gain=self.grid * more * self.grid / weight,
            cell_variance=_largest_variance(self.modulus, self.grid, more),
            noise_variance=self.split.noise_variance,
            least=least,
            most=most,
            spread=spread,
            scale=1.0 if self.crop == self.tau else math.sqrt(least * most),
        )

    @property
    def largest(self) -> float:
        """The largest sum."""
        return float(self.crop * self.universe)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Return the sum of states, each cropped."""
        return float(np.clip(states, 0, self.crop).sum())

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return users of tau."""
        return answer / self.crop, self.tau


def seen(tau: int, grid: int, weighted: NDArray[np.int64]) -> Floats:
    """Return the mean of a counter as a function of its weighted state, in units.

    The paper prints `w a mod 2 tau`. The last unit below `2 tau` is wrong there: a bump lies on
    both ends of the counter.
    """
    modulus = 2 * tau * grid
    place = weighted % modulus
    over = np.maximum(place + grid - modulus, 0)
    return (place - 2.0 * tau * over) / grid


@functools.lru_cache(maxsize=64)
def contributions(tau: int, grid: int, bound: int, crop: int) -> tuple[float, float, float]:
    """Return the exact contributions of users over all weights and all states from 1 to the bound.

    Returns:
        The smallest and the largest mean over `min(state, crop)`, and the largest variance.
    """
    weights = np.arange(grid, 2 * grid + 1)
    least, most, spread = math.inf, 0.0, 0.0
    for start in range(1, bound + 1, _PIECE):
        states = np.arange(start, min(start + _PIECE, bound + 1))
        added = seen(tau, grid, np.outer(states, weights))
        shares = added.mean(axis=1) / np.minimum(states, crop)
        least, most = min(least, float(shares.min())), max(most, float(shares.max()))
        spread = max(spread, float(added.var(axis=1).max()))
    return least, most, spread


@functools.lru_cache(maxsize=1024)
def _largest_variance(modulus: int, grid: int, more: float) -> float:
    """Return the variance of a counter, at the state that makes it largest."""
    starts = np.unique(np.linspace(0, modulus - 1, _SHIFTS).astype(np.int64)).astype(float)
    weight = modulus + more * grid
    over = np.maximum(starts + grid - modulus, 0)
    ends = starts + grid - over
    first = _sums(modulus, 1) + more * (_sums(ends, 1) - _sums(starts, 1) + _sums(over, 1))
    second = _sums(modulus, 2) + more * (_sums(ends, 2) - _sums(starts, 2) + _sums(over, 2))
    return float(np.max(second / weight - (first / weight) ** 2))


def _sums(end: ArrayLike, power: int) -> Floats:
    """Return the sum of the whole numbers below `end`, or of their squares."""
    n = np.asarray(end, float)
    return n * (n - 1) / 2 if power == 1 else n * (n - 1) * (2 * n - 1) / 6


def plan_moment(
    tau: int, crop: int, bound: int | None, universe: int, grid: int, request: Request
) -> CroppedMomentPlan:
    """Plan one run of Algorithm 2.

    Args:
        tau: the crop of states; counters are modulo `2 tau`.
        crop: what a user counts for at most: tau, or 1 for a distinct count.
        bound: the largest state; None for 64 times tau, or the largest that the grid allows.
        universe: number of users.
        grid: steps to the unit, one less than a power of two, so that a byte has each weight as
            often as any other.
        request: epsilon and what it covers.

    Raises:
        PlanError: the arguments do not fit together, or no signal would remain.
    """
    farthest = tau * (grid + 1) // 2
    reach = bound or default_reach(tau, farthest)
    if request.intrusions:
        message = "the published algorithms have no announced intrusions; leave out intrusions="
        raise PlanError(message)
    if grid & (grid + 1):
        message = f"grid ({grid}) must be one less than a power of two"
        raise PlanError(message)
    if 2 * tau * grid > MOST_MODULUS:
        message = f"tau ({tau:,}) is too large for the grid ({grid}): take a smaller one of them"
        raise PlanError(message)
    if reach > farthest:
        message = f"the bound ({reach:,}) exceeds {farthest:,}: so coarse a grid of weights repeats"
        raise PlanError(message)

    def planned(budget: Budget) -> CroppedMomentPlan:
        bump = point(2 * tau)
        split = block_split(bump, grid, request, budget, 2 * tau * grid - 1)
        return CroppedMomentPlan(tau, crop, reach, universe, grid, bump, request, split)

    return best_of([planned(budget) for budget in budgets(request)], request)
