"""Estimated number of users for each value, from the reports of all users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Label, Name, Named, Release

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """Estimates of numbers of users, whose variance is affine in the true number.

    Args:
        estimates: unbiased, float64[values].
        fixed: the variance of each where nobody holds the value, float64[values].
        slope: what each user who holds the value adds to it, float64[values].
        step: by how much one report moves an estimate, float64[values].
    """

    estimates: Floats
    fixed: Floats
    slope: Floats
    step: Floats

    def errors(self, users: int) -> Floats:
        """Return the standard error of each, where the truth is as estimated, within 0 .. users."""
        return np.sqrt(self.fixed + self.slope * np.clip(self.estimates, 0, users))


@dataclass(frozen=True, eq=False, repr=False)
class Frequencies(Named[Release]):
    """Estimated number of reporting users that hold each value; public.

    >>> from panprivacy import local
    >>> reports = local.RandomisedResponse(2, epsilon=1).randomise([1] * 10_000)
    >>> answer = local.RandomisedResponse(2, epsilon=1).estimate(reports).of(1)
    >>> 9_000 < answer.value <= 10_000
    True

    Args:
        estimates: unbiased, so that some may be below 0; float64[values].
        low: lower end of the interval of each, cut to 0 .. users; float64[values].
        high: upper end of each; float64[values].
        users: number of users that reported; public.
        confidence: how often the interval of a value holds the truth, each for itself.
        epsilon: privacy loss of the report of each user, in nats.
        counts: what was counted: all else is a function of it and of public parameters.
        errors: standard errors of the estimates, float64[values].
    """

    estimates: Floats
    low: Floats
    high: Floats
    users: int
    confidence: float
    epsilon: float
    counts: tuple[int, ...]
    errors: Floats
    statistic: str = "frequency"
    group: Label | None = None

    @property
    def shares(self) -> Floats:
        """The estimates over the number of users, float64[values]."""
        return self.estimates / max(self.users, 1)

    def of(self, value: int) -> Release:
        """Return the estimated number of users that hold this value.

        Raises:
            PlanError: there is no such value.
        """
        if not 0 <= value < len(self.estimates):
            message = f"values are 0 to {len(self.estimates) - 1:,}"
            raise PlanError(message)
        return self._release(value)

    def answers(self, most: int | None = None) -> dict[Name, Release | None]:
        """Return the estimated number of users of each value, by name.

        Args:
            most: the number of values, from 0 on; None for all.
        """
        found = map(self._release, range(len(self.estimates))[:most])
        return {one.name: one for one in found}

    def under(self, statistic: str | None = None, group: Label | None = None) -> Frequencies:
        """Return the same under the name of a statistic, of a group, or both."""
        name = Name(self.statistic, "", (), self.group).under(statistic, group)
        return replace(self, statistic=name.statistic, group=name.group)

    def _release(self, value: int) -> Release:
        low, high = float(self.low[value]), float(self.high[value])
        name = Name(self.statistic, "holding", (("value", value),), self.group)
        number = float(np.clip(self.estimates[value], 0, self.users))
        return Release(
            number,
            low,
            high,
            self.confidence,
            self.epsilon,
            self.counts,
            name,
            note=note_on(low, high, value=number),
            estimate=float(self.estimates[value]),
            standard_error=float(self.errors[value]),
        )


def intervals(spread: Spread, users: int, confidence: float) -> tuple[Floats, Floats]:
    """Return the true numbers from which no estimate is surprisingly far, by the normal law.

    With z its quantile these are the c with `|c - estimate| <= z sqrt(fixed + slope c) + step/2`:
    the variance is that of the candidate, and half a report makes up for counts being whole.

    Returns:
        The lower and the upper ends, cut to 0 .. users.
    """
    z = -NormalDist().inv_cdf((1 - confidence) / 2)
    reached = np.clip(spread.estimates, 0, users)

    def end(sign: int) -> Floats:
        near = spread.estimates + sign * spread.step / 2
        bend = z * z * spread.slope / 2
        inner = z * z * (spread.fixed + spread.slope * near) + bend**2
        far: Floats = near + bend + sign * np.sqrt(np.maximum(inner, 0))
        return np.clip(far, 0, users)

    return np.minimum(end(-1), reached), np.maximum(end(1), reached)
