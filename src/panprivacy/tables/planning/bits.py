"""The split of epsilon between a table of bits and its releases, which cost less than their sum."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.guarantee import (
    Budget,
    joint_loss,
    joint_releases,
    unseen_bits,
    unseen_loss,
)
from panprivacy.tables.cells.bits import BitCells, approximate_bit
from panprivacy.tables.planning.request import (
    Request,
    Split,
    laplace_variance,
    no_signal,
    noise_variance,
    release_shares,
)

_MOST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class BitBudget(Budget):
    """The split of the epsilon of bits.

    Args:
        surest: that of the cells.
    """

    surest: Fraction

    def of_releases(self, count: int) -> Fraction:
        """Return the loss of the first `count` releases beyond the state: less than their sum."""
        return joint_loss(self.surest, count * self.release)

    def unseen(self, *, releases: int, intrusions: int) -> Fraction:
        """Return the loss of `releases` releases if there is no intrusion into the state."""
        of_any = unseen_loss(self.state, self.release, releases)
        exact = None if intrusions else unseen_bits(self.surest, self.release, releases)
        return of_any if exact is None else min(of_any, exact)


def best_split(request: Request, cells: int) -> Split:
    """Return the split with the smallest error for a count of `cells` bits.

    Raises:
        PlanError: epsilon is too small for any bit to tell anything, or the request's own budget
            costs more.
    """
    return best_splits(request, [cells])[0]


def best_splits(request: Request, cells: Sequence[int]) -> list[Split]:
    """Return the same for several numbers of bits; few different ones come out.

    Raises:
        PlanError: as above.
    """
    if request.budget is not None:
        return [_split(request, request.budget.state)] * len(cells)
    contrasts, variances = _options(request)
    with np.errstate(divide="ignore"):
        errors = np.sqrt(np.array(cells)[:, None] / 4 + variances) / contrasts
    found = errors.argmin(axis=1).tolist()
    states = {
        best: request.epsilon * (1 - release_shares()[best]) / request.looks for best in set(found)
    }
    splits = {best: _split(request, state) for best, state in states.items()}
    return [splits[best] for best in found]


@functools.lru_cache(maxsize=256)
def _split(request: Request, state: Fraction) -> Split:
    """Return the split with `state` for an intrusion, and the request's release or the rest."""
    bit = BitCells(1, state, request.intrusions)
    left, own = request.epsilon - request.looks * state, request.budget
    release = own.release if own else joint_releases(bit.surest, left, request.releases)
    budget = BitBudget(state, release, bit.surest)
    split = Split(budget, float(bit.contrast(request.intrusions)), noise_variance(1, budget))
    if not split.contrast or math.isinf(split.noise_variance):
        raise no_signal(request)
    request.check(budget)
    return split


@functools.lru_cache(maxsize=256)
def _options(request: Request) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return contrast and output noise by the releases' share of epsilon, in floating point."""
    epsilon, found = float(request.epsilon), []
    for share in map(float, release_shares()):
        state = epsilon * (1 - share) / request.looks
        contrast, surest = approximate_bit(state, request.intrusions)
        cost = min(epsilon * share, _MOST_EXPONENT)
        release = math.log1p(math.expm1(cost) / surest) / request.releases
        found.append((contrast, laplace_variance(release)))
    contrasts, variances = np.array(found).T
    return contrasts, variances
