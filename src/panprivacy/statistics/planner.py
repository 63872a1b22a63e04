"""From a target error to a plan: the smallest memory or the smallest epsilon that reaches it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from panprivacy._validate import (
    MOST_BYTES,
    positive_fraction,
    positive_integer,
    proportion,
)
from panprivacy.errors import PlanError
from panprivacy.guarantee import Epsilon, shown
from panprivacy.statistics.arguments import request
from panprivacy.statistics.catalogue import kind_of
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import Sizes
from panprivacy.statistics.statistic import Statistic

_MOST_SEARCHED = 1 << 30
_EPSILONS = (Fraction(1, 1_000), Fraction(32))


def plan(
    statistic: str | type[Statistic[Any, Any]],
    *,
    epsilon: Epsilon | None = None,
    error: Epsilon | None = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
    **sizes: Any,
) -> Any:
    """Plan a statistic: from epsilon and memory to an error, or from an error to either.

    >>> import panprivacy as pp
    >>> plan = pp.plan("distinct", expected=(10_000, 1_000_000), epsilon=1, error=0.1)
    >>> plan.table.nbytes, plan.relative_margin(0.95) <= 0.1
    (4096, True)

    With `epsilon` alone, the plan of least regret within `memory`: at each answer of the range that
    is planned for its relative error exceeds that of the best plan for this answer by some factor,
    and the largest of these factors is the smallest. Without a range it is that of the largest
    error, so this plan errs least; of an "incidence" that is the error of one of a few entries. Of
    plans of counters that err at most 5 % more the one with most room for states beyond its bound
    is taken. With `epsilon` and `error`, the smallest memory that reaches the error anywhere in the
    range. With `error` alone, the smallest epsilon (to three digits) that reaches it within
    `memory`.

    Args:
        statistic: its class, such as `DistinctCount`; or its name, such as "distinct", of which
            `panprivacy stats` lists all.
        epsilon: total loss of state and releases, in nats.
        error: how far an answer may stray, as a share of what the plan calls its `measure`: of
            the number of users for "distinct", of the universe for "density", and so on.
        memory: bytes of table, at most; None for what the statistic takes unless told, or with
            `epsilon` and `error` for what it takes to reach the error.
        confidence: probability with which an answer strays by no more than `error`.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers.
        sizes: of the statistic, as its constructor takes them.

    Returns:
        The plan of the statistic.

    Raises:
        PlanError: an argument is out of range, or nothing reaches the error; says what would.
    """
    kind = kind_of(statistic)
    search = Alternatives(kind.sizes_type.read(kind.name, sizes), releases, intrusions)
    level = proportion(confidence=confidence)
    size = None if memory is None else positive_integer(MOST_BYTES, memory=memory)
    if error is None:
        if epsilon is None:
            message = "a plan needs epsilon, or the error to reach, or both"
            raise PlanError(message)
        return search.plan(positive_fraction(epsilon=epsilon), size)
    target = float(positive_fraction(error=error))
    total = None if epsilon is None else positive_fraction(epsilon=epsilon)
    return plan_for(search, total, target, size, level)


def plan_for(
    search: Alternatives,
    epsilon: Fraction | None,
    target: float,
    memory: int | None,
    confidence: float,
) -> Plan:
    """The smallest plan whose answers stray by no more than a target.

    Args:
        search: of plans of one problem.
        epsilon: of the plan, whose memory is searched for; None to search for the epsilon.
        target: as a share of what the plan calls its `measure`.
        memory: bytes of table, at most.
        confidence: how often answers are to stray by no more.

    Raises:
        PlanError: nothing reaches it; says what would.
    """

    def reaches(candidate: Plan) -> bool:
        return candidate.relative_margin(confidence) <= target

    if epsilon is None:
        search.plan(_EPSILONS[1], memory)  # raises what is wrong with any epsilon
        found = search.smallest_epsilon(memory, reaches)
        return found or search.refuse(None, memory or search.sizes.most_memory, reaches)
    found = search.smallest_memory(epsilon, memory or _MOST_SEARCHED, reaches)
    return found or search.refuse(epsilon, memory or _MOST_SEARCHED, reaches)


def check_useful(planned: Plan, sizes: Sizes, parts: Fraction = Fraction(1)) -> None:
    """Refuse a plan whose answers would be noise, saying what would do better.

    Args:
        planned: the plan.
        sizes: from which it was made.
        parts: into how many such parts the epsilon is split that can be changed.

    Raises:
        PlanError: the standard deviation exceeds the first of the plan's `limits`, everywhere in
            the range if one is planned for.
    """
    most, good = planned.limits
    found = least_error(planned)
    if found < most:
        return
    asked = planned.request
    search = Alternatives(sizes, asked.releases, asked.intrusions)
    ways = search.ways_to(
        asked.epsilon, None, lambda candidate: least_error(candidate) < good, parts
    )
    message = (
        f"this plan gives a standard deviation of at least {found:.2g} times {planned.measure}: "
        f"the answer would be noise; {ways}"
    )
    raise PlanError(message)


def least_error(planned: Plan) -> float:
    """The relative error of a plan; of one for a range, that of the end or middle that is best."""
    if not planned.told_at:
        return planned.relative_error()
    return min(planned.relative_error(truth) for truth in planned.told_at)


Reaches = Callable[[Plan], bool]


class Alternatives:
    """Plans of the same problem, for other epsilons and memories.

    Args:
        sizes: of the problem.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions it covers.
    """

    def __init__(self, sizes: Sizes, releases: int, intrusions: int) -> None:
        self.sizes, self._asked = sizes, request(1, releases, intrusions)

    def plan(self, epsilon: Fraction, memory: int | None) -> Plan:
        """The plan for an epsilon, within so many bytes of table; None for those of the sizes."""
        sizes = self.sizes if memory is None else self.sizes.within(memory)
        return sizes.planned(replace(self._asked, epsilon=epsilon))

    def smallest_memory(self, epsilon: Fraction, most: int, reaches: Reaches) -> Plan | None:
        """The first power of two bytes, or else `most`, that reaches the target."""
        return next(filter(reaches, self._by_memory(epsilon, most)), None)

    def _by_memory(self, epsilon: Fraction, most: int) -> Iterator[Plan]:
        """The plans of all powers of two bytes below `most`, and of `most`, that there are."""
        largest = self.plan(epsilon, most)  # raises what is wrong with any memory
        for power in range((most - 1).bit_length()):
            with suppress(PlanError):  # the fewest cells do not fit
                yield self.plan(epsilon, 1 << power)
            if largest.table.nbytes <= 1 << power:
                break
        yield largest

    def smallest_epsilon(self, memory: int | None, reaches: Reaches) -> Plan | None:
        """Bisect for the smallest epsilon of three significant digits."""
        low, high = _EPSILONS

        def enough(epsilon: Fraction) -> bool:
            with suppress(PlanError):  # so small that no signal is left
                return reaches(self.plan(epsilon, memory))
            return False

        if not enough(high):
            return None
        while high / low > Fraction(1_002, 1_000):
            middle = Fraction(f"{math.sqrt(low * high):.3g}")
            if not low < middle < high:
                break
            low, high = (low, middle) if enough(middle) else (middle, high)
        return self.plan(high, memory)

    def refuse(self, epsilon: Fraction | None, memory: int, reaches: Reaches) -> Plan:
        """Raise, saying what would reach the target."""
        at_epsilon = "" if epsilon is None else f" at epsilon {shown(epsilon)}"
        ways = self.ways_to(_EPSILONS[1] if epsilon is None else epsilon, memory, reaches)
        message = f"no plan of up to {memory:,} bytes reaches this error{at_epsilon}; {ways}"
        raise PlanError(message)

    def ways_to(
        self,
        epsilon: Fraction,
        memory: int | None,
        reaches: Reaches,
        parts: Fraction = Fraction(1),
    ) -> str:
        """What would reach a target: more memory, a larger epsilon, or a larger problem."""
        larger = None
        with suppress(PlanError):  # the cells are said, so that memory is not to be had
            larger = self.smallest_memory(epsilon, _MOST_SEARCHED, reaches)
        looser = self.smallest_epsilon(memory, reaches)
        ways = [f"a memory of {larger.table.nbytes:,} bytes"] if larger else []
        ways += [f"epsilon {shown(parts * looser.request.epsilon)}"] if looser else []
        return f"{' or '.join(ways)} would do" if ways else "only a larger problem would do"
