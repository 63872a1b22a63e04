"""Whether hashed counters can be read: what users who share them leave of the spectrum of values.

The frequencies of a law come in pairs of one size. So half of them are looked at, and of a law on a
difference set, whose frequencies all have one size, none has to be computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panprivacy.tables.decoders.intervals import Floats

FULL = 0.3
"""A release is refused from this strain on: fewer users than were planned for look so too."""

_MOST_STRAIN = 0.1
"""Decompounding takes logarithms, which are nearly linear as far as this relative variance."""

_MOST_LOST = 1e-3
"""How often a release may be refused to a plan."""

_PLANNED_PHASES = 6
"""By how many deviations of the spectrum a logarithm of a plan stays within its principal value:
what a release sees of load and strain is itself noisy."""

_LEAST_SIZE = 1e-9

_AT_ONCE = 4_096
"""So many probabilities are added up before it is asked whether the rest matters."""


def wraps(load: float, strain: float, deviations: float) -> bool:
    """Whether a logarithm may leave its principal value: with users all in one state it can."""
    return load + deviations * math.sqrt(strain) >= math.pi


def observed_variance(modulus: int, cells: int, noise_variance: float) -> float:
    """Return the variance of each frequency of a noised histogram, as a share of the cells."""
    return (cells + modulus * noise_variance) / cells**2


@dataclass(frozen=True, slots=True, eq=False)
class SharedSpectrum:
    """The spectrum of the values of cells that several users share, all of whom are in one state.

    That leaves the least of it: `exp(load (cos - 1))` of each frequency.

    Args:
        modulus: number of values of a cell.
        sizes: of the spectrum of the cells' noise at the frequencies 1 to modulus/2, float64[M//2];
            or the one size of all of them.
        cells: number of cells.
    """

    modulus: int
    sizes: Floats | float
    cells: int

    @classmethod
    def of(cls, modulus: int, sizes: Floats | float, epoch: int, cells: int) -> SharedSpectrum:
        """Return that of cells to which noise with such a spectrum was added `epoch` more times."""
        return cls(modulus, np.maximum(sizes, _LEAST_SIZE) ** (epoch + 1), cells)

    def strain(self, load: float, noise_variance: float) -> float:
        """The mean relative variance of the spectrum that so many users a cell leave."""
        return self._mean(self._strains(load, noise_variance))

    def is_readable(self, load: float, noise_variance: float) -> bool:
        """Whether answers about so many users a cell are good, and rarely lost."""
        # The mean of an exponential is at least that of its mean, where 1 - cos is 1 or a bit more.
        observed = observed_variance(self.modulus, self.cells, noise_variance)
        least = observed * math.exp(2 * min(load, 100)) / np.max(self.sizes) ** 2
        if least > _MOST_STRAIN:
            return False
        strains = self._strains(load, noise_variance)
        strain = self._mean(strains)
        if strain > _MOST_STRAIN or wraps(load, strain, _PLANNED_PHASES):
            return False
        return self._is_rarely_lost(strains)

    def _is_rarely_lost(self, strains: Floats) -> bool:
        """Whether so many users a cell hardly ever look like too many.

        One pair of frequencies does it that is so near 0 that its share of the mean is too large.
        The probabilities are added up from the largest, until the rest cannot matter.
        """
        sides = self._sides()
        near = np.sqrt(sides * strains / (FULL * (self.modulus - 1)))
        quantiles = (1 - near) / np.sqrt(2 * strains / sides)
        # Strains mostly rise with the frequency: what is nearly in order is soon sorted.
        quantiles = np.sort(quantiles[::-1], kind="stable")
        lost, left = 0.0, len(quantiles)
        for some in np.split(quantiles, range(_AT_ONCE, left, _AT_ONCE)):
            tails = [math.erfc(quantile) / 2 for quantile in some.tolist()]
            lost, left = lost + math.fsum(tails), left - len(tails)
            if lost > _MOST_LOST or lost + left * tails[-1] <= _MOST_LOST:
                break
        return lost <= _MOST_LOST

    def _strains(self, load: float, noise_variance: float) -> Floats:
        """The relative variance of the frequencies 1 to modulus/2."""
        angles = 2 * math.pi / self.modulus * np.arange(1, self.modulus // 2 + 1)
        left = np.exp(min(load, 100) * (np.cos(angles) - 1)) * self.sizes
        strains: Floats = observed_variance(self.modulus, self.cells, noise_variance) / left**2
        return strains

    def _mean(self, strains: Floats) -> float:
        """The mean over all frequencies but 0."""
        middle = 0.0 if self.modulus % 2 else float(strains[-1])
        return (2 * float(strains.sum()) - middle) / (self.modulus - 1)

    def _sides(self) -> NDArray[np.float64]:
        """How many frequencies each stands for: itself, and the mirror image of most."""
        sides = np.full(self.modulus // 2, 2.0)
        if self.modulus % 2 == 0:
            sides[-1] = 1
        return sides
