"""The mean of `min(state, tau)` over the users that came, from one release of a cropped sum.

The number of cells that count tells the sum. The first values of the blocks tell who did not come:
a cell of state 0 holds the first value of a high block more often than that of another block, and
a cell of a state from 1 to the bound does so equally often, whatever the state is. So two counts
leave, and the mean is the ratio of what they tell, with Fieller's interval.

[docs/guarantees/blocks.md#who-came]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import float_above
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Name, Release
from panprivacy.tables.cells.law import Law
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.decoders.intervals import discrete_laplace_variance, noise_quantile

MEAN = Name("", "mean")

_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class FirstValues:
    """How often a cell holds the first value of a block.

    Args:
        block: tau.
        high: bool[blocks], whether the law is larger on each.
        hit: probability of the first value of a high block, in state 0.
        miss: the same in any state from 1 to that before the last block.
    """

    block: int
    high: NDArray[np.bool_]
    hit: Fraction
    miss: Fraction

    @classmethod
    def of(cls, law: Law, block: int) -> FirstValues:
        """Return those of a law of blocks."""
        weights = law.weights
        firsts = weights[::block]
        high = firsts == weights.max()
        before = np.roll(weights, 1)[::block]  # of the noise that takes state 1 there
        total = int(weights.sum())
        hit, miss = (Fraction(int(one[high].sum()), total) for one in (firsts, before))
        return cls(block, high, hit, miss)

    @property
    def scores(self) -> NDArray[np.int64]:
        """What a cell of each value counts for: in the sum, and among those that did not come."""
        counts = np.repeat(~self.high, self.block).astype(np.int64)
        empty = np.zeros(len(counts), np.int64)
        empty[:: self.block] = np.where(self.high, 1, -1)
        return np.array([counts, empty])

    @property
    def away(self) -> float:
        """The mean of the second score in a state from 1."""
        return float(2 * self.miss - Fraction(1, self.block))

    @property
    def gain(self) -> float:
        """By how much it is larger in state 0."""
        return float(2 * (self.hit - self.miss))

    def counted(self, fewest: Fraction, most: Fraction) -> list[tuple[Fraction, Fraction]]:
        """Return the smallest and the largest probability, over all states, of each set of scores.

        Args:
            fewest: probability that a cell counts in state 0.
            most: the same from state tau on.
        """
        step, each = (most - fewest) / self.block, Fraction(1, self.block)
        corners = [(fewest, self.hit), (fewest + step, self.miss), (most, self.miss)]
        if self.block > 1:  # states of the last block
            corners += [(fewest + step, self.hit), (most - step, self.hit)]
        found = []
        for chosen in range(1, 8):  # of four scores, the last of which is left out: a complement
            chances = []
            for counts, first in corners:
                parts = first, each - first, counts - each + first
                chances.append(sum(part for k, part in enumerate(parts) if chosen >> k & 1))
            found.append((Fraction(min(chances)), Fraction(max(chances))))
        return found


@dataclass(frozen=True, slots=True)
class MeanModel:
    """Reads the mean off two noised counts.

    Args:
        cells: number of cells, of all tables.
        tau: where states are cropped.
        absent: how often a cell of state 0 counts.
        contrast: how much more often one of state tau or more does.
        away: the mean of the second score in a state from 1.
        gain: by how much it is larger in state 0.
        noise: variances of the output noise on both counts.
        sharing: so many users of one cell that have the largest state are told from none; None
            where each user has an own cell.
    """

    cells: int
    tau: int
    absent: float
    contrast: float
    away: float
    gain: float
    noise: tuple[float, float]
    sharing: int | None

    def answer(self, counts: Sequence[int], confidence: float) -> tuple[float, float, float]:
        """Return the mean, and both ends of its interval, within 1 and tau."""
        total = max((counts[0] - self.cells * self.absent) * self.tau / self.contrast, 0.0)
        came, slope, hidden = self._came(counts[1])
        least, middle, most = self._sums(total)
        value = float(np.clip(middle / came if came > 0 else math.inf, 1, self.tau))

        def too_low(mean: float) -> bool:
            return least - mean * came > self._reach(mean, 1.0, slope, hidden, counts, confidence)

        def too_high(mean: float) -> bool:
            steep = 1.0 if self.sharing is None else math.exp(min(most / self._limit, 500))
            reach = self._reach(mean, steep, slope, hidden, counts, confidence)
            return most - mean * came < -reach

        return value, _last(too_low, value, 1.0), _last(too_high, value, float(self.tau))

    def came(self, count: int) -> float:
        """Return the estimated number of users that came, from the second count."""
        return self._came(count)[0]

    def is_sure_of_users(self, count: int, confidence: float) -> bool:
        """Return whether the interval of the number of users that came is above 0."""
        came, slope, _ = self._came(count)
        state, output = self.cells / self.tau, self.noise[1]
        quantile = noise_quantile(confidence, output / (state + output))
        return came > quantile * slope / self.gain * math.sqrt(state + output)

    @property
    def _limit(self) -> float:
        """The largest sum over cells."""
        return float(self.tau * self.cells)

    def _came(self, count: int) -> tuple[float, float, float]:
        """Return the users that came, how they move with cells of nobody, and what is hidden."""
        empty = (count - self.cells * self.away) / self.gain
        if self.sharing is None:
            return self.cells - empty, 1.0, 0.0
        empty = min(max(empty, 1.0), float(self.cells))
        load = math.log(self.cells / empty)
        share = min(load / self.sharing, 1.0)
        beyond = (share * math.exp(1 - share)) ** self.sharing
        return self.cells * load, self.cells / empty, self.cells * beyond

    def _sums(self, total: float) -> tuple[float, float, float]:
        """Return the least sum over users of a sum over cells, one in the middle and the most."""
        if self.sharing is None:
            return total, total, total
        share = min(total / self._limit, 1 - 1e-12)
        middle = -2 * self._limit * math.log1p(-share / 2)
        return total, middle, -self._limit * math.log1p(-share)

    def _reach(
        self,
        mean: float,
        steep: float,
        slope: float,
        hidden: float,
        counts: Sequence[int],
        confidence: float,
    ) -> float:
        """Return how far chance takes the sum less the mean times the users that came."""
        first, second = steep * self.tau / self.contrast, mean * slope / self.gain
        each = 1 / self.tau
        counted = min(max(counts[0] / self.cells, 0.0), 1.0)
        score = min(max(counts[1] / self.cells, -each), each)
        both = -(each - score) / 2 - counted * score
        variance = first**2 * counted * (1 - counted) + second**2 * (each - score**2)
        state = self.cells * max(variance + 2 * first * second * both, 0.0)
        output = first**2 * self.noise[0] + second**2 * self.noise[1]
        every = state + output
        quantile = noise_quantile(confidence, output / every if every else 1.0)
        bent = 0.0  # a logarithm is bent: its mean is off by half of a relative variance
        if self.sharing is not None:
            bent = second**2 * (self.cells * each + self.noise[1]) / (2 * self.cells * mean)
        return quantile * math.sqrt(every) + mean * hidden + bent


def _last(refused: Callable[[float], bool], start: float, end: float) -> float:
    """Return the farthest mean that is not refused, on the way from the start to the end."""
    if not refused(end):
        return end
    for _ in range(_HALVINGS):
        middle = (start + end) / 2
        start, end = (start, middle) if refused(middle) else (middle, end)
    return start


@dataclass(frozen=True, slots=True)
class MeanReading:
    """A release of two counts of cells, of which the mean follows.

    A user moves the first by 1 at most, and the second by 2; the noise on both hides that together.

    Args:
        plan: of the statistic: a `CroppedPlan` without levels.
        firsts: how often a cell holds the first value of a block.
        chances: how often a cell counts in state 0, and how much more often from tau on.
        sharing: as for a `MeanModel`.
        tables: how many tables the counts are of.

    Raises:
        PlanError: hashed users are in several tables, which are read one by one.
    """

    plan: Any
    firsts: FirstValues
    chances: tuple[float, float]
    sharing: int | None
    tables: int = 1

    def __post_init__(self) -> None:
        """Refuse several tables of hashed users."""
        if self.tables > 1 and self.sharing is not None:
            message = "mean: shards of hashed users have no mean together: say universe=, or let "
            message += "each shard release"
            raise PlanError(message)

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The scales of the noise: less on the second count, of which a mean rests most.

        With scales s and t a release costs `1/s + 2/t`.
        """
        heavier = max(1, round((self.plan.tau / 2) ** (2 / 3)))
        share = Fraction(1 + heavier) / self.plan.split.budget.release
        return share, 2 * share / heavier

    @property
    def size(self) -> int:
        """Two counts."""
        return 2

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """Return both counts of cells."""
        counts: NDArray[np.int64] = cells.weighted(table, self.firsts.scores)
        return counts

    @property
    def model(self) -> MeanModel:
        """The model that reads the counts."""
        first, second = (discrete_laplace_variance(float(scale)) for scale in self.scales)
        plan, told = self.plan, (self.firsts.away, self.firsts.gain)
        cells = self.tables * plan.cells
        return MeanModel(cells, plan.tau, *self.chances, *told, (first, second), self.sharing)

    def answer(self, counts: NDArray[np.int64], confidence: float) -> Release:
        """Return the mean with its interval."""
        plan, numbers = self.plan, tuple(counts.tolist())
        value, low, high = self.model.answer(numbers, confidence)
        epsilon = float_above(plan.split.budget.release)
        nobody = not self.model.is_sure_of_users(numbers[1], confidence)
        note = "more noise than signal: perhaps nobody came" if nobody else None
        note = note or note_on(low, high, value=value)
        unit = plan.unit_of(MEAN.question)
        return Release(value, low, high, confidence, epsilon, numbers, MEAN, unit, note)
