"""Sums over all shifts modulo M, by Fourier transforms of a power of two points.

A transform of M points is slow when M is a large prime.
"""

from __future__ import annotations

import numpy as np

from panprivacy.tables.decoders.intervals import Floats


class Pattern:
    """A pattern for circular sums with many values: its transform is computed once.

    Args:
        pattern: float64[M].
    """

    def __init__(self, pattern: Floats) -> None:
        self._length = len(pattern)
        self._size = 1 << (2 * self._length - 1).bit_length()
        self._spectrum = np.fft.rfft(pattern, self._size)

    @classmethod
    def backwards(cls, pattern: Floats) -> Pattern:
        """Return the pattern by which convolving is correlating with this one."""
        return cls(np.concatenate([pattern[:1], pattern[:0:-1]]))

    def convolve(self, values: Floats) -> Floats:
        """Return `sum_y values[..., y] * pattern[x - y]` for each x, modulo M; float64[..., M]."""
        product = np.fft.rfft(values, self._size) * self._spectrum
        full = np.fft.irfft(product, self._size)[..., : 2 * self._length - 1]
        wrapped: Floats = full[..., : self._length].copy()
        wrapped[..., :-1] += full[..., self._length :]
        return wrapped


def convolve(values: Floats, pattern: Floats) -> Floats:
    """Return `sum_y values[y] * pattern[x - y]` for each x, modulo the length; float64[M]."""
    return Pattern(pattern).convolve(values)


def correlate(values: Floats, pattern: Floats) -> Floats:
    """Return `sum_x values[x] * pattern[x - j]` for each j, modulo the length; float64[M]."""
    return Pattern.backwards(pattern).convolve(values)


def variances(votes: Floats, noise: Floats, means: Floats) -> Floats:
    """Return the variance of the vote of a cell, for each state of its user; float64[M].

    Args:
        votes: votes of a cell of each value.
        noise: the probabilities of what is added to the state.
        means: means of the vote, by state.
    """
    centre = votes.mean()
    squares = correlate((votes - centre) ** 2, noise)
    return np.maximum(squares - (means - centre) ** 2, 0)


def moments(votes: Floats, noise: Pattern) -> tuple[Floats, Floats]:
    """Return the mean and the variance of the vote of a cell, for each state of its user.

    Args:
        votes: votes of a cell of each value; float64[M].
        noise: the probabilities of what is added to the state, `backwards`.
    """
    centre = votes.mean()
    means, squares = noise.convolve(np.stack([votes, (votes - centre) ** 2]))
    return means, np.maximum(squares - (means - centre) ** 2, 0)
