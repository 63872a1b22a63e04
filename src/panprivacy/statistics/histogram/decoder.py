"""What the noised counts of the bins say: counts, shares, quantiles and a mean, with intervals.

The noise of the bins is independent and of one law, whose variance and fourth cumulant are public.
A sum of bins with weights has the weighted sum of these, from which its interval follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from panprivacy.tables.counters.running import Sum
from panprivacy.tables.decoders.intervals import Floats, Measured, noise_quantiles
from panprivacy.tables.edges import Edges

_GRAIN = 1.0
"""Spacing of the values of the noise of a bin."""

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class BinsModel:
    """The law of released counts of bins.

    Args:
        edges: of the bins.
        values: the noised count of each bin, float64[bins].
        variance: of the noise of each.
        fourth: the fourth cumulant of that noise.
        signed: whether deletions may take a count below 0.
    """

    edges: Edges
    values: Floats
    variance: float
    fourth: float
    signed: bool = False

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of a bin."""
        return math.sqrt(self.variance)

    @property
    def total(self) -> float:
        """The estimate of the number of events."""
        return float(self.values.sum())

    def counts(self, confidence: float) -> tuple[Floats, Floats]:
        """Return both ends of the intervals of all counts, which hold together.

        The noise of bins is independent, so that n intervals hold together with the product of
        their probabilities.
        """
        each = confidence ** (1 / self.edges.bins)
        reach = Sum(0.0, self.variance, self.fourth, grain=_GRAIN).reach(each)
        low, high = self.values - reach, self.values + reach
        return (low, high) if self.signed else (np.maximum(low, 0), np.maximum(high, 0))

    def events(self, confidence: float) -> Ends:
        """Return the interval of the number of events."""
        reach = self._total_reach(confidence)
        low, high = self.total - reach, self.total + reach
        return (low, high) if self.signed else (max(low, 0.0), max(high, 0.0))

    def shares(self, confidence: float) -> tuple[Floats, Floats, Floats]:
        """Return the share of events below the end of each bin but the last, and a band.

        The band holds all shares together. By Lévy's inequality the largest of the sums of the
        first bins, over how many they are, strays farther than r at most twice as often as the sum
        of all bins; so do the sums of the last ones. Where neither does, what is below an edge and
        what is above it are within r, and the share lies between those that these ends allow.
        """
        reach = self._total_reach(1 - (1 - confidence) / 4)
        below = np.cumsum(self.values)[:-1]
        above = self.total - below
        low = _ratio(below - reach, above + reach, 0.0)
        high = _ratio(below + reach, above - reach, 1.0)
        return np.clip(_ratio(below, above, 0.5), low, high), low, high

    def quantile(self, share: float, confidence: float) -> tuple[float, Ends]:
        """Return the smallest value that so large a share of events does not exceed.

        With C events in bins up to k of N in all, it is in the first bin where `C - share N` is 0
        or more. So two bounds suffice: one of that difference at the bin, and one at the bin
        before.

        Args:
            share: 0 to 1.
            confidence: how often the interval holds the value.
        """
        bins = self.edges.bins
        below = np.concatenate([[0.0], np.cumsum(self.values)])
        difference = below - share * self.total
        before = np.arange(bins + 1)
        reach = self._reaches(
            confidence,
            (1 - share) ** 2 * before + share**2 * (bins - before),
            (1 - share) ** 4 * before + share**4 * (bins - before),
        )
        may_reach = np.flatnonzero(difference[1:] + reach[1:] >= 0)
        may_lack = np.flatnonzero(difference[:-1] - reach[:-1] < 0)
        first = int(may_reach[0]) if len(may_reach) else bins - 1
        last = int(may_lack[-1]) if len(may_lack) else 0
        ends = float(self.edges.lows[min(first, last)]), float(self.edges.highs[max(first, last)])
        return self.edges.at(_crossing(difference)), ends

    def mean(self, confidence: float) -> tuple[Measured, Ends]:
        """Return the mean of the values, each cut to the first and the last edge.

        A value is known as far as its bin says, so the truth lies between the means of the low and
        of the high ends. A mean m is possible as long as the sum of `count (high - m)` may be 0 or
        more, and that of `count (low - m)` 0 or less: Fieller's interval of a ratio, from one
        release.
        """
        lows, highs = self.edges.cut
        first, last = float(lows[0]), float(highs[-1])
        if self.total <= 0:
            middle = (first + last) / 2
            return Measured(middle, math.nan), (first, last)
        middles = (lows + highs) / 2
        value = float(self.values @ middles) / self.total
        high = self._largest_mean(highs, confidence, first, last)
        low = -self._largest_mean(-lows, confidence, -last, -first)
        error = self.deviation * math.sqrt(float(((middles - value) ** 2).sum())) / self.total
        bias = float(np.maximum(self.values, 0) @ (highs - lows)) / 2 / self.total
        return Measured(value, error, bias), (min(low, high), max(low, high))

    def _largest_mean(self, ends: Floats, confidence: float, least: float, most: float) -> float:
        """Return the largest mean that is possible of values at these ends of their bins."""
        moves = ends - most
        if float(self.values @ moves) + self._reach(confidence, moves) >= 0:
            return most
        low, high = least, most  # it is possible up to somewhere between
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            moves = ends - middle
            possible = float(self.values @ moves) + self._reach(confidence, moves) >= 0
            low, high = (middle, high) if possible else (low, middle)
        return high

    def _total_reach(self, confidence: float) -> float:
        """Return how far the noise of the sum of all bins strays."""
        return self._reach(confidence, np.ones(self.edges.bins))

    def _reach(self, confidence: float, weights: Floats) -> float:
        """Return how far the noise of a weighted sum of bins strays."""
        squares, fourths = float((weights**2).sum()), float((weights**4).sum())
        grain = _GRAIN * float(np.abs(weights).max())
        return Sum(0.0, squares * self.variance, fourths * self.fourth, grain=grain).reach(
            confidence
        )

    def _reaches(self, confidence: float, squares: Floats, fourths: Floats) -> Floats:
        """Return the same for many sums, by the sums of squares and fourth powers of weights."""
        variances, cumulants = squares * self.variance, fourths * self.fourth
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.sqrt(np.maximum(cumulants, 0) / 3) / variances
        quantiles = noise_quantiles(confidence, np.nan_to_num(np.minimum(parts, 1.0)))
        reaches: Floats = quantiles * np.sqrt(variances) + _GRAIN / 2 * (squares > 0)
        return reaches


_HALVINGS = 60


def _ratio(part: Floats, rest: Floats, neither: float) -> Floats:
    """Return `part / (part + rest)`, each at least 0; `neither` where both are 0."""
    part, rest = np.maximum(part, 0), np.maximum(rest, 0)
    both = part + rest
    return np.divide(part, both, out=np.full_like(both, neither), where=both > 0)


def _crossing(difference: Floats) -> float:
    """Return where a rising curve with noise reaches 0, in bins.

    It is the middle of where the largest value so far and where the smallest value from there on
    reach 0.
    """
    places = np.arange(len(difference), dtype=float)
    rising = np.maximum.accumulate(difference)
    falling = np.minimum.accumulate(difference[::-1])[::-1]
    found = [_reached(one, places) for one in (rising, falling)]
    return sum(found) / 2


def _reached(curve: Floats, places: Floats) -> float:
    """Return where a curve that never falls reaches 0, between places if it can."""
    above = int(np.searchsorted(curve, 0.0))
    if above == 0:
        return 0.0
    if above == len(curve):
        return float(places[-1])
    low, high = curve[above - 1], curve[above]
    return float(above - 1 + (0 - low) / (high - low))
