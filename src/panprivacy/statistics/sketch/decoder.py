"""Errors of the number of users of a published table, and of the overlap of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.statistics.overlaps.patterns import CellLayout
from panprivacy.tables.decoders.intervals import EstimateModel, Floats, confidence_interval
from panprivacy.tables.decoders.levels import level_shares

_LEAST_EMPTY = 1e-60


@dataclass(frozen=True, slots=True)
class UserModel(EstimateModel):
    """The number of users of a universe, from the number of ones in a table of one user a cell.

    Args:
        universe: number of possible users.
        cells: number of users that have a cell.
        absent: probability of a 1 where the user did not come.
        present: the same where the user came.
    """

    universe: int
    cells: int
    absent: float
    present: float

    def estimate(self, ones: ArrayLike) -> float:
        """The unbiased estimate, cut to 0 .. universe."""
        return min(max(self.unbiased(ones), 0.0), float(self.universe))

    def unbiased(self, ones: ArrayLike) -> float:
        """The estimate before it is cut."""
        mean = float(np.sum(ones)) / self.cells
        return self.universe * (mean - self.absent) / (self.present - self.absent)

    def deviation(self, truth: ArrayLike) -> Floats:
        """Bits, and sampling without replacement."""
        share = np.asarray(truth, float) / self.universe
        absent, present = self.absent * (1 - self.absent), self.present * (1 - self.present)
        bits = (absent + share * (present - absent)) / (self.present - self.absent) ** 2
        left_out = (self.universe - self.cells) / max(self.universe - 1, 1)
        sampling = share * (1 - share) * left_out
        return self.universe * np.sqrt((bits + sampling) / self.cells)

    def output_share(self, truth: float) -> float:  # noqa: ARG002
        """Nothing: a published table has no output noise."""
        return 0.0

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval within 0 .. universe; half a count covers that counts are whole."""
        limit = float(self.universe)
        half = 0.5 * limit / self.cells / (self.present - self.absent)
        return confidence_interval(
            self, estimate, confidence, limit=limit, beyond=limit, slack=half
        )


def overlap_deviations(
    layout: CellLayout, absent: float, present: float, users: Floats, share: float
) -> Floats:
    """Return standard deviations of the number of users of both of two equal tables.

    Each level says so much: the influence of a cell on the estimate is
    `z/q_12 - w_1/q_1 - w_2/q_2`, where `w_i` is 1 in an empty cell of table i and 0 in another one,
    with noise, `z = w_1 w_2`, and `q` are their means. Cells are counted as if users came from a
    Poisson law, which a fixed number of users takes away again. [docs/overlaps-decoding.md]

    Args:
        layout: of the tables.
        absent: probability of a 1 where nobody came.
        present: the same where somebody came.
        users: of each table; float64[...].
        share: of them who are in both.
    """
    gap = (present - absent) ** 2
    noise = absent * (1 - absent) / gap, present * (1 - present) / gap
    both = share * users
    if layout.universe is not None:
        return _universe_deviations(layout, noise, users / layout.universe, share)
    shares = level_shares(layout.levels)
    rates = shares * users[..., None] / layout.cells_per_level
    one = np.maximum(np.exp(-rates), _LEAST_EMPTY)
    two = np.maximum(np.exp(-rates * (2 - share)), _LEAST_EMPTY)
    variance = _influence_variance(noise, one, two)
    information = (shares**2 / (layout.cells_per_level * variance)).sum(axis=-1)
    return np.asarray(np.sqrt(np.maximum(1 / information - both, 0)))


def _universe_deviations(
    layout: CellLayout, noise: tuple[float, float], each: Floats, share: float
) -> Floats:
    """Return the deviations of one user a cell, of the share `each` of the universe.

    The product of two debiased bits is 1 for a user of both tables, and else 0.
    """
    universe = float(layout.universe or 1)
    both, here, away = share * each, 1 + noise[1], noise[0]
    only = each - both
    square = both * here**2 + 2 * only * here * away + (1 - both - 2 * only) * away**2
    left_out = (universe - layout.cells) / max(universe - 1, 1)
    variance = square - both + both * (1 - both) * left_out
    return np.asarray(universe * np.sqrt(np.maximum(variance, 0) / layout.cells))


def _influence_variance(noise: tuple[float, float], one: Floats, two: Floats) -> Floats:
    """Return the variance of the influence of a cell.

    Args:
        noise: variance of a debiased bit of an empty cell, and of another one.
        one: share of cells that are empty in a table.
        two: the same of both tables.
    """
    first, second, cross, product = _moments(noise, one, two)
    square = 2 * first / one**2 + second / two**2 + 2 * cross / one**2 - 4 * product / (one * two)
    return np.asarray(square - 1)


def _moments(
    noise: tuple[float, float], one: Floats, two: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the means of `w**2`, `z**2`, `w_1 w_2` and `w z`, where `z = w_1 w_2`."""
    empty, full = 1 + noise[0], noise[1]
    square = one * empty + (1 - one) * full
    other = one - two  # empty in one table only
    pairs = two * empty**2 + 2 * other * empty * full + (1 - 2 * one + two) * full**2
    product = two * empty + other * full  # w_1**2 w_2: the second one must be empty
    return square, pairs, two, product
