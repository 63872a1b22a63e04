"""Unbiased sums, sums of squares and sums of products of noisy cells, and their errors.

A cell of the table holds `v + n`: what its users add up to, each with a separate sign, and noise
of a known law. For signs and cells of which any four users' are independent, over m cells

| sum over cells | mean | variance |
|---|---|---|
| `(v + n)**2` | `F + m s` | `4 s F + m (k + 2 s**2) + 2 (F**2 - F4) / m` |
| `(v + n) (w + n')` | `P` | `s (F + G) + m s**2 + (F G + P**2 - 2 P22) / m` |

where F and G are the sums of the squares of the states of v and w, P that of their products, F4
and P22 those of fourth powers and of products of squares, and s and k the variance and the fourth
cumulant of the noise. docs/guarantees/moments.md derives them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.tables.decoders.intervals import (
    EstimateModel,
    Floats,
    Measured,
    Measuring,
    confidence_interval,
    discrete_laplace_variance,
    noise_quantile,
)

_SQUARED_LAPLACE = 30.0
"""A third of the excess kurtosis of the square of Laplace noise, rounded up: 85.7/3."""

_FARTHEST = 1e9
"""Times the estimate and its error: where the search for the end of an interval gives up."""


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise of a cell.

    Args:
        variance: variance of the noise.
        cumulant: its fourth cumulant; 0 for normal noise.
    """

    variance: float
    cumulant: float

    @classmethod
    def laplace(cls, scale: Fraction) -> Self:
        """Return discrete Laplace noise of this scale."""
        width = float(scale)
        ratio = math.exp(-1 / width) if width else 0.0
        variance = discrete_laplace_variance(width)
        # E x**4 = 2 r (1 + 10 r + r**2) / (1 - r)**4 with r the ratio, and 24 width**4 far out
        fourth = (
            2 * ratio * (1 + 10 * ratio + ratio**2) / math.expm1(-1 / width) ** 4
            if width < 1e3
            else 24 * width**4
        )
        return cls(variance, fourth - 3 * variance**2)

    def __add__(self, other: CellNoise) -> CellNoise:
        return CellNoise(self.variance + other.variance, self.cumulant + other.cumulant)

    def __rmul__(self, times: int) -> CellNoise:
        return CellNoise(times * self.variance, times * self.cumulant)

    @property
    def of_squares(self) -> float:
        """The variance of its square."""
        return self.cumulant + 2 * self.variance**2

    @property
    def of_products(self) -> float:
        """The variance of its product with other noise of the same law."""
        return self.variance**2

    @property
    def share(self) -> float:
        """Share of a Laplace variable in a normal and a Laplace variable with the same tails."""
        return min(math.sqrt(max(self.cumulant, 0.0) / 3) / self.variance, 1.0)


@dataclass(frozen=True, slots=True)
class SumModel(EstimateModel):
    """The sum of all states, from one noisy cell.

    Args:
        noise: noise of the cell, with that of the release.
    """

    noise: CellNoise

    def estimate(self, ones: ArrayLike) -> float:
        """Return the cell."""
        return float(np.sum(ones))

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of the noise, for any truth."""
        return np.full_like(np.asarray(truth, float), math.sqrt(self.noise.variance))

    def output_share(self, truth: float) -> float:  # noqa: ARG002
        """Return the part of the variance that is like that of a Laplace variable."""
        return self.noise.share

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return an interval for a sum of at least 0, widened by 1 for whole-number noise."""
        width = noise_quantile(confidence, self.noise.share) * math.sqrt(self.noise.variance) + 1
        return max(estimate - width, 0.0), max(estimate + width, 0.0)


