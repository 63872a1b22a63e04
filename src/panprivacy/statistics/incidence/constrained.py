"""The most likely numbers of users in each state: not below 0, and as many as there are cells.

Unbiased entries of a histogram are as often below 0 as above it where nobody is, and users in
states beyond the bound are estimated although there may be none. Whoever knows that can do better:
of all histograms that are possible, the one under which the noised counts are most likely.

The noised counts are nearly normal with means `f * t` and variances `f * t + v`, which are taken
from a first guess; what remains is a least-squares problem over a simplex. It is solved by
accelerated projected gradients. On a difference set the spectrum of the law is flat, so the first
guess alone, the projection of the unbiased entries, is nearly the answer.

Reference: A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm", 2009.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.statistics.incidence.decoder import StateModel
from panprivacy.tables.decoders.circular import convolve, correlate
from panprivacy.tables.decoders.intervals import Floats

_MOST_STEPS = 2_000
_SMALL_STEP = 1e-3
"""In cells: the answers are noisy by many."""


def most_likely(
    model: StateModel, histogram: ArrayLike, noise_variance: float, possible: NDArray[np.bool_]
) -> Floats:
    """The numbers of cells whose user is in each state.

    Args:
        model: of the cells.
        histogram: the noised numbers of cells that hold each value.
        noise_variance: of each of them.
        possible: bool[M], the states that users may be in.

    Returns:
        float64[M], at least 0, 0 where no state is possible, with sum `model.cells`.
    """
    counts, law = np.asarray(histogram, float), model.noise()
    unbiased = model.entries(counts, noise_variance).values * model.cells / model.universe
    guess = _nearest(unbiased, possible, model.cells)
    expected = np.maximum(convolve(guess, law), 0)
    weights = 1 / np.maximum(expected + noise_variance, 1)
    return _fitted(counts, law, weights / weights.max(), possible, guess)


def _fitted(
    counts: Floats, law: Floats, weights: Floats, possible: NDArray[np.bool_], guess: Floats
) -> Floats:
    """The possible histogram with the smallest weighted sum of squares.

    The steepness is that of changes that leave the number of users as it is: the spectrum without
    its frequency 0.
    """
    users = guess.sum()
    steepness = float((np.abs(np.fft.rfft(law)[1:]) ** 2).max())
    current = ahead = guess
    momentum = 1.0
    for _ in range(_MOST_STEPS):
        rest = weights * (counts - convolve(ahead, law))
        following = _nearest(ahead + correlate(rest, law) / steepness, possible, users)
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        moved = following - current
        if float(moved @ (ahead - following)) > 0:  # it has overshot: start anew from here
            faster = 1.0
        ahead = following + (momentum - 1) / faster * moved if faster > 1 else following
        current, momentum = following, faster
        if np.abs(moved).max() < _SMALL_STEP:
            break
    return current


def _nearest(values: Floats, possible: NDArray[np.bool_], total: float) -> Floats:
    """The nearest numbers that are at least 0, 0 where nothing is possible, and have a sum.

    All possible ones are lowered by the same amount, and cut at 0.
    """
    chosen = values[possible] - values[possible].max()  # so that no digits are lost below
    falling = np.sort(chosen)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    nearest = np.zeros(len(values))
    nearest[possible] = np.maximum(chosen - level, 0)
    return nearest
