"""The law of pairs of bits that errs least in users of both streams, and its split of epsilon."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from panprivacy.privacy.guarantee import LARGEST_EXPONENT, Budget, exp_bounds
from panprivacy.statistics.overlaps.pairs import CLASSES, Floats
from panprivacy.tables.cells.pairs import GRID, PAIRS, PairLaw
from panprivacy.tables.planning.request import Request, laplace_variance, no_signal

Number = TypeVar("Number", Fraction, Floats)

SENSITIVITY = 2
"""A user moves one cell from one pair of bits to another: two counts change by one."""
_EMPTY = np.exp(-np.array([0.0, 1, 1, 1.5]) / 3)
"""Of the cells for which a law is chosen: three for each user, half of the users in both."""
_SLOPES = np.array([0.0, -1, -1, 1]) / _EMPTY
_POINTS, _ZOOMS, _ZOOM = 49, 6, 8
_ODDS = -16.0, 3.0
"""Logarithms of the odds of a bit where nobody appeared, among which the search begins."""
_SHARES = tuple(Fraction(share, 1024) for share in (8, 16, 32, 64, 96, 128, 192, 256, 384, 512))
_MOST_STATE = 30
"""A larger epsilon of a look tells no more that matters: bits are right but once in 10**6."""


@dataclass(frozen=True, slots=True)
class PairSplit:
    """How epsilon is spent on pairs of bits.

    Args:
        budget: of the look and of each release.
        law: of the bits.
    """

    budget: Budget
    law: PairLaw

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on each released count of cells."""
        return laplace_variance(float(self.budget.release) / SENSITIVITY)

    def errors(self, cells: Floats) -> Floats:
        """Return the squared errors of users of both streams in tables of so many cells."""
        variance, square = _influence(np.array(self.law.laws, float))
        return variance / cells + self.noise_variance * square / cells**2


def pair_splits(request: Request, cells: Sequence[int]) -> list[PairSplit]:
    """Return the split of least error for each number of cells.

    Raises:
        PlanError: epsilon is too small for any law to tell anything, or the request's own budget
            costs more.
    """
    options = _options(request)
    errors = np.array([one.errors(np.asarray(cells, float)) for one in options])
    return [options[best] for best in errors.argmin(axis=0).tolist()]


@functools.lru_cache(maxsize=64)
def _options(request: Request) -> tuple[PairSplit, ...]:
    if request.budget is not None:
        budgets = [request.check(request.budget)]
    else:
        epsilon = request.epsilon
        budgets = [
            Budget(state=epsilon * (1 - share), release=epsilon * share / request.releases)
            for share in _SHARES
        ]
    found = [PairSplit(one, law) for one in budgets if (law := pair_law(one.state)) is not None]
    told = tuple(one for one in found if math.isfinite(one.noise_variance))
    if not told:
        raise no_signal(request)
    return told


@functools.lru_cache(maxsize=256)
def pair_law(state: Fraction) -> PairLaw | None:
    """Return the law of least error whose ratio is at most `e**state`; None if none tells anything.

    The law is searched in floating point, then rounded to multiples of `2**-24` so that its exact
    ratio is within the bound. Two independent bits of half of epsilon each are among the laws.

    Args:
        state: loss of one look, in nats.
    """
    most, _ = exp_bounds(min(state, LARGEST_EXPONENT, Fraction(_MOST_STATE)))
    odds, places = _ODDS, (0.0, 1.0)
    best = 0.0, 0.0
    for _ in range(_ZOOMS):
        exponents, place = np.meshgrid(
            np.linspace(*odds, _POINTS), np.linspace(*places, _POINTS), indexing="ij"
        )
        errors = _errors(1 / (1 + np.exp(-exponents)), place, float(most))
        if not np.isfinite(errors).any():
            return None
        at = np.unravel_index(int(np.argmin(errors)), errors.shape)
        best = float(exponents[at]), float(place[at])
        width, depth = (odds[1] - odds[0]) / _ZOOM, (places[1] - places[0]) / _ZOOM
        odds = best[0] - width, best[0] + width
        places = max(best[1] - depth, 0.0), min(best[1] + depth, 1.0)
    return _rounded(1 / (1 + math.exp(-best[0])), best[1], most)


def _rounded(absent: float, place: float, most: Fraction) -> PairLaw | None:
    """Return the nearest law on the grid whose exact ratio is at most `most`."""
    low = Fraction(round(absent * GRID), GRID)
    if not 0 < low < 1:
        return None
    high = Fraction(math.floor(most * low / (1 - low + most * low) * GRID), GRID)
    if not low < high < 1:
        return None
    least, largest = _bounds(low, high, most)
    steps = math.ceil(max(least) * GRID), math.floor(min(largest) * GRID)
    if steps[0] > steps[1]:
        return None
    both = Fraction(steps[0] + round(place * (steps[1] - steps[0])), GRID)
    law = PairLaw(low, high, both)
    return law if law.ratio <= most else None


def _bounds(low: Number, high: Number, most: Number) -> tuple[list[Number], list[Number]]:
    """Return what `both` is at least and at most within the bound, for fractions or floats.

    Each pair of bits of a new cell is compared with the same pair in the three other laws.
    """
    ones = high * high / most, most * low * high
    zeros = (
        (1 - low) * (1 - high) / most - 1 + 2 * low,
        most * (1 - high) * (1 - high) - 1 + 2 * low,
    )
    mixed = low - most * low * (1 - high), low - high * (1 - low) / most
    least, largest = zip(ones, zeros, mixed, strict=True)
    return list(least), list(largest)


def _errors(absent: Floats, place: Floats, most: float) -> Floats:
    """Return the variance of the influence of a cell for laws; infinite where there is none."""
    present = most * absent / (1 - absent + most * absent)
    lowest, highest = _bounds(absent, present, np.asarray(most))
    least, largest = np.maximum.reduce(lowest), np.minimum.reduce(highest)
    both = least + place * (largest - least)
    rows = [
        (1 - 2 * absent + both, absent - both, absent - both, both),
        *(
            ((1 - left) * (1 - right), left * (1 - right), (1 - left) * right, left * right)
            for left, right in ((present, absent), (absent, present), (present, present))
        ),
    ]
    laws = np.moveaxis(np.array(rows), (0, 1), (-2, -1))
    possible = (largest >= least) & (laws.min(axis=(-2, -1)) > 0) & (present - absent > 1e-9)
    laws = np.where(possible[..., None, None], laws, np.eye(PAIRS))
    variance, _ = _influence(laws)
    return np.where(possible, variance, np.inf)


def _influence(laws: Floats) -> tuple[Floats, Floats]:
    """Return the variance of what a cell adds to the number of users of both, and its spread.

    Args:
        laws: of a cell by its streams; float64[..., 4, 4].
    """
    by_empty = np.swapaxes(laws, -1, -2) @ CLASSES
    influence = (_SLOPES @ np.linalg.inv(by_empty))[..., :]
    law = by_empty @ _EMPTY
    mean = (law * influence).sum(axis=-1)
    centred = influence - influence.mean(axis=-1, keepdims=True)
    return (law * influence**2).sum(axis=-1) - mean**2, (centred**2).sum(axis=-1)
