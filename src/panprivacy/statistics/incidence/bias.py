"""By how much the logarithms of a noisy spectrum are off, on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panprivacy.tables.decoders.intervals import Floats

_LEAST_SQUARE = 1e-300
"""Of a frequency that the observed spectrum does not have."""


def logarithm_bias(
    observed: NDArray[np.complex128], cells: int, noise_variance: float, weights: Floats
) -> float:
    """Return a bound on the bias of a weighted mean of logarithms, to second order.

    `log(1 + e)` of a relative error `e` has the mean `-E e**2 / 2`. The errors are complex
    numbers, whose squares nearly cancel, so that this is far less than the variance `E |e|**2`. It
    follows from the spectrum: of m cells with spectrum o, and output noise of variance v on each
    of M counts, the mean square of the error of frequency k is `(o[2 k] - o[k]**2) / m`, and
    `M v / m**2` more where `2 k` is a multiple of M. [docs/guarantees/decoding.md]

    Args:
        observed: the spectrum of the cells' values; complex128[M].
        cells: how many there are.
        noise_variance: of the output noise on each count.
        weights: by how much the logarithm of each frequency moves the answer; float64[M].
    """
    modulus = len(observed)
    twice = 2 * np.arange(modulus) % modulus
    squares = (observed[twice] - observed**2) / cells
    squares[twice == 0] += modulus * noise_variance / cells**2
    relative = np.abs(squares) / np.maximum(np.abs(observed) ** 2, _LEAST_SQUARE)
    return float(weights[1:] @ relative[1:]) / (2 * modulus)
