"""Plans of the same problem with another epsilon or memory, and which of them reach a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from panprivacy.errors import PlanError
from panprivacy.ground.patience import searching
from panprivacy.ground.searches import stored_or_searched
from panprivacy.privacy.guarantee import format_rounded_up
from panprivacy.statistics.arguments import request
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import Sizes

MOST_SEARCHED = 1 << 30
EPSILONS = (Fraction(1, 1_000), Fraction(32))

_MEMORY_POWER = 0.5
"""Errors are about inverse to such a power of the memory."""

_NEAR = Fraction(11, 10)
"""Within such a factor each epsilon that is asked for gets a plan: errors are no smooth curves."""

_MOST_SMOOTH = 4
"""Beyond such an epsilon they all do, of a range: an error of least regret may rise with it."""

_LEAP = 6
"""Every sixth plan that is tried halves what is left, should errors not fall as foreseen."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of plans: an error that they may have at most.

    Args:
        error: measures that of a plan.
        most: the largest that will do.
        name: of what `error` measures, to store the result of a long search under; empty to
            store none.
    """

    error: Callable[[Plan], float]
    most: float
    name: str = ""

    def __call__(self, plan: Plan) -> bool:
        """Whether a plan reaches it."""
        return self.error(plan) <= self.most


@dataclass(slots=True)
class _Bracket:
    """The sizes between which errors come down to a target: the smaller the size, the larger they.

    Args:
        most: the largest error that will do.
        power: errors are about inverse to such a power of the size.
        low: the largest size that misses it, as a logarithm, with its error.
        high: the smallest size that reaches it, and its error.
    """

    most: float
    power: float
    low: tuple[float, float] = (-math.inf, math.inf)
    high: tuple[float, float] = (math.inf, 0.0)
    tried: int = 0

    @property
    def _reached(self) -> bool:
        """Whether a size is known that reaches it."""
        return self.high[0] < math.inf

    def add(self, size: float, error: float) -> None:
        """Learn the error of a size."""
        self.tried += 1
        if error <= self.most:
            self.high = min(self.high, (math.log(size), error))
        else:
            self.low = max(self.low, (math.log(size), error))

    def crossing(self, least: float, most: float) -> float:
        """Return the size where errors come down to the target, as far as is known.

        Args:
            least: it is larger.
            most: it is no larger.
        """
        ends = math.log(least), math.log(most)
        known = [(x, math.log(error)) for x, error in (self.low, self.high) if 0 < error < math.inf]
        found, aim = sum(ends) / 2, math.log(self.most) if self.most > 0 else math.nan
        if len(known) == 2:
            (x, y), (further, z) = known
            found = x + (further - x) * (y - aim) / (y - z)
        elif known:
            ((x, y),) = known
            found = x + (y - aim) / self.power
        hopeless = self.tried > 1 or not known or found >= ends[1]
        if self.tried and not self._reached and hopeless:
            return most  # should that not reach it, nothing does
        if self.tried % _LEAP == _LEAP - 1 or not ends[0] < found < ends[1]:
            found = sum(ends) / 2
        return math.exp(found)


@dataclass(frozen=True, slots=True)
class Ways:
    """The changes of which each alone makes a plan reach a target that it misses.

    Args:
        memory: bytes of table; None where no memory would do.
        epsilon: total privacy loss; None where no epsilon would do.
    """

    memory: int | None
    epsilon: Fraction | None

    @property
    def field(self) -> str | None:
        """Name of the argument to change; None where only a larger problem would do."""
        if self.memory is not None:
            return "memory"
        return None if self.epsilon is None else "epsilon"

    def __str__(self) -> str:
        ways = [] if self.memory is None else [f"a memory of {self.memory:,} bytes"]
        ways += [] if self.epsilon is None else [f"epsilon {format_rounded_up(self.epsilon)}"]
        return f"{' or '.join(ways)} would do" if ways else "only a larger problem would do"


class Alternatives:
    """Plans of the same problem, for other epsilons and memories.

    Args:
        sizes: of the problem.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions it covers.
    """

    def __init__(self, sizes: Sizes, releases: int, intrusions: int) -> None:
        self.sizes, self._asked = sizes, request(1, releases, intrusions)

    @property
    def releases(self) -> int:
        """The number of releases that epsilon covers."""
        return self._asked.releases

    @property
    def intrusions(self) -> int:
        """The number of announced intrusions that it covers."""
        return self._asked.intrusions

    def plan(self, epsilon: Fraction, memory: int | None) -> Plan:
        """The plan for an epsilon, within so many bytes of table; None for those of the sizes."""
        sizes = self.sizes if memory is None else self.sizes.within(memory)
        return sizes.planned(replace(self._asked, epsilon=epsilon))

    def smallest_memory(self, epsilon: Fraction, most: int, target: Target) -> Plan | None:
        """Return the plan of the first power of two bytes, or else `most`, that reaches the target.

        More memory makes no error larger, so most of them need no plan. Only that of the least
        regret over a range of answers may have a larger error somewhere.
        """

        def planned(memory: str) -> Plan:
            return self.plan(epsilon, int(memory))

        def search() -> int | None:
            largest = self.plan(epsilon, most)  # raises what is wrong with any memory
            if target(largest):
                return self._smallest_memory(epsilon, most, largest, target)
            return self._first(epsilon, largest, target) if largest.error_points else None

        return self._found(planned, search, target, epsilon=str(epsilon), most=most)

    def smallest_epsilon(self, memory: int | None, target: Target) -> Plan | None:
        """Return the plan of the smallest epsilon of three digits that reaches the target."""

        def planned(epsilon: str) -> Plan:
            return self.plan(Fraction(epsilon), memory)

        return self._found(
            planned, lambda: self._smallest_epsilon(memory, target), target, memory=memory
        )

    def _found(
        self,
        planned: Callable[[str], Plan],
        search: Callable[[], int | Fraction | None],
        target: Target,
        **asked: object,
    ) -> Plan | None:
        """Return the plan that a search finds, or has found in another process."""

        def searched() -> str | None:
            found = search()
            return None if found is None else str(found)

        def holds(found: str) -> bool:
            return target(planned(found))

        problem = repr(self.sizes), self.releases, self.intrusions
        question = {"problem": problem, "error": target.name, "most": target.most, **asked}
        with searching():
            found = stored_or_searched(question, searched, holds) if target.name else searched()
            return None if found is None else planned(found)

    def _smallest_memory(self, epsilon: Fraction, most: int, largest: Plan, target: Target) -> int:
        """Return the first power of two bytes that reaches what `most` reaches, or else that."""
        best, sizes = most, [1 << power for power in range((most - 1).bit_length())]
        enough = next((i for i, size in enumerate(sizes) if size >= largest.table.nbytes), None)
        low, high = -1, len(sizes) if enough is None else enough + 1
        bracket = _Bracket(target.most, _MEMORY_POWER)
        bracket.add(min(largest.table.nbytes, most), target.error(largest))
        while high - low > 1:
            guess = bracket.crossing(2.0 ** max(low, 0), 2.0**high)
            middle = min(max(round(math.log2(guess)), low + 1), high - 1)
            error = math.inf
            with suppress(PlanError):  # the fewest cells do not fit
                error = target.error(self.plan(epsilon, sizes[middle]))
            bracket.add(sizes[middle], error)
            if error <= target.most:
                best, high = sizes[middle], middle
            else:
                low = middle
        return best

    def _first(self, epsilon: Fraction, largest: Plan, target: Target) -> int | None:
        """The first power of two bytes that reaches the target, of as many as the largest plan."""
        for power in range(largest.table.nbytes.bit_length()):
            with suppress(PlanError):  # the fewest cells do not fit
                if target(self.plan(epsilon, 1 << power)):
                    return 1 << power
        return None

    def _smallest_epsilon(self, memory: int | None, target: Target) -> Fraction | None:
        """Bisect for the smallest epsilon of three significant digits.

        A larger epsilon makes no error larger. So a plan that is asked for is made of where errors
        are foreseen to come down to the target, until that answers what was asked.
        """
        low, high = EPSILONS
        known = [Fraction(0), 2 * high]  # the largest that misses it, the smallest that reaches it
        bracket = _Bracket(target.most, 1)
        ranges: set[bool] = set()

        def measure(epsilon: Fraction) -> None:
            error = math.inf
            with suppress(PlanError):  # so small that no signal is left
                planned = self.plan(epsilon, memory)
                error = target.error(planned)
                ranges.add(bool(planned.error_points))
            bracket.add(float(epsilon), error)
            known[error <= target.most] = epsilon

        def enough(epsilon: Fraction) -> bool:
            while known[0] < epsilon < known[1]:
                ends = max(known[0], low), min(known[1], high)
                guess = _rounded(bracket.crossing(*map(float, ends)))
                rough = ends[0] > _MOST_SMOOTH and True in ranges
                near = rough or ends[1] <= _NEAR * ends[0]
                measure(guess if known[0] < guess < known[1] and not near else epsilon)
            return epsilon >= known[1]

        if not enough(high):
            return None
        while high / low > Fraction(1_002, 1_000):
            middle = _rounded(math.sqrt(low * high))
            if not low < middle < high:
                break
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def refuse(self, epsilon: Fraction | None, memory: int, target: Target) -> Plan:
        """Raise, saying what would reach the target."""
        at_epsilon = "" if epsilon is None else f" at epsilon {format_rounded_up(epsilon)}"
        ways = self.ways_to(EPSILONS[1] if epsilon is None else epsilon, memory, target)
        message = f"no plan of up to {memory:,} bytes reaches this error{at_epsilon}; {ways}"
        raise PlanError(message)

    def ways_to(
        self,
        epsilon: Fraction,
        memory: int | None,
        target: Target,
        parts: Fraction = Fraction(1),
    ) -> Ways:
        """Find what would reach a target.

        Args:
            epsilon: total privacy loss of the plan that does not reach it.
            memory: bytes of table; None for those of the sizes.
            target: says whether a plan reaches it.
            parts: the number of plans that share the epsilon which the caller can change.
        """
        larger = None
        with suppress(PlanError):  # the cells are said, so that memory is not to be had
            larger = self.smallest_memory(epsilon, MOST_SEARCHED, target)
        looser = self.smallest_epsilon(memory, target)
        return Ways(
            larger.table.nbytes if larger else None,
            parts * looser.request.epsilon if looser else None,
        )


def _rounded(size: float) -> Fraction:
    """Return the nearest number of three significant digits."""
    return Fraction(f"{size:.3g}")
