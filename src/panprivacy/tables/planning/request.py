"""The split of epsilon between the state and the releases."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget, format_rounded_up
from panprivacy.tables.decoders.intervals import discrete_laplace_variance

_SPLIT_GRID = 1024
_SPLITS = 48
_LEAST = 1e-12

MOST_EPSILON = 1_000_000
LEAST_EPSILON = Fraction(1, 1_000_000)
"""Minimum epsilon. With less, even the largest table has an error above its largest answer: a cell
is moved by less than epsilon/2, and the root of the number of cells is below 1,000,000."""


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a plan: the total epsilon and what it must cover.

    Args:
        epsilon: total loss of state and releases, in nats.
        releases: number of releases that it covers.
        intrusions: number of announced intrusions that it covers.
        budget: the split between state and releases; None for the best one.

    Raises:
        PlanError: epsilon is so small that there would be no signal, or implausibly large.
    """

    epsilon: Fraction
    releases: int = 1
    intrusions: int = 0
    budget: Budget | None = None

    def __post_init__(self) -> None:
        if self.epsilon > MOST_EPSILON:
            message = f"epsilon must be at most {MOST_EPSILON:,}"
            raise PlanError(message)
        if self.epsilon < LEAST_EPSILON:
            raise no_signal(self)

    @property
    def looks(self) -> int:
        """Number of intrusions covered: each announced one, and one that is not announced."""
        return self.intrusions + 1

    def check(self, budget: Budget) -> Budget:
        """Refuse a budget with a loss above epsilon."""
        total = budget.total(releases=self.releases, intrusions=self.intrusions)
        if total > self.epsilon:
            message = (
                f"this budget costs epsilon {format_rounded_up(total)} in all, "
                f"above {format_rounded_up(self.epsilon)}"
            )
            raise PlanError(message)
        return budget


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

    def at(self, release: Fraction, moved: float = 1) -> Split:
        """Return the same split with another epsilon of each release.

        Args:
            release: its epsilon.
            moved: by how much a user moves a released count, at most.
        """
        budget = replace(self.budget, release=release)
        return replace(self, budget=budget, noise_variance=noise_variance(moved, budget))


@functools.cache
def release_shares() -> tuple[Fraction, ...]:
    """Return the candidate shares of epsilon for all releases: k/1024, k on a geometric grid."""
    shares = np.unique(np.geomspace(1, 0.9 * _SPLIT_GRID, _SPLITS).round().astype(int))
    return tuple(Fraction(int(share), _SPLIT_GRID) for share in shares)


@functools.lru_cache(maxsize=64)
def budgets(request: Request) -> tuple[Budget, ...]:
    """Return the budgets of counters to choose from; that of the request if it has one."""
    if request.budget is not None:
        return (request.check(request.budget),)
    return tuple(_shared(request, share) for share in release_shares())


def _shared(request: Request, share: Fraction) -> Budget:
    return Budget(
        state=request.epsilon * (1 - share) / request.looks,
        release=request.epsilon * share / request.releases,
    )


def noise_variance(sensitivity: float, budget: Budget) -> float:
    """Return the variance of the output noise on a count of this sensitivity."""
    return laplace_variance(float(budget.release) / sensitivity)


def laplace_variance(epsilon: float) -> float:
    """Return the variance of discrete Laplace noise of scale `1/epsilon`."""
    return discrete_laplace_variance(1 / epsilon) if epsilon > _LEAST else math.inf


def no_signal(request: Request) -> PlanError:
    """Build the error for a plan in which noise hides everything."""
    told = f"epsilon {format_rounded_up(request.epsilon)} is too small to leave any signal"
    return PlanError(f"{told}: most answers need 0.1 to 10")
