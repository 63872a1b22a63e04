"""Sums over all shifts modulo M, by Fourier transforms of a power of two points.

A transform of M points is slow when M is a large prime.
"""

from __future__ import annotations

import numpy as np

from panprivacy.decoders.intervals import Floats


def convolve(values: Floats, pattern: Floats) -> Floats:
    """`sum_y values[y] * pattern[x - y]` for each x, modulo the length; float64[M]."""
    length = len(values)
    size = 1 << (2 * length - 1).bit_length()
    product = np.fft.rfft(values, size) * np.fft.rfft(pattern, size)
    full = np.fft.irfft(product, size)[: 2 * length - 1]
    wrapped = full[:length].copy()
    wrapped[: length - 1] += full[length:]
    return wrapped


def variances(votes: Floats, noise: Floats, means: Floats) -> Floats:
    """The variance of the vote of a cell, for each state of its user; float64[M].

    Args:
        votes: of a cell of each value.
        noise: the probabilities of what is added to the state.
        means: of the vote, by state.
    """
    centre = votes.mean()
    squares = correlate((votes - centre) ** 2, noise)
    return np.maximum(squares - (means - centre) ** 2, 0)


def correlate(values: Floats, pattern: Floats) -> Floats:
    """`sum_x values[x] * pattern[x - j]` for each j, modulo the length; float64[M]."""
    return convolve(values, np.roll(pattern[::-1], 1))
