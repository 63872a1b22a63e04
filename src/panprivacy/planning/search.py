"""From a target error to a plan: the smallest memory or the smallest epsilon that reaches it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, Literal, overload

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
from panprivacy.planning.cropped import MOST_BOUND, CroppedPlan, default_bound, plan_cropped
from panprivacy.planning.cropped_levels import plan_cropped_levels
from panprivacy.planning.density import DensityPlan, plan_density
from panprivacy.planning.distinct import DistinctPlan, plan_distinct
from panprivacy.planning.heavy import MOST_K, MOST_TOTAL, HeavyPlan, plan_heavy
from panprivacy.planning.incidence import MAX_DIRECT_BYTES
from panprivacy.planning.request import Request
from panprivacy.planning.threshold import ThresholdPlan, plan_threshold

Searched = DensityPlan | DistinctPlan | CroppedPlan | ThresholdPlan | HeavyPlan

DEFAULT_MEMORY = 1 << 16
_MOST_SEARCHED = 1 << 30
_EPSILONS = (Fraction(1, 1_000), Fraction(32))
_WHOLE = Fraction(1)


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


@overload
def plan(
    statistic: Literal["cropped-sum"],
    *,
    tau: int,
    bound: int | None = None,
    universe: int | None = None,
    expected: object = None,
    epsilon: object = None,
    error: object = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
) -> CroppedPlan: ...


@overload
def plan(
    statistic: Literal["threshold"],
    *,
    least: int,
    universe: int,
    bound: int | None = None,
    epsilon: object = None,
    error: object = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
) -> ThresholdPlan: ...


@overload
def plan(
    statistic: Literal["heavy-hitters"],
    *,
    k: int,
    total: int,
    epsilon: object = None,
    error: object = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
) -> HeavyPlan: ...


def plan(
    statistic: str,
    *,
    epsilon: object = None,
    error: object = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
    **sizes: Any,
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
        statistic: "distinct", "density", "cropped-sum", "threshold" or "heavy-hitters".
        epsilon: total loss of state and releases, in nats.
        error: how far an answer may stray: relative to the number of users for "distinct", as a
            share of the universe for "density" and "threshold", of the largest sum (tau times the
            universe, or the most users expected) for "cropped-sum", and of k for "heavy-hitters";
            see `share_of_margin`.
        memory: bytes of table, at most; None for 65,536 (64 MiB for "cropped-sum", "threshold" and
            "heavy-hitters"), or with `epsilon` and `error` for what it takes.
        confidence: probability with which an answer strays by no more than `error`.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers.
        sizes: of the statistic: `expected` (the lowest and highest number of users, or one number)
            for "distinct"; `universe` for "density"; `tau`, `universe` or `expected`, and perhaps
            `bound` for "cropped-sum"; `least`, `universe`, and perhaps `bound` for "threshold"; `k`
            and `total` for "heavy-hitters".

    Raises:
        PlanError: an argument is out of range, or nothing reaches the error; says what would.
    """
    make = maker(statistic, sizes, releases, intrusions)
    level = proportion(confidence=confidence)
    size = None if memory is None else positive_integer(MOST_BYTES, memory=memory)
    within = size or default_memory(statistic)
    if error is None:
        if epsilon is None:
            message = "a plan needs epsilon, or the error to reach, or both"
            raise PlanError(message)
        return make(positive_fraction(epsilon=epsilon), within)
    target = float(positive_fraction(error=error))

    def reaches(candidate: Searched) -> bool:
        return share_of_margin(candidate, level) <= target

    if epsilon is None:
        found = _smallest_epsilon(make, within, reaches)
        return found or _refuse(make, None, within, reaches)
    total = positive_fraction(epsilon=epsilon)
    found = _smallest_memory(make, total, size, reaches)
    return found or _refuse(make, total, size or _MOST_SEARCHED, reaches)


def share_of_margin(planned: Searched, confidence: float) -> float:
    """How far from the truth an answer strays at most, in the measure of `plan(error=...)`."""
    return planned.margin(confidence) / _measure(planned)


def _measure(planned: Searched) -> float:
    """What an error is a share of, in the unit of the plan's own errors."""
    if isinstance(planned, CroppedPlan):
        return planned.most
    if isinstance(planned, ThresholdPlan):
        return planned.universe
    return planned.k if isinstance(planned, HeavyPlan) else 1.0


def share_of_error(planned: Searched) -> float:
    """The standard deviation, in the measure of `plan(error=...)`.

    For a range of expected users it is that where it is smallest, else where it is largest.
    """
    if isinstance(planned, DistinctPlan):
        return planned.best_error()
    if isinstance(planned, DensityPlan):
        return planned.error(0.5)
    return planned.error() / _measure(planned)


Maker = Callable[[Fraction, int], Searched]
"""From epsilon and bytes of memory to a plan."""

Reaches = Callable[[Searched], bool]

SIZES: dict[str, tuple[str, ...]] = {
    "distinct": ("expected",),
    "density": ("universe",),
    "cropped-sum": ("tau", "bound", "universe", "expected"),
    "threshold": ("least", "bound", "universe"),
    "heavy-hitters": ("k", "total"),
}


def default_memory(statistic: str) -> int:
    """Bytes of table, at most, where nobody says."""
    return DEFAULT_MEMORY if statistic in {"distinct", "density"} else MAX_DIRECT_BYTES


