"""How an epsilon is split between the state and the releases."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from panprivacy.cells.bits import BitCells, approximate_contrast
from panprivacy.decoders.intervals import discrete_laplace_variance
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget

_SPLIT_GRID = 1024
_SPLITS = 48
_LEAST = 1e-12


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
    """A way to spend a request's epsilon, and what it gives.

    Args:
        budget: epsilon of each look at the state and of each release.
        contrast: mean of a present bit in units of ±1, after all planned intrusions; for counters
            by how much a user changes the probability of a member of the law's set.
        noise_variance: variance of the output noise on a count of cells.
    """

    budget: Budget
    contrast: float
    noise_variance: float

    def error(self, cells: int) -> float:
        """Standard deviation of a count of `cells` fair bits, in units of one user."""
        deviation = float(np.sqrt(cells / 4 + self.noise_variance))
        return deviation / self.contrast if self.contrast else math.inf


def budgets(request: Request) -> list[Budget]:
    """The budgets to choose from: releases take k/1024 of epsilon, k on a geometric grid."""
    if request.budget is not None:
        return [request.budget]
    shares = np.unique(np.geomspace(1, 0.9 * _SPLIT_GRID, _SPLITS).round().astype(int))
    return [_shared(request, Fraction(int(share), _SPLIT_GRID)) for share in shares]


@functools.lru_cache(maxsize=256)
def _splits(request: Request) -> tuple[Split, ...]:
    return tuple(_split(budget, request) for budget in budgets(request))


def _shared(request: Request, share: Fraction) -> Budget:
    return Budget(
        state=request.epsilon * (1 - share) / request.looks,
        release=request.epsilon * share / request.releases,
    )


def _split(budget: Budget, request: Request) -> Split:
    contrast = approximate_contrast(float(budget.state), request.intrusions)
    return Split(budget, contrast, noise_variance(1, budget))


def noise_variance(sensitivity: float, budget: Budget) -> float:
    """The variance of the output noise on a count of this sensitivity."""
    release = float(budget.release) / sensitivity
    return discrete_laplace_variance(1 / release) if release > _LEAST else math.inf


def best_split(request: Request, cells: int) -> Split:
    """The split with the smallest error for a count of `cells` bits.

    Raises:
        PlanError: epsilon is too small for any bit to tell anything.
    """
    split = min(_splits(request), key=lambda split: split.error(cells))
    bit = BitCells(1, split.budget.state, request.intrusions)
    if not bit.contrast(request.intrusions) or math.isinf(split.noise_variance):
        raise no_signal(request)
    return split


def no_signal(request: Request) -> PlanError:
    """What to raise where noise hides everything."""
    return PlanError(f"epsilon {float(request.epsilon):g} is too small to leave any signal")
