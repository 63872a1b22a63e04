"""The guarantee of a task for each device, and the check that its noise satisfies it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import msgspec

from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_integer
from panprivacy.privacy.guarantee import Guarantee

_MOST_EPSILON: Final = 100
_MOST_SEARCHED: Final = 40
"""Beyond it a reported bit is false less than once in 1e17."""
_MOST_DEVICES: Final = 10_000_000
_RESOLUTION: Final = 256
_GRID: Final = 1024


class Promise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The guarantee of one device, against a holder of the secret key.

    Guarantee: let P and P' be the laws of what is seen for any two streams of one device. For every
    set S of outcomes `P(S) <= e**epsilon P'(S) + delta`. What is seen is the report itself
    if `devices` is 1: the local model. Else it is the sum of the reports of `devices` devices or
    more, each of which drew its noise as it should: the aggregator model.
    [docs/guarantees/devices.md, tests/unit/test_federated_promise.py]

    Args:
        epsilon: in nats, at most 100.
        delta: 0 where every outcome is covered.
        devices: minimum number of reporting devices, up to ten million.

    Raises:
        PlanError: a number is out of range.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    devices: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= _MOST_EPSILON:
            message = f"epsilon must be above 0 and at most {_MOST_EPSILON}"
            raise PlanError(message)
        if not 0 <= self.delta < 1:
            message = "delta must be at least 0 and below 1"
            raise PlanError(message)
        positive_integer(_MOST_DEVICES, devices=self.devices)

    def __str__(self) -> str:
        return f"{self.guarantee.loss} for all that one device observed, {self._seen}"

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of each device."""
        return Guarantee(
            self.epsilon, delta=self.delta, adjacency="device", conditions=(self._seen,)
        )

    @property
    def _seen(self) -> str:
        if self.devices == 1:
            return "in its report by itself"
        return f"in the sum over {self.devices:,} devices or more that follow the protocol"


Range = tuple[int, int]
"""Smallest and largest number of other devices that hold a 1."""


def worst_of_others(
    devices: int, places: int, apart: Callable[[tuple[Range, ...]], float]
) -> float:
    """Return a bound on a divergence, whatever the other devices hold.

    Ranges are split in half, the one with the highest bound first, until that one has at most one
    in 256 of all others in it. Each bound is one for every number of a range, so the highest of
    them is one for all.

    Args:
        devices: number of reporting devices.
        places: of how many bits it matters how many others hold a 1. No device holds two.
        apart: a bound for all that lies in one range for each place.
    """
    others = devices - 1
    whole = ((0, others),) * places
    open_ = [(-apart(whole), whole)]
    while True:
        bound, ranges = heapq.heappop(open_)
        widest = max(range(places), key=lambda place: ranges[place][1] - ranges[place][0])
        fewest, most = ranges[widest]
        if most - fewest <= others // _RESOLUTION:
            return -bound
        middle = (fewest + most) // 2
        for half in (fewest, middle), (middle + 1, most):
            part = (*ranges[:widest], half, *ranges[widest + 1 :])
            if sum(least for least, _ in part) <= others:
                heapq.heappush(open_, (-apart(part), part))


def largest_epsilon_0(promise: Promise, delta: Callable[[Fraction], float]) -> Fraction:
    """Return the largest epsilon_0 of each report that keeps a promise, on a grid of 1/1024.

    Args:
        promise: to be kept.
        delta: a bound on the delta that belongs to the promised epsilon, for each epsilon_0.
    """
    low, high = int(promise.epsilon * _GRID), _MOST_SEARCHED * _GRID
    while low < high:
        middle = (low + high + 1) // 2
        kept = delta(Fraction(middle, _GRID)) <= promise.delta
        low, high = (middle, high) if kept else (low, middle - 1)
    return max(Fraction(low, _GRID), promise.epsilon)  # a report of which hides as much by itself
