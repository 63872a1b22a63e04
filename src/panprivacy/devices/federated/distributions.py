"""Distributions of sums over many devices, in floats of bounded error, and their divergence.

Every number is a sum of products of positive ones, so relative errors stay small; each distribution
has a bound on them, and on the mass that was left out. A hockey-stick divergence adds both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.guarantee import exp_bounds

Floats = NDArray[np.float64]

_U: Final = 2.0**-52
"""More than a rounding of a float can be wrong by, relatively, and than one of `exp` can."""
_LOG_TAIL: Final = 65.0
"""Exponent of the truncation: each end of a law loses less than `exp(-_LOG_TAIL)` of it, 6e-29."""
_DROPPED: Final = 1e-28
"""Less than so much is cut off at either end of a sum."""
_SMOOTH: Final = 4
"""Variance from which on a sum of discrete Gaussians is one, up to 5e-17 each."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution on whole numbers, nearly all of it.

    Args:
        first: the number that the first weight belongs to.
        weights: float64[n], the probabilities, each within a relative `error`.
        missing: at most so much probability lies elsewhere.
        error: at most so much, relatively, is any weight wrong by.
    """

    first: int
    weights: Floats
    missing: float = 0.0
    error: float = 0.0

    def __add__(self, other: Distribution) -> Distribution:
        """Return the law of the sum of two independent numbers."""
        terms = min(len(self.weights), len(other.weights))
        error = self.error + other.error + (terms + 4) * _U
        first, missing = self.first + other.first, self.missing + other.missing
        return Distribution(
            first, np.convolve(self.weights, other.weights), missing, error
        )._trimmed()

    def times(self, count: int) -> Distribution:
        """Return the law of the sum of `count` independent numbers."""
        found, power = bernoulli(Fraction(0)), self
        while count:
            if count & 1:
                found = found + power
            count >>= 1
            if count:
                power = power + power
        return found

    def shifted(self, by: int) -> Distribution:
        """Return the law of the number plus a constant."""
        return Distribution(self.first + by, self.weights, self.missing, self.error)

    def above(self, least: int) -> float:
        """Return an upper bound on the probability of `least` or more."""
        kept = self.weights[max(least - self.first, 0) :]
        return min(float(kept.sum()) * self._slack + self.missing, 1.0)

    def below(self, most: int) -> float:
        """Return an upper bound on the probability of `most` or less."""
        kept = self.weights[: max(most - self.first + 1, 0)]
        return min(float(kept.sum()) * self._slack + self.missing, 1.0)

    @property
    def last(self) -> int:
        """The number that the last weight belongs to."""
        return self.first + len(self.weights) - 1

    @property
    def variance(self) -> float:
        """Variance of the stored part."""
        numbers = np.arange(self.first, self.last + 1)
        mean = float(np.average(numbers, weights=self.weights))
        return float(np.average((numbers - mean) ** 2, weights=self.weights))

    @property
    def _slack(self) -> float:
        return 1 + 2 * self.error + len(self.weights) * _U

    def _trimmed(self) -> Distribution:
        """Return the same without ends that hold nearly nothing."""
        low, high = (
            int(np.searchsorted(np.cumsum(end), _DROPPED))
            for end in (self.weights, self.weights[::-1])
        )
        kept = self.weights[low : len(self.weights) - high]
        return Distribution(self.first + low, kept, self.missing + 3 * _DROPPED, self.error)


def bernoulli(probability: Fraction) -> Distribution:
    """Return the law of 1 with this probability, else 0."""
    return Distribution(0, np.array([float(1 - probability), float(probability)]), error=_U)


def binomial(count: int, probability: Fraction) -> Distribution:
    """Return the law of the number of ones among `count` coins.

    The weights follow from one another outward from the most likely number. By Bernstein's
    inequality at most `2 exp(-_LOG_TAIL)` of the law lies outside of the stored part.
    """
    if count == 0 or probability == 0:
        return Distribution(0, np.ones(1))
    if probability == 1:
        return Distribution(count, np.ones(1))
    mean = count * probability
    variance = float(mean * (1 - probability))
    third = _LOG_TAIL / 3
    reach = math.ceil(third + math.sqrt(third**2 + 2 * _LOG_TAIL * variance)) + 1
    mode = round(mean)
    low, high = max(mode - reach, 0), min(mode + reach, count)
    odds = float(probability / (1 - probability))
    up = np.arange(mode, high, dtype=np.float64)
    down = np.arange(mode, low, -1, dtype=np.float64)
    rising = np.cumprod((count - up) / (up + 1) * odds)
    falling = np.cumprod(down / ((count - down + 1) * odds))
    missing = 2 * math.exp(-_LOG_TAIL) if (low, high) != (0, count) else 0.0
    return _normalised(low, np.concatenate([falling[::-1], [1.0], rising]), missing, 6 * _U)


def discrete_gaussian(variance: Fraction) -> Distribution:
    """Return the law of whole numbers with `P(k)` proportional to `exp(-k**2/(2*variance))`.

    Outside of what is kept lies less than `2 exp(-_LOG_TAIL)`: the law is subgaussian with its
    variance (Canonne, Kamath, Steinke 2020, Lemma 6).
    """
    reach = math.ceil(math.sqrt(2 * _LOG_TAIL * float(variance))) + 1
    numbers = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(numbers**2) / (2 * float(variance)))
    return _normalised(-reach, weights, 2 * math.exp(-_LOG_TAIL), 4 * _LOG_TAIL * _U)


def gaussian_sum(variance: Fraction, count: int) -> Distribution:
    """Return the law of the sum of independent discrete Gaussians.

    That of two, of variances a and b, is a discrete Gaussian of variance a + b up to the sum of
    `exp(-(x - y)**2 / (2 c))` over whole x, `c = ab/(a + b)`. By Poisson's formula that depends on
    y by little more than a relative `2 exp(-2 pi**2 c)`, and c is at least half the smaller one.
    """
    if count == 1 or variance < _SMOOTH:
        return discrete_gaussian(variance).times(count)
    found = discrete_gaussian(variance * count)
    ripple = 5 * count * math.exp(-(math.pi**2) * float(variance))
    return Distribution(found.first, found.weights, found.missing, found.error + ripple)


def _normalised(first: int, weights: Floats, missing: float, step: float) -> Distribution:
    """Return a law from weights up to a factor; each is wrong by `step` for each place at most."""
    error = 2 * (len(weights) * step + missing + 4 * _U)
    return Distribution(first, weights / weights.sum(), missing, error)


DistributionPair = tuple[Distribution, Distribution]
"""The distributions of one number under a stream, and under another one."""


def hockey_stick(epsilon: Fraction, *pairs: DistributionPair) -> float:
    """Return a bound on the sum of `max(P - e**epsilon Q, 0)`, from above, within about 1e-12 of P.

    Args:
        epsilon: in nats.
        pairs: P and Q of one number, or of two that are independent under either.
    """
    least = math.nextafter(float(exp_bounds(epsilon)[0]), 0)
    over = np.ones(1)
    under = np.full(1, least)
    missing = error = 0.0
    for one, other in pairs:
        first, end = min(one.first, other.first), max(one.last, other.last) + 1
        over = np.multiply.outer(over, _on(one, first, end)).ravel()
        under = np.multiply.outer(under, _on(other, first, end)).ravel()
        missing += one.missing
        error += one.error + other.error + 4 * _U
    gaps = over * (1 + error) - under * (1 - error)
    apart = float(gaps[gaps > 0].sum())
    return min(apart * (1 + len(gaps) * _U) + missing, 1.0)


def _on(law: Distribution, first: int, end: int) -> Floats:
    """Return the weights on a range that holds the law's."""
    return np.pad(law.weights, (law.first - first, end - 1 - law.last))
