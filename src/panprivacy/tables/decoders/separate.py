"""One answer from several tables of disjoint users, whose counts are not added up.

Where users share cells, the meaning of counts depends on the number of users in a table. The sum of
the counts of two tables has fewer collisions than the counts of one table with all users, and more
than their mean suggests where one table has more users than the other. So each table is decoded
separately, and the answers are added up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.tables.decoders.intervals import Floats, Measured, Model


@dataclass(frozen=True, slots=True)
class SeparateModel:
    """The sum of a quantity over tables of different users, from the noisy counts of each.

    Args:
        each: what the counts of one table say.
        tables: number of tables.
        hides: whether an answer may be off by what collisions hide: that adds up, other than noise.
    """

    each: Model
    tables: int
    hides: bool = False

    def estimate(self, ones: ArrayLike) -> float:
        """Return the estimates of the tables, added up."""
        return sum(map(self.each.estimate, self._parts(ones)))

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """Return the estimate, and both ends of its confidence interval.

        Distances from the estimates to the ends of their intervals add up like deviations: this is
        the method of variance estimates recovery (Zou and Donner 2008). What collisions hide adds
        up as it is: there all intervals hold together, and the ends are added up.
        """
        parts = self._parts(ones)
        level = 1 - (1 - confidence) / self.tables if self.hides else confidence
        value, low, high = np.array([self.each.answer(part, level) for part in parts]).T
        if self.hides:
            return float(value.sum()), float(low.sum()), float(high.sum())
        total = float(value.sum())
        below, above = (math.hypot(*distances) for distances in (value - low, high - value))
        return total, max(total - below, 0.0), total + above

    def measured(self, ones: ArrayLike) -> Measured:
        """Return the same of each table, added up; the tables have independent noise."""
        parts = [self.each.measured(part) for part in self._parts(ones)]
        estimates, errors, biases = zip(*parts, strict=True)
        return Measured(sum(estimates), math.hypot(*errors), sum(biases))

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation where the tables have equal shares of the truth."""
        each = self.each.deviation(np.asarray(truth, float) / self.tables)
        return each * (self.tables if self.hides else math.sqrt(self.tables))

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that output noise causes."""
        return self.each.output_share(truth / self.tables)

    def _parts(self, ones: ArrayLike) -> list[Floats]:
        return np.split(np.asarray(ones, float), self.tables)
