"""From a target error to a plan: the smallest memory or the smallest epsilon that reaches it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, overload

from panprivacy._validate import (
    MOST_BYTES,
    expected_range,
    positive_fraction,
    positive_integer,
    proportion,
    whole_number,
)
from panprivacy.addressing import MAX_UNIVERSE
from panprivacy.errors import PlanError
from panprivacy.guarantee import shown
from panprivacy.planning.density import DensityPlan, plan_density
from panprivacy.planning.distinct import DistinctPlan, plan_distinct
from panprivacy.planning.incidence import IncidencePlan
from panprivacy.planning.net import NetDistinctPlan
from panprivacy.planning.request import Request

Searched = DensityPlan | DistinctPlan
AnyPlan = Searched | NetDistinctPlan | IncidencePlan

DEFAULT_MEMORY = 1 << 16
_MOST_SEARCHED = 1 << 30
_EPSILONS = (Fraction(1, 1_000), Fraction(32))
_WHOLE = Fraction(1)
_USEFUL = 0.5


@overload
def plan(
    statistic: Literal["distinct"],
    *,
    expected: object,
    epsilon: object = None,
    error: object = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
) -> DistinctPlan: ...


@overload
def plan(
    statistic: Literal["density"],
    *,
    universe: int,
    epsilon: object = None,
    error: object = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
) -> DensityPlan: ...


def plan(
    statistic: str,
    *,
    expected: object = None,
    universe: int | None = None,
    epsilon: object = None,
    error: object = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
) -> Searched:
    """Plan a statistic: from epsilon and memory to an error, or from an error to either.

    >>> import panprivacy as pp
    >>> plan = pp.plan("distinct", expected=(10_000, 1_000_000), epsilon=1, error=0.1)
    >>> plan.table.nbytes, plan.margin(0.95) <= 0.1
    (4096, True)

    With `epsilon` alone, the plan with the smallest error within `memory`. With `epsilon` and
    `error`, the smallest memory that reaches the error. With `error` alone, the smallest epsilon
    (to three digits) that reaches it within `memory`.

    Args:
        statistic: "distinct" or "density".
        expected: for "distinct", the lowest and highest number of users, or one number.
        universe: for "density", the number of possible users.
        epsilon: total loss of state and releases, in nats.
        error: how far an answer may stray: relative to the number of users for "distinct", as a
            share of the universe for "density".
        memory: bytes of table, at most; None for 65,536, or with `error` for what it takes.
        confidence: probability with which an answer strays by no more than `error`.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers.

    Raises:
        PlanError: an argument is out of range, or nothing reaches the error; says what would.
    """
    make = _maker(statistic, expected, universe, releases, intrusions)
    level = proportion(confidence=confidence)
    size = None if memory is None else positive_integer(MOST_BYTES, memory=memory)
    if error is None:
        if epsilon is None:
            message = "a plan needs epsilon, or the error to reach, or both"
            raise PlanError(message)
        return make(positive_fraction(epsilon=epsilon), size or DEFAULT_MEMORY)
    target = float(positive_fraction(error=error))

    def reaches(candidate: Searched) -> bool:
        return candidate.margin(level) <= target

    if epsilon is None:
        total = None
        found = _smallest_epsilon(make, size or DEFAULT_MEMORY, reaches)
    else:
        total = positive_fraction(epsilon=epsilon)
        found = _smallest_memory(make, total, size, reaches)
    return found or _refuse(make, total, size, reaches)


Maker = Callable[[Fraction, int], Searched]
Reaches = Callable[[Searched], bool]


def _maker(
    statistic: str, expected: object, universe: int | None, releases: int, intrusions: int
) -> Maker:
    """A function from epsilon and bytes of memory to a plan."""
    covers = positive_integer(releases=releases), whole_number(0, 100, intrusions=intrusions)
    if statistic == "distinct":
        users = expected_range(expected)
        return lambda epsilon, memory: plan_distinct(users, memory, Request(epsilon, *covers))
    if statistic == "density":
        size = positive_integer(MAX_UNIVERSE, universe=universe)
        return lambda epsilon, memory: plan_density(
            size, min(size, 8 * memory), Request(epsilon, *covers)
        )
    message = 'there are plans for "distinct" and "density"'
    raise PlanError(message)


def _smallest_memory(
    make: Maker, epsilon: Fraction, most: int | None, reaches: Reaches
) -> Searched | None:
    """The first power of two bytes, or else `most`, that reaches the target."""
    limit = _MOST_SEARCHED if most is None else most
    for memory in (*(1 << power for power in range((limit - 1).bit_length())), limit):
        candidate = make(epsilon, memory)
        if reaches(candidate):
            return candidate
    return None


def _smallest_epsilon(make: Maker, memory: int, reaches: Reaches) -> Searched | None:
    """Bisect for the smallest epsilon of three significant digits."""
    low, high = _EPSILONS
    if not reaches(make(high, memory)):
        return None
    while high / low > Fraction(1_002, 1_000):
        middle = _three_digits(math.sqrt(low * high))
        if not low < middle < high:
            break
        low, high = (low, middle) if reaches(make(middle, memory)) else (middle, high)
    return make(high, memory)


def _three_digits(number: float) -> Fraction:
    return Fraction(f"{number:.3g}")


def _refuse(make: Maker, epsilon: Fraction | None, size: int | None, reaches: Reaches) -> Searched:
    """Raise, saying what would reach the target."""
    memory = size or (DEFAULT_MEMORY if epsilon is None else _MOST_SEARCHED)
    at_epsilon = "" if epsilon is None else f" at epsilon {float(epsilon):g}"
    ways = _ways(make, _EPSILONS[1] if epsilon is None else epsilon, memory, reaches)
    message = f"no plan of up to {memory:,} bytes reaches this error{at_epsilon}; {ways}"
    raise PlanError(message)


def _ways(
    make: Maker, epsilon: Fraction, memory: int, reaches: Reaches, parts: Fraction = _WHOLE
) -> str:
    """What would reach a target: more memory, a larger epsilon, or more users."""
    larger = _smallest_memory(make, epsilon, None, reaches)
    looser = _smallest_epsilon(make, memory, reaches)
    ways = [f"a memory of {larger.table.nbytes:,} bytes"] if larger else []
    ways += [f"epsilon {shown(parts * looser.request.epsilon)}"] if looser else []
    return f"{' or '.join(ways)} would do" if ways else "more users would do"


def check_useful(planned: AnyPlan, parts: Fraction = _WHOLE) -> None:
    """Refuse a plan whose answers would be noise, saying what would do better.

    Args:
        planned: the plan.
        parts: into how many such parts the epsilon is split that can be changed.

    Raises:
        PlanError: over the whole expected range the standard deviation exceeds the number of
            users, or half the universe.
    """
    if isinstance(planned, IncidencePlan | NetDistinctPlan):
        _check_counters(planned)
        return
    if isinstance(planned, DensityPlan):
        if planned.error(0.5) < _USEFUL:
            return
        what = f"a standard deviation of {planned.error(0.5):.2g} universes"
        make = _maker("density", None, planned.universe, *_covers(planned))
    else:
        if planned.best_error() < 1:
            return
        what = f"a standard deviation of {planned.best_error():.2g} times the count"
        make = _maker("distinct", planned.expected, None, *_covers(planned))

    def useful(candidate: Searched) -> bool:
        if isinstance(candidate, DensityPlan):
            return candidate.error(0.5) < _USEFUL / 2
        return candidate.best_error() < _USEFUL

    ways = _ways(make, planned.request.epsilon, planned.table.nbytes, useful, parts)
    message = f"this plan gives {what}: the answer would be noise; {ways}"
    raise PlanError(message)


def _check_counters(planned: IncidencePlan | NetDistinctPlan) -> None:
    if isinstance(planned, NetDistinctPlan):
        relative, most = planned.best_error(), 1.0
    else:
        users = planned.universe or planned.expected or planned.cells
        relative, most = planned.error() / users, _USEFUL
    if relative < most:
        return
    full = isinstance(planned, IncidencePlan) and planned.cells == planned.universe
    ways = "a larger epsilon" if full else "more memory, a larger epsilon"
    message = (
        f"this plan gives a standard deviation of {relative:.2g} times the users: the answer would "
        f"be noise; {ways} or more users would do"
    )
    raise PlanError(message)


def _covers(planned: Searched) -> tuple[int, int]:
    return planned.request.releases, planned.request.intrusions
