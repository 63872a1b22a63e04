"""Plans of the same problem with another epsilon or memory, and which of them reach a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from panprivacy.errors import PlanError
from panprivacy.ground.patience import searches
from panprivacy.privacy.guarantee import format_rounded_up
from panprivacy.statistics.arguments import request
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import Sizes

MOST_SEARCHED = 1 << 30
EPSILONS = (Fraction(1, 1_000), Fraction(32))

Reaches = Callable[[Plan], bool]


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
        with searches.counted():
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
        low, high = EPSILONS

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
        at_epsilon = "" if epsilon is None else f" at epsilon {format_rounded_up(epsilon)}"
        ways = self.ways_to(EPSILONS[1] if epsilon is None else epsilon, memory, reaches)
        message = f"no plan of up to {memory:,} bytes reaches this error{at_epsilon}; {ways}"
        raise PlanError(message)

    def ways_to(
        self,
        epsilon: Fraction,
        memory: int | None,
        reaches: Reaches,
        parts: Fraction = Fraction(1),
    ) -> Ways:
        """Find what would reach a target.

        Args:
            epsilon: total privacy loss of the plan that does not reach it.
            memory: bytes of table; None for those of the sizes.
            reaches: says whether a plan reaches the target.
            parts: the number of plans that share the epsilon which the caller can change.
        """
        larger = None
        with suppress(PlanError):  # the cells are said, so that memory is not to be had
            larger = self.smallest_memory(epsilon, MOST_SEARCHED, reaches)
        looser = self.smallest_epsilon(memory, reaches)
        return Ways(
            larger.table.nbytes if larger else None,
            parts * looser.request.epsilon if looser else None,
        )
