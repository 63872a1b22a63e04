"""The law of the patterns of cells, given how many users have each pattern of tables.

Let `n_s` be the number of users whose tables are just those of `s`, and `U_S` the number of users
of any table of S. A cell is empty in all tables of S if no user of the union is in it. That has the
probability `q_S = (1 - p/m)**U_S`, exactly, where a level of m cells takes a user with probability
p; of one user a cell it is `1 - U_S/universe`. Noise is independent in all bits, so the patterns of
a cell have a law that is linear in all `q_S`, and `q_S` is the mean of a product over tables
(docs/overlaps-decoding.md).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.statistics.overlaps.pairs import PairNoise
from panprivacy.statistics.overlaps.patterns import MOST_TABLES, CellLayout, Floats, Transform
from panprivacy.tables.decoders.levels import level_shares

_MOST_EXPONENT = 100.0
"""Noise may take an estimate of users so far below 0."""
_FULLEST = 1e-60
"""A fuller level tells nothing that a float can hold."""


@dataclass(frozen=True, slots=True)
class BitNoise:
    """How bits of tables tell whether cells are empty.

    Args:
        absent: of each table, the probability that a cell without a user is a 1.
        present: that a cell with one user or more is a 1.
    """

    absent: tuple[float, ...]
    present: tuple[float, ...]

    def debias(self, shares: Floats) -> Floats:
        """Return the mean of the product of debiased bits over each set of tables.

        The debiased bit is `(present - x)/(present - absent)`, of mean 1 in an empty cell and 0 in
        another one.

        Args:
            shares: of the patterns of bits; float64[..., 2**k].
        """
        return _transforms(self).debias(shares)

    def squares(self, shares: Floats) -> Floats:
        """Return the mean of the square of the product."""
        return _transforms(self).squares(shares)

    def law(self, empty: Floats) -> Floats:
        """Return the probability of each pattern of bits: the inverse of `debias`."""
        return _transforms(self).law(empty)

    def influence(self, weights: Floats) -> Floats:
        """Return the weighted sum of the products of debiased bits, for each pattern of bits.

        Args:
            weights: of the set of tables of each product; float64[..., 2**k].
        """
        return _transforms(self).influence(weights)

    @property
    def spread(self) -> float:
        """The largest variance of a debiased bit, given whether its cell is empty."""
        pairs = zip(self.absent, self.present, strict=True)
        return max(max(a * (1 - a), p * (1 - p)) / (p - a) ** 2 for a, p in pairs)


class _Transforms(NamedTuple):
    """See the methods of `BitNoise`."""

    debias: Transform
    squares: Transform
    law: Transform
    influence: Transform


@functools.lru_cache(maxsize=64)
def _transforms(noise: BitNoise) -> _Transforms:
    absent, present = np.array(noise.absent), np.array(noise.present)
    gap, ones = present - absent, np.ones_like(present)
    zero, one = present / gap, (present - 1) / gap  # the debiased values of a 0 and of a 1
    return _Transforms(
        _transform([[ones, ones], [zero, one]]),
        _transform([[ones, ones], [zero**2, one**2]]),
        _transform([[1 - present, gap], [present, -gap]]),
        _transform([[ones, zero], [ones, one]]),
    )


def _transform(matrix: list[list[Floats]]) -> Transform:
    """Return the transform whose matrix has these entries, each for all tables."""
    return Transform(np.moveaxis(np.array(matrix), -1, 0))


@functools.lru_cache(maxsize=MOST_TABLES)
def _without(tables: int) -> Transform:
    """Return what sums patterns without any table of each set."""
    return Transform(np.tile([[1.0, 1.0], [1.0, 0.0]], (tables, 1, 1)))


@functools.lru_cache(maxsize=MOST_TABLES)
def _moebius(tables: int) -> Transform:
    """Return the inverse of `_without`, which is symmetric."""
    return Transform(np.tile([[0.0, 1.0], [1.0, -1.0]], (tables, 1, 1)))


@functools.lru_cache(maxsize=64)
def _rates(layout: CellLayout) -> Floats:
    shares = level_shares(layout.levels) / layout.cells_per_level
    return -np.log1p(-np.minimum(shares, 1 - 1e-9))


@dataclass(frozen=True, slots=True)
class OccupancyModel:
    """The law of pattern counts, given the numbers of users.

    Arrays have levels on the last axis but one, and patterns or sets of tables on the last.

    Args:
        layout: of the tables.
        noise: of their bits.
    """

    layout: CellLayout
    noise: BitNoise | PairNoise

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self.noise.absent)

    @property
    def rates(self) -> Floats:
        """Decrease of the logarithm of the share of empty cells by each user; float64[levels]."""
        return _rates(self.layout)

    @property
    def limit(self) -> float:
        """The number of users that fill every cell, or the universe."""
        if self.layout.universe is not None:
            return float(self.layout.universe)
        cells = self.layout.cells_per_level
        return (math.log(cells) + 10) * cells * 2.0 ** (self.layout.levels - 1)

    def unions(self, users: ArrayLike) -> Floats:
        """Return the users of any table of each set, from those of each pattern."""
        apart = _without(self.tables)(np.asarray(users, float))
        return apart[..., :1] - apart

    def users(self, unions: Floats) -> Floats:
        """Return the users of each pattern, from those of any table of each set (Moebius)."""
        found = -_moebius(self.tables)(unions)
        found[..., 0] = 0
        return found

    def weights(self, chosen: ArrayLike) -> Floats:
        """Return the weights of unions in a sum over patterns; that of no table has to have 0."""
        return -_moebius(self.tables)(np.asarray(chosen, float))

    def possible(self, unions: Floats) -> Floats:
        """Return the nearest possible users of each pattern, all of them as many as the union.

        Noise takes some numbers of users below 0. To cut these alone would add to all users what
        noise took away, which is very much of many patterns. So the others are made smaller, all
        by as much: it is the projection on a simplex.
        """
        users = self.users(unions)[..., 1:]
        total = np.clip(unions[..., -1:], 0, self.limit)
        falling = -np.sort(-users, axis=-1)
        excess = np.cumsum(falling, axis=-1) - total
        numbers = np.arange(1, users.shape[-1] + 1)
        kept = (falling * numbers > excess).sum(axis=-1, keepdims=True)
        last = np.maximum(kept, 1) - 1
        cut = np.take_along_axis(excess, last, axis=-1) / (last + 1)
        return np.concatenate((np.zeros_like(total), np.maximum(users - cut, 0)), axis=-1)

    def empty(self, unions: Floats) -> Floats:
        """Return the probability that a cell is empty in all tables of each set."""
        if self.layout.universe is not None:
            return 1 - unions[..., None, :] / self.layout.universe
        return np.exp(np.minimum(-self.rates[:, None] * unions[..., None, :], _MOST_EXPONENT))

    def slopes(self, empty: Floats) -> Floats:
        """Return the change of these probabilities by each user of the union."""
        if self.layout.universe is not None:
            return np.full_like(empty, -1 / self.layout.universe)
        return -self.rates[:, None] * np.maximum(empty, _FULLEST)

    def fixed(self, users: Floats, chosen: Floats) -> Floats:
        """Return by how much the variance of an unbiased sum over patterns is smaller.

        Users do not come from Poisson laws: their numbers are fixed. Of an unbiased estimate of
        `chosen @ n` the Poisson number of each pattern would add its variance (Sherman-Morrison).

        Args:
            users: of each pattern; float64[..., 2**k].
            chosen: weights of patterns; float64[..., 2**k].
        """
        added = (users * chosen**2).sum(axis=-1)
        universe, cells = self.layout.universe, self.layout.cells
        if universe is None:
            return added
        added = added - (users * chosen).sum(axis=-1) ** 2 / universe
        drawn = (cells - 1) / (universe - 1) if universe > 1 else 1.0
        return added * drawn * universe / cells
