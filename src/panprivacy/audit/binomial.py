"""Exact binomial tails, for bounds that are wrong as rarely as they say."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDING = 1 + 1e-6
"""Covers what logarithms of factorials round off, with far more runs than anybody makes."""


def clopper_pearson(hits: int, runs: int, error: float) -> tuple[float, float]:
    """Return bounds on a probability, each wrong with a probability of at most `error`."""
    ways = _log_ways(runs)
    return _lower(hits, runs, ways, error), 1 - _lower(runs - hits, runs, ways, error)


def upper_quantile(runs: int, probability: float, error: float) -> int:
    """Return the least number of hits that is exceeded with a probability of at most `error`.

    >>> upper_quantile(20, 0.5, 1e-6), upper_quantile(1_000, 0.5, 1e-6)
    (19, 575)
    """
    if probability >= 1:
        return runs
    law = np.exp(_log_law(_log_ways(runs), probability, 0))
    tails = np.cumsum(law[::-1]) * _ROUNDING
    return runs - int((tails <= error).sum())


def _lower(hits: int, runs: int, ways: Floats, error: float) -> float:
    """Return the largest probability for which that many hits have probability `error` at most."""
    low, high = 0.0, hits / runs
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if np.exp(_log_law(ways, middle, hits)).sum() * _ROUNDING <= error:
            low = middle
        else:
            high = middle
    return low


def _log_law(ways: Floats, probability: float, hits: int) -> Floats:
    """Return the logarithms of the probabilities of at least that many hits."""
    counts, runs = np.arange(hits, len(ways)), len(ways) - 1
    chances = counts * math.log(probability) + (runs - counts) * math.log1p(-probability)
    terms: Floats = ways[hits:] + chances
    return np.maximum(terms, math.log(5e-308))  # below which `exp` underflows


@functools.lru_cache(maxsize=4)
def _log_ways(runs: int) -> Floats:
    """Return the logarithms of the numbers of ways to choose 0 .. `runs` of them."""
    factorials = np.array([math.lgamma(count + 1) for count in range(runs + 1)])
    ways: Floats = factorials[-1] - factorials - factorials[::-1]
    ways.flags.writeable = False
    return ways
