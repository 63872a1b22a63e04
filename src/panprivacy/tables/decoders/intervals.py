"""Errors of an estimate, and the interval that follows.

A deviation is a standard deviation; an estimate's error is a normal part (cells, sampling,
hashing) plus output noise.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

GRID = 64
ZOOMS = 4
_LEAST = 1e-12
_SHARES = np.linspace(0, 1, 21)


class Measured(NamedTuple):
    """An estimate before it is cut to where truths can be, and how far it is from the truth.

    Args:
        estimate: it may be below 0, or above the largest truth.
        standard_error: standard deviation of the estimate, where the truth is as estimated.
        bias: bound on the difference of the estimate's mean from the truth; 0 if it has none.
    """

    estimate: float
    standard_error: float
    bias: float = 0.0


class Model(Protocol):
    """The law of released counts given one quantity, and the error of its estimate."""

    def measured(self, ones: ArrayLike) -> Measured:
        """Return the estimate before it is cut, its standard error and its bias."""

    def estimate(self, ones: ArrayLike) -> float:
        """Return the estimate, from the noisy number of ones of each group of cells."""

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """Return the estimate, and both ends of its confidence interval."""

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of the estimate, for each true value."""

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that output noise causes, 0 to 1."""


class Measuring(ABC):
    """A model whose standard error and bias follow from its estimate."""

    __slots__ = ()

    @abstractmethod
    def estimate(self, ones: ArrayLike) -> float:
        """Return the estimate, from the noisy number of ones of each group of cells."""

    def unbiased(self, ones: ArrayLike) -> float:
        """Return the estimate before it is cut to where truths can be."""
        return self.estimate(ones)

    @abstractmethod
    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of the estimate, for each true value, with its bias."""

    def standard_error(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of the estimate alone."""
        return self.deviation(truth)

    def bias(self, truth: ArrayLike) -> Floats:
        """Return a bound on the bias of the estimate at each true value."""
        return np.zeros(np.shape(truth))

    def measured(self, ones: ArrayLike) -> Measured:
        """Return the estimate before it is cut, its standard error and its bias."""
        truth = self.estimate(ones)
        return Measured(
            self.unbiased(ones), float(self.standard_error(truth)), float(self.bias(truth))
        )


class EstimateModel(Measuring):
    """A model whose interval follows from its estimate."""

    __slots__ = ()

    @abstractmethod
    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return the confidence interval around an estimate."""

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """Return the estimate, and both ends of its confidence interval."""
        value = self.estimate(ones)
        return (value, *self.interval(value, confidence))


def confidence_interval(
    model: Model,
    estimate: float,
    confidence: float,
    *,
    limit: float,
    beyond: float,
    slack: float = 0.0,
    part: float = 1.0,
) -> tuple[float, float]:
    """Return the true values from which `estimate` is not surprisingly far.

    The deviation is that of the candidate truth, not of the estimate, so intervals are right
    where the deviation changes fast.

    Args:
        model: the errors of estimates, given the truth.
        estimate: the estimate, 0 .. limit.
        confidence: probability that the interval covers the truth.
        limit: the largest candidate.
        beyond: the upper end when even `limit` is not surprising.
        slack: added to what is not yet surprising.
        part: part of the quantile that is needed, where a bias is added to the interval.
    """
    quantile = part * noise_quantile(confidence, model.output_share(estimate))

    def surprising(truth: Floats) -> NDArray[np.bool_]:
        return np.abs(truth - estimate) > quantile * model.deviation(truth) + slack

    step = float(quantile * model.deviation(estimate)) + slack
    low = _first(surprising, estimate, -step, 0.0)
    high = _first(surprising, estimate, step, limit)
    return (0.0 if low is None else low), (beyond if high is None else high)


def score_interval(
    estimate: float, truths: Floats, score: Floats, reach: Floats
) -> tuple[float, float, float]:
    """Return an estimate, and both ends of the truths whose score is not surprising.

    A score is a function of the counts whose mean at the truth is 0, over what it may be there. So
    the interval holds the truth as often as its score is within that, however the estimate
    behaves: where no count tells large truths apart, all of them are held.

    Args:
        estimate: it is held in any case.
        truths: the candidates, from 0.
        score: the score of each; linear in between, over its reach.
        reach: the bound on the absolute score of each.

    Returns:
        The estimate and both ends; the upper one is infinite if the last candidate is not
        surprising.
    """
    surprise = score / reach
    surprise[0] = max(surprise[0], 0.0)  # nothing is below nobody
    before, after = surprise[:-1], surprise[1:]
    met = np.flatnonzero((np.minimum(before, after) <= 1) & (np.maximum(before, after) >= -1))
    if not len(met):
        return estimate, estimate, estimate

    def end(segment: int, at: int) -> float:
        reached = surprise[segment + at]
        if abs(reached) <= 1:
            return float(truths[segment + at])
        edge = math.copysign(1, reached)
        share = (edge - surprise[segment]) / (surprise[segment + 1] - surprise[segment])
        return float(truths[segment] + share * (truths[segment + 1] - truths[segment]))

    low, high = end(int(met[0]), 0), end(int(met[-1]), 1)
    if high == truths[-1]:
        high = math.inf
    return estimate, min(low, estimate), max(high, estimate)


def _first(
    condition: Callable[[Floats], NDArray[np.bool_]], start: float, step: float, end: float
) -> float | None:
    """Return the value nearest to `start` on the way to `end` that meets the condition."""
    span = abs(end - start)
    if span == 0:
        return None
    least = max(min(abs(step) / 8, span / 2), _LEAST * span)  # without noise a step may be 0
    distances = np.append(np.geomspace(least, span, GRID), span)
    points = start + math.copysign(1, step) * np.concatenate(([0.0], distances))
    for _ in range(ZOOMS):
        met = condition(points)
        if not met.any():
            return None
        first = max(int(np.argmax(met)), 1)
        points = np.linspace(points[first - 1], points[first], GRID + 1)
    return float(points[-1])


def discrete_laplace_variance(scale: float) -> float:
    """Return the variance of integer noise with `P(k)` proportional to `exp(-|k|/scale)`."""
    ratio = math.exp(-1 / scale)
    return 2 * ratio / math.expm1(-1 / scale) ** 2 if scale < 1e8 else 2 * scale**2


@functools.lru_cache(maxsize=4096)
def noise_quantile(confidence: float, output_share: float) -> float:
    """Return the half-width of a two-sided interval, in standard deviations.

    The error is a normal part (bits, sampling, hashing) plus a Laplace part with `output_share`
    of the variance, whose tails are heavier.
    """
    normal = -NormalDist().inv_cdf((1 - confidence) / 2)
    if output_share < 0.01:
        return normal
    low, high = 0.0, 8 * normal + 8
    for _ in range(60):
        middle = (low + high) / 2
        below = 2 * _upper_tail(middle, min(output_share, 1 - 1e-9)) > 1 - confidence
        low, high = (middle, high) if below else (low, middle)
    return high


def noise_quantiles(confidence: float, output_shares: Floats) -> Floats:
    """Return the same for many shares."""
    known = np.array([noise_quantile(confidence, share) for share in _SHARES])
    return np.interp(output_shares, _SHARES, known)


def margin_beside(bias: float, deviation: float, confidence: float) -> float:
    """Return the part of a two-sided quantile that an interval needs beside a bounded bias.

    The mean error is at most `bias` on either side. An interval that reaches by that and by so many
    deviations misses on one side hardly ever if the mean error is on the other. So it needs all of
    the quantile without a bias, and that of one side where the bias is large.
    """
    return float(margins_beside(np.array(bias), np.array(deviation), confidence))


def margins_beside(biases: Floats, deviations: Floats, confidence: float) -> Floats:
    """Return the same for many biases; it is convex, so between two known ones it is less."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(biases / deviations)
    known = np.array([_margin(float(ratio), confidence) for ratio in _RATIOS])
    return np.interp(ratios, _RATIOS, known)


_RATIOS = np.linspace(0, 3, 49)


@functools.lru_cache(maxsize=256)
def _margin(ratio: float, confidence: float) -> float:
    """Return that part for a bias in deviations: the larger of normal and Laplace noise."""
    quantile = -NormalDist().inv_cdf((1 - confidence) / 2)
    low, high = 0.0, quantile
    for _ in range(60):
        middle = (low + high) / 2
        missed = _phi(-middle) + _phi(-middle - 2 * ratio)
        low, high = (middle, high) if missed > 1 - confidence else (low, middle)
    other_side = math.exp(-math.sqrt(8) * ratio)
    laplace = 1 - math.log(2 / (1 + other_side)) / -math.log(1 - confidence)
    return max(high / quantile, laplace)


def _upper_tail(x: float, output_share: float) -> float:
    """Return `P(X > x)` for a normal plus a Laplace variable, of total variance 1."""
    deviation, scale = math.sqrt(1 - output_share), math.sqrt(output_share / 2)
    ratio = deviation / scale
    spread = math.exp(ratio**2 / 2)
    falling = math.exp(-x / scale) * _phi(x / deviation - ratio)
    rising = math.exp(x / scale) * _phi(-x / deviation - ratio)
    return _phi(-x / deviation) + spread * (falling - rising) / 2


def _phi(x: float) -> float:
    """Return the normal distribution function, accurate in the lower tail."""
    return math.erfc(-x / math.sqrt(2)) / 2
