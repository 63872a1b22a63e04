"""The law of the patterns of cells, given how many users have each pattern of tables.

Let `n_s` be the number of users whose tables are just those of `s`, and `U_S` the number of users
of any table of S. A cell is empty in all tables of S if no user of the union is in it. That has the
probability `q_S = (1 - p/m)**U_S`, exactly, where a level of m cells takes a user with probability
p; of one user a cell it is `1 - U_S/universe`. Noise is independent in all bits, so the patterns of
a cell have a law that is linear in all `q_S`, and `q_S` is the mean of a product over tables
(docs/overlaps-decoding.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.statistics.overlaps.patterns import CellLayout, Floats, along_tables
from panprivacy.tables.decoders.levels import level_shares

_FULLEST = 1e-60
"""A fuller level tells nothing that a float can hold."""
_LEAST_VARIANCE = 1e-30


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
        zero, one = self._debiased()
        ones = np.ones_like(zero)
        return along_tables(shares, _steps([[ones, ones], [zero, one]]))

    def squares(self, shares: Floats) -> Floats:
        """Return the mean of the square of the product."""
        zero, one = self._debiased()
        ones = np.ones_like(zero)
        return along_tables(shares, _steps([[ones, ones], [zero**2, one**2]]))

    def law(self, empty: Floats) -> Floats:
        """Return the probability of each pattern of bits: the inverse of `debias`."""
        absent, present = np.array(self.absent), np.array(self.present)
        gap = present - absent
        return along_tables(empty, _steps([[1 - present, gap], [present, -gap]]))

    def influence(self, weights: Floats) -> Floats:
        """Return the weighted sum of the products of debiased bits, for each pattern of bits.

        Args:
            weights: of the set of tables of each product; float64[..., 2**k].
        """
        zero, one = self._debiased()
        ones = np.ones_like(zero)
        return along_tables(weights, _steps([[ones, zero], [ones, one]]))

    def _debiased(self) -> tuple[Floats, Floats]:
        """Return the debiased values of a 0 and of a 1, of each table."""
        absent, present = np.array(self.absent), np.array(self.present)
        return present / (present - absent), (present - 1) / (present - absent)

    @property
    def spread(self) -> float:
        """The largest variance of a debiased bit, given whether its cell is empty."""
        pairs = zip(self.absent, self.present, strict=True)
        return max(max(a * (1 - a), p * (1 - p)) / (p - a) ** 2 for a, p in pairs)


@dataclass(frozen=True, slots=True)
class OccupancyModel:
    """The law of pattern counts, given the numbers of users.

    Arrays have levels on the last axis but one, and patterns or sets of tables on the last.

    Args:
        layout: of the tables.
        noise: of their bits.
    """

    layout: CellLayout
    noise: BitNoise

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self.noise.absent)

    @property
    def rates(self) -> Floats:
        """Decrease of the logarithm of the share of empty cells by each user; float64[levels]."""
        shares = level_shares(self.layout.levels) / self.layout.cells_per_level
        return -np.log1p(-np.minimum(shares, 1 - 1e-9))

    @property
    def limit(self) -> float:
        """The number of users that fill every cell, or the universe."""
        if self.layout.universe is not None:
            return float(self.layout.universe)
        cells = self.layout.cells_per_level
        return (math.log(cells) + 10) * cells * 2.0 ** (self.layout.levels - 1)

    def unions(self, users: ArrayLike) -> Floats:
        """Return the users of any table of each set, from those of each pattern."""
        apart = along_tables(np.asarray(users, float), _steps([[1, 1], [1, 0]], self.tables))
        return apart[..., :1] - apart

    def users(self, unions: Floats) -> Floats:
        """Return the users of each pattern, from those of any table of each set (Moebius)."""
        found = -along_tables(unions, _steps([[0, 1], [1, -1]], self.tables))
        found[..., 0] = 0
        return found

    def weights(self, chosen: ArrayLike) -> Floats:
        """Return the weights of unions in a weighted sum over patterns of users."""
        return -along_tables(np.asarray(chosen, float), _steps([[0, 1], [1, -1]], self.tables))

    def possible(self, unions: Floats) -> Floats:
        """Return users of each pattern near such unions: none below 0, and not too many."""
        users = np.maximum(self.users(unions), 0)
        total = users.sum(axis=-1, keepdims=True)
        return users * np.minimum(self.limit / np.maximum(total, self.limit), 1)

    def empty(self, unions: Floats) -> Floats:
        """Return the probability that a cell is empty in all tables of each set."""
        if self.layout.universe is not None:
            return 1 - unions[..., None, :] / self.layout.universe
        return np.exp(-self.rates[:, None] * unions[..., None, :])

    def slopes(self, empty: Floats) -> Floats:
        """Return the change of these probabilities by each user of the union."""
        if self.layout.universe is not None:
            return np.full_like(empty, -1 / self.layout.universe)
        return -self.rates[:, None] * np.maximum(empty, _FULLEST)

    def variances(self, users: Floats, influence: Floats) -> Floats:
        """Return the variance of the mean of a function of patterns over each level's cells.

        Cells are counted as if users came from Poisson laws with these means: `fixed` is what has
        to be subtracted.

        Args:
            users: of each pattern; float64[..., 2**k].
            influence: the function; float64[..., levels, 2**k].
        """
        law = self.noise.law(self.empty(self.unions(users)))
        mean = (law * influence).sum(axis=-1)
        spread = (law * influence**2).sum(axis=-1) - mean**2
        return np.maximum(spread, _LEAST_VARIANCE) / self.layout.cells_per_level

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


def _steps(matrix: Any, tables: int | None = None) -> Floats:
    """Return a matrix for each table, of numbers for each or of one for all."""
    if tables is not None:
        return np.tile(np.array(matrix, float), (tables, 1, 1))
    return np.moveaxis(np.array(matrix, float), -1, 0)
