"""Sizes and budgets, chosen before anything is collected.

A plan is a function of public numbers only: epsilon, the expected number of users or the
universe, memory, how many releases and announced intrusions there will be. It predicts the error
with the same model that later decodes the counts, and equal requests share one cached plan.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import MAX_LEVELS
from panprivacy.cells import BitCells
from panprivacy.decoders import DensityModel, LevelModel, discrete_laplace_variance
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget

_SPLIT_GRID = 1024
_SPLITS = 48
_POINTS_PER_DECADE = 6
_WORST_ERROR = 1e9
MAX_DIRECT_CELLS = 1 << 27
"""A universe of up to so many users gets one cell each (16 MiB of bits); larger ones a sample."""


@dataclass(frozen=True, slots=True)
class Request:
    """What every plan is asked for: the total epsilon and what it must cover.

    Args:
        epsilon: total loss of state and releases, in nats.
        releases: how many releases it covers.
        intrusions: how many announced intrusions it covers.
        budget: the split between state and releases; None for the best one.
    """

    epsilon: Fraction
    releases: int = 1
    intrusions: int = 0
    budget: Budget | None = None

    def __post_init__(self) -> None:
        if self.budget is None:
            return
        total = self.budget.total(releases=self.releases, intrusions=self.intrusions)
        if total > self.epsilon:
            message = (
                f"this budget costs epsilon {float(total):g} in all, above {float(self.epsilon):g}"
            )
            raise PlanError(message)

    @property
    def looks(self) -> int:
        """How often the state may be seen: at each announced intrusion and once unannounced."""
        return self.intrusions + 1


@dataclass(frozen=True, slots=True)
class Split:
    """A way to spend a request's epsilon on bits, and what it gives.

    Args:
        budget: epsilon of each look at the state and of each release.
        contrast: mean of a present bit in units of ±1, after all planned intrusions.
        noise_variance: variance of the output noise on a count of bits.
    """

    budget: Budget
    contrast: float
    noise_variance: float

    def error(self, cells: int) -> float:
        """Standard deviation of a count of `cells` fair bits, in units of one user."""
        return float(np.sqrt(cells / 4 + self.noise_variance)) / self.contrast


@functools.lru_cache(maxsize=256)
def _splits(request: Request) -> tuple[Split, ...]:
    """The splits to choose from: releases take k/1024 of epsilon, k on a geometric grid."""
    if request.budget is not None:
        return (_split(request.budget, request),)
    shares = np.unique(np.geomspace(1, 0.9 * _SPLIT_GRID, _SPLITS).round().astype(int))
    budgets = [_shared(request, Fraction(int(share), _SPLIT_GRID)) for share in shares]
    return tuple(_split(budget, request) for budget in budgets)


def _shared(request: Request, share: Fraction) -> Budget:
    return Budget(
        state=request.epsilon * (1 - share) / request.looks,
        release=request.epsilon * share / request.releases,
    )


def _split(budget: Budget, request: Request) -> Split:
    contrast = float(BitCells(1, budget.state, request.intrusions).contrast(request.intrusions))
    if contrast <= 0:
        message = f"epsilon {float(request.epsilon):g} is too small to leave any signal"
        raise PlanError(message)
    return Split(budget, contrast, discrete_laplace_variance(1 / float(budget.release)))


def best_split(request: Request, cells: int) -> Split:
    """The split with the smallest error for a count of `cells` bits."""
    return min(_splits(request), key=lambda split: split.error(cells))


@dataclass(frozen=True, slots=True)
class DensityPlan:
    """The parameters of a `Density`.

    Args:
        universe: number of possible users.
        cells: number of cells; one for each user, or fewer for a sample.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    universe: int
    cells: int
    request: Request
    split: Split

    @property
    def bits(self) -> BitCells:
        """The table's cells."""
        return BitCells(self.cells, self.split.budget.state, self.request.intrusions)

    def model(self, epoch: int) -> DensityModel:
        """What counts that are released after `epoch` announced intrusions say."""
        contrast = float(self.bits.contrast(epoch))
        return DensityModel(self.universe, self.cells, contrast, self.split.noise_variance)

    def error(self, share: float) -> float:
        """The predicted standard deviation of the answer, as a share of the universe."""
        return float(self.model(self.request.intrusions).deviation(share))


@dataclass(frozen=True, slots=True)
class DistinctPlan:
    """The parameters of a `DistinctCount`.

    Args:
        expected: lowest and highest number of users the plan is good for.
        levels: number of levels.
        cells_per_level: cells of each.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    expected: tuple[int, int]
    levels: int
    cells_per_level: int
    request: Request
    split: Split

    @property
    def cells(self) -> int:
        """Cells of all levels."""
        return self.levels * self.cells_per_level

    @property
    def bits(self) -> BitCells:
        """The table's cells."""
        return BitCells(self.cells, self.split.budget.state, self.request.intrusions)

    def model(self, epoch: int) -> LevelModel:
        """What counts that are released after `epoch` announced intrusions say."""
        contrast = float(self.bits.contrast(epoch))
        return LevelModel(self.levels, self.cells_per_level, contrast, self.split.noise_variance)

    def error(self, users: float) -> float:
        """The predicted standard deviation of the answer, relative to the number of users."""
        return float(self.relative_errors(np.array([float(users)]))[0])

    def relative_errors(self, users: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for many numbers of users at once, cut off at 1e9."""
        deviation = self.model(self.request.intrusions).deviation(users)
        errors = np.minimum(deviation / users, _WORST_ERROR)
        return np.nan_to_num(errors, nan=_WORST_ERROR)

    def worst_error(self) -> float:
        """The largest predicted relative error over the expected range."""
        return float(self.relative_errors(_grid(*self.expected)).max())


@functools.lru_cache(maxsize=256)
def plan_density(universe: int, cells: int | None, request: Request) -> DensityPlan:
    """Plan a `Density`; without `cells`, one for each user as far as 16 MiB reach."""
    if cells is None:
        cells = min(universe, MAX_DIRECT_CELLS)
    if cells > universe:
        message = f"cells ({cells:,}) exceed the universe ({universe:,}); leave cells out"
        raise PlanError(message)
    return DensityPlan(universe, cells, request, best_split(request, cells))


@functools.lru_cache(maxsize=256)
def plan_distinct(expected: tuple[int, int], memory: int, request: Request) -> DistinctPlan:
    """Plan a `DistinctCount` within `memory` bytes of table.

    For each number of users there is a best design; a design's regret is by what factor its error
    exceeds that best one. The plan has the smallest regret at the worst point of the range.
    """
    designs = _designs(expected, memory, request)
    users = _grid(*expected)
    errors = np.array([design.relative_errors(users) for design in designs])
    regret = (errors / errors.min(axis=0)).max(axis=1)
    return designs[int(np.argmin(regret))]


def _designs(expected: tuple[int, int], memory: int, request: Request) -> list[DistinctPlan]:
    """Designs of every number of levels, in the memory given and in half octaves less."""
    most = min(MAX_LEVELS, expected[1].bit_length() + 1, 8 * memory)
    shrink = 2.0 ** (-np.arange(28) / 2)
    designs = []
    for levels in range(1, most + 1):
        sizes = np.unique((8 * memory * shrink / levels).astype(np.int64))
        for size in sizes[sizes >= 1]:
            split = best_split(request, int(size))
            designs.append(DistinctPlan(expected, levels, int(size), request, split))
    return designs


def _grid(low: int, high: int) -> NDArray[np.float64]:
    points = int(np.ceil(_POINTS_PER_DECADE * np.log10(high / low))) + 1
    return np.geomspace(low, high, points)