@dataclass(frozen=True, slots=True)
class SquaresModel(EstimateModel):
    """The sum of the squares of all states, from each noisy cell or from one noisy sum.

    Args:
        cells: number of cells of the table.
        noise: noise of a cell, with that of a release that publishes it.
        clip: the clip of cells; 0 if they are published.
        released: variance of the noise on the one sum.
        limit: the largest truth for which the clip is made; infinite without one.
        slack: what the clip hides up to there.
        tables: how many tables the one sum is of, each of other users.
    """

    cells: int
    noise: CellNoise
    clip: int = 0
    released: float = 0.0
    limit: float = math.inf
    slack: float = 0.0
    tables: int = 1

    def estimate(self, ones: ArrayLike) -> float:
        """Return the unbiased estimate, which may be below 0."""
        numbers = np.asarray(ones, float)
        total = float(numbers.sum()) if self.clip else float(numbers @ numbers)
        return total - self.tables * self.cells * self.noise.variance

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the deviation, a bound for several tables: cells, collisions, output noise."""
        moment = np.asarray(truth, float)
        users = 4 * self.noise.variance * moment + 2 * moment**2 / self.cells
        return np.sqrt(users + self._empty + self.released)

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that is like that of a Laplace variable, by the tails."""
        return _share(float(self.deviation(truth)), self._empty, self.released, self.cells)

    def bias(self, truth: ArrayLike) -> Floats:
        """Return the largest amount by which the clip may lower the mean."""
        return np.full(np.shape(truth), self.slack)

    @property
    def _empty(self) -> float:
        return self.tables * self.cells * self.noise.of_squares

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return an interval for truths of at least 0; unbounded where a clip could hide more."""
        start = max(estimate, 0.0)
        far = _FARTHEST * (start + float(self.deviation(0)))
        limit = min(max(self.limit, start), far)
        return confidence_interval(
            self, start, confidence, limit=limit, beyond=math.inf, slack=self.slack + 1
        )


@dataclass(frozen=True, slots=True)
class ProductsModel(Measuring):
    """The sum of the products of the states of two streams.

    Args:
        cells: number of cells of each table.
        noise: noise of a cell, with that of a release that publishes it.
        signed: whether the answer may be below 0.
        clip: the clip of cells; 0 if they are published.
        released: variance of the noise on each released sum.
        limit: the largest sum of squares for which the clip is made; infinite without one.
        slack: what the clip hides up to there.
        tables: how many pairs of tables the sums are of, each of other users.
    """

    cells: int
    noise: CellNoise
    signed: bool
    clip: int = 0
    released: float = 0.0
    limit: float = math.inf
    slack: float = 0.0
    tables: int = 1

    def sums(self, ones: ArrayLike) -> tuple[float, float, float]:
        """Return the unbiased sums of products, and of the squares of either stream."""
        numbers = np.asarray(ones, float)
        if self.clip:
            product, one, other = map(float, numbers)
        else:
            left, right = numbers[: self.cells], numbers[self.cells :]
            product, one, other = float(left @ right), float(left @ left), float(right @ right)
        empty = self.tables * self.cells * self.noise.variance
        return product, one - empty, other - empty

    def estimate(self, ones: ArrayLike) -> float:
        """Return the unbiased estimate, which may be below 0."""
        return self.sums(ones)[0]

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the worst deviation: both streams are equal and have this sum of squares."""
        moment = np.asarray(truth, float)
        return self._deviation(moment, moment, moment)

    def _deviation(self, product: Floats, one: Floats, other: Floats) -> Floats:
        users = self.noise.variance * (one + other) + (one * other + product**2) / self.cells
        return np.sqrt(users + self._empty + self.released)

    @property
    def _empty(self) -> float:
        return self.tables * self.cells * self.noise.of_products

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that is like that of a Laplace variable, by the tails."""
        return _share(float(self.deviation(truth)), self._empty, self.released, self.cells)

    def measured(self, ones: ArrayLike) -> Measured:
        """Return the estimate, its standard error by the sums of squares, and the clip's bias."""
        product, *squares = self.sums(ones)
        one, other = (np.asarray(max(square, 0.0)) for square in squares)
        deviation = float(self._deviation(np.asarray(product), one, other))
        return Measured(product, deviation, self.slack)

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """Return the estimate, and both ends of its interval, by the released sums of squares."""
        product, *squares = self.sums(ones)
        _, deviation, _ = self.measured(ones)
        share = _share(deviation, self._empty, self.released, self.cells)
        width = noise_quantile(confidence, share) * deviation + self.slack + 1
        if max(squares) > self.limit:
            width = math.inf
        low, high = product - width, product + width
        return (product, low, high) if self.signed else (product, max(low, 0.0), max(high, 0.0))


def _share(deviation: float, empty: float, released: float, cells: int) -> float:
    """Return the part of a variance that is like that of a Laplace variable.

    A normal variable and a Laplace variable of this share have an excess kurtosis of `3 share**2`.
    """
    squares = _SQUARED_LAPLACE / cells * (empty / deviation**2) ** 2
    return min(math.sqrt(squares + (released / deviation**2) ** 2), 1.0)