def maker(statistic: str, sizes: Mapping[str, Any], releases: int, intrusions: int) -> Maker:
    """A function from epsilon and bytes of memory to a plan."""
    if statistic not in SIZES:
        *most, last = (f'"{name}"' for name in SIZES)
        message = f"there are plans for {', '.join(most)} and {last}"
        raise PlanError(message)
    for name in sizes:
        if name not in SIZES[statistic]:
            message = f"{statistic} has no {name}=: its sizes are {', '.join(SIZES[statistic])}"
            raise PlanError(message)
    covers = positive_integer(releases=releases), whole_number(0, 100, intrusions=intrusions)
    planned = _MAKERS[statistic](**{name: sizes.get(name) for name in SIZES[statistic]})
    return lambda epsilon, memory: planned(Request(epsilon, *covers), memory)


Planned = Callable[[Request, int], Searched]


def _distinct(expected: object) -> Planned:
    users = expected_range(expected)
    return lambda request, memory: plan_distinct(users, memory, request)


def _density(universe: object) -> Planned:
    size = positive_integer(MAX_UNIVERSE, universe=universe)
    return lambda request, memory: plan_density(size, min(size, 8 * memory), request)


def _cropped(tau: object, bound: object, universe: object, expected: object) -> Planned:
    most = positive_integer(MOST_BOUND, tau=tau)
    reach = None if bound is None else positive_integer(MOST_BOUND, bound=bound)
    size = None if universe is None else positive_integer(MAX_UNIVERSE, universe=universe)
    users = None if expected is None else expected_range(expected)
    if isinstance(expected, tuple | list) and users and size is None:
        known = reach or default_bound(most, None)
        return lambda request, memory: plan_cropped_levels(most, known, users, request, memory)
    count = users[1] if users else None
    return lambda request, memory: plan_cropped(most, reach, size, None, count, request, memory)


def _threshold(least: object, bound: object, universe: object) -> Planned:
    state = positive_integer(MOST_BOUND, least=least)
    reach = None if bound is None else positive_integer(MOST_BOUND, bound=bound)
    sizes = state, reach, positive_integer(MAX_UNIVERSE, universe=universe), None
    return lambda request, memory: plan_threshold(*sizes, request, memory)


def _heavy(k: object, total: object) -> Planned:
    sizes = positive_integer(MOST_K, k=k), positive_integer(MOST_TOTAL, total=total), None, None
    return lambda request, memory: plan_heavy(*sizes, request, memory)


_MAKERS: dict[str, Callable[..., Planned]] = {
    "distinct": _distinct,
    "density": _density,
    "cropped-sum": _cropped,
    "threshold": _threshold,
    "heavy-hitters": _heavy,
}


def _smallest_memory(
    make: Maker, epsilon: Fraction, most: int | None, reaches: Reaches
) -> Searched | None:
    """The first power of two bytes, or else `most`, that reaches the target."""
    for candidate in _by_memory(make, epsilon, _MOST_SEARCHED if most is None else most):
        if reaches(candidate):
            return candidate
    return None


def _by_memory(make: Maker, epsilon: Fraction, most: int) -> Iterator[Searched]:
    """The plans of all powers of two bytes below `most`, and of `most`, that there are."""
    largest = make(epsilon, most)  # raises what is wrong with any memory
    for power in range((most - 1).bit_length()):
        with suppress(PlanError):  # the fewest cells do not fit
            yield make(epsilon, 1 << power)
        if largest.table.nbytes <= 1 << power:
            break
    yield largest


def _smallest_epsilon(make: Maker, memory: int, reaches: Reaches) -> Searched | None:
    """Bisect for the smallest epsilon of three significant digits."""
    low, high = _EPSILONS

    def enough(epsilon: Fraction) -> bool:
        with suppress(PlanError):  # so small that no signal is left
            return reaches(make(epsilon, memory))
        return False

    if not enough(high):
        return None
    while high / low > Fraction(1_002, 1_000):
        middle = _three_digits(math.sqrt(low * high))
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return make(high, memory)


def _three_digits(number: float) -> Fraction:
    return Fraction(f"{number:.3g}")


def _refuse(make: Maker, epsilon: Fraction | None, memory: int, reaches: Reaches) -> Searched:
    """Raise, saying what would reach the target."""
    at_epsilon = "" if epsilon is None else f" at epsilon {float(epsilon):g}"
    ways = ways_to(make, _EPSILONS[1] if epsilon is None else epsilon, memory, reaches)
    message = f"no plan of up to {memory:,} bytes reaches this error{at_epsilon}; {ways}"
    raise PlanError(message)


def ways_to(
    make: Maker,
    epsilon: Fraction,
    memory: int,
    reaches: Reaches,
    parts: Fraction = _WHOLE,
) -> str:
    """What would reach a target: more memory, a larger epsilon, or a larger problem."""
    larger = _smallest_memory(make, epsilon, None, reaches)
    looser = _smallest_epsilon(make, memory, reaches)
    ways = [f"a memory of {larger.table.nbytes:,} bytes"] if larger else []
    ways += [f"epsilon {shown(parts * looser.request.epsilon)}"] if looser else []
    return f"{' or '.join(ways)} would do" if ways else "only more users, or a larger k, would do"
