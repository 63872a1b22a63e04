"""What leaves a statistic with one answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Release:
    """A noised answer; it is public.

    Args:
        value: the estimate.
        low: lower end of the confidence interval.
        high: upper end; infinite where the counts do not bound it.
        confidence: probability that the interval covers the truth, over all noise, sampling and
            hashing.
        epsilon: what this release cost, in nats.
        counts: the noised counts; `value`, `low` and `high` are functions of them and of public
            parameters.
    """

    value: float
    low: float
    high: float
    confidence: float
    epsilon: float
    counts: tuple[int, ...]
