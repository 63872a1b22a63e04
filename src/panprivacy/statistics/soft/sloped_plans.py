"""Plans of soft thresholds that know states below 0: each block of values has a score.

With a law on blocks, and scores of blocks, all that a counter scores on average lies on lines
between states that are whole blocks apart. So a soft threshold whose slope is one or a few blocks
long is a question about few states, and the set of blocks may be shaped to it.
docs/guarantees/thresholds.md has the proof.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.soft.block_plans import Soft, SoftPlan
from panprivacy.statistics.soft.scored_plans import VotedPlan, scored_split
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.law import MOST_MODULUS, Law, of_blocks, on_blocks
from panprivacy.tables.cells.modular import counter_type
from panprivacy.tables.cells.shapes import Shape
from panprivacy.tables.cells.threshold import SlopedCells
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.request import Split, budgets, no_signal
from panprivacy.tables.planning.room import sets_of

PARTS = 1, 2, 4, 5
"""Room below 0 is as long as the slope, or such a part of it: the first that is nearly free."""

_MOST_BLOCKS = 900
"""A search for a set of more takes long."""

MOST_REACH = 3
"""Room below 0 comes first where there already is room for so many times the bound."""

_FEW = 100
"""Of so few blocks several numbers, sizes and falls are tried: each makes a difference."""

_DENSITY = 0.75
"""A set is a share of `1/(e**(3/4 epsilon) + 1)` of the blocks, or near it. That is more than makes
errors small on average over states, and makes the largest of them smaller."""

_FEWEST_SETS = 6
"""So many difference sets are tried, the smallest."""

_STEP = 8
"""Every eighth budget is tried while a difference set is looked for, and all of them with it."""


@dataclass(frozen=True, slots=True)
class Slope:
    """A law on blocks, and a soft threshold of so many blocks.

    Args:
        shape: what the states count that are whole blocks, and how many blocks there are.
        chosen: the set of blocks; None for the one that is shaped to the question.
        block: the length of a block.
    """

    shape: Shape
    chosen: DifferenceSet | None
    block: int

    @property
    def modulus(self) -> int:
        """The number of values of a counter."""
        return self.block * self.shape.modulus

    @property
    def between(self) -> bool:
        """Whether there are states that are no whole blocks."""
        return self.block > 1

    @property
    def fall(self) -> int:
        """Over so many states below those with room what counts rises to 1, as it does above."""
        return self.block * (self.shape.modulus - self.shape.below - self.shape.bound)

    def law(self, epsilon: Fraction) -> Law:
        """The noise of the number of a block."""
        return of_blocks(self.chosen or self.shape, self.block, epsilon)

    def of_values(self, epsilon: Fraction) -> Law:
        """The noise of the counters."""
        return on_blocks(self.chosen or self.shape, self.block, epsilon)

    def question(self) -> Floats:
        """Return the score of a user by the user's state in blocks."""
        return self.shape.question()

    def countable_states(self) -> NDArray[np.bool_]:
        """Those up to the bound, and those below 0 that have room."""
        return self.shape.countable_states()


class SlopedPlan(Soft, VotedPlan):
    """The plan of a soft threshold with room below 0."""

    __slots__ = ()

    slope: Slope
    resolution: int

    growth = None  # no intrusion is announced to it

    @property
    def recipe(self) -> Slope:
        """The law of the numbers of blocks, and what they count."""
        return self.slope

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return self.slope.of_values(self.split.budget.state)

    @property
    def searched_law(self) -> str:
        """The length of the blocks, and a digest of the weights of their law."""
        return f"{super().searched_law} of {self.slope.block}"

    @property
    def table(self) -> SlopedCells:
        """The table's cells."""
        told = self.slope.block, self.resolution
        return SlopedCells(self.cells, self.law, *told, self.votes(0).scores)

    @property
    def below(self) -> int:
        """The distance below 0 to which states have room and do not count."""
        return self.slope.shape.below * self.slope.block * self.resolution

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks about the scores of lower states."""
        full = self.below + self.slope.fall * self.resolution
        told = f"down to {-self.below:,} nobody counts"
        return (f"{told}; lower states do in part, from {-full:,} on in full",)


P = TypeVar("P", bound=SlopedPlan)

CounterSizes = Callable[[int], Sequence[int]]
"""How many counters there may be, fewest first, by how many values they have."""


@dataclass(frozen=True, slots=True)
class Search(Generic[P]):
    """The search range of plans with room below 0, in units of the counters.

    Args:
        make: makes a plan from the law, the number of counters, and a split of epsilon.
        counters: how many there may be.
        low: a user counts from this state on, and in full from twice as much.
        reach: the largest state.
        plain: the best plan without room, of whose numbers the search begins.
    """

    make: Callable[[Slope, int, Split], P]
    counters: CounterSizes
    low: int
    reach: int
    plain: SoftPlan

    def nearly_free(self, most: float) -> P | None:
        """The plan with most room that errs by no more, in no wider counters; None without one.

        Args:
            most: error.
        """
        spent, width = self.plain.split.budget, counter_type(self.plain.modulus)
        for part in PARTS:
            shaped = self._shaped(self.low // part, spent.state)
            slopes = [one for one in shaped if counter_type(one.modulus) == width]
            best = self._best(slopes, [spent], self._as_many)
            if best is not None and best.absolute_error() <= most:
                return best
        return None

    def with_room(self, below: int) -> P:
        """The plan of the smallest error of those with so much room, whatever that costs.

        Raises:
            PlanError: the counters do not fit, have too many values, or no signal would be left.
        """
        request, spent = self.plain.request, self.plain.split.budget
        rooms = {self.low * -(-below // self.low), *(self.low // part for part in PARTS)}
        shaped = [self._shaped(room, spent.state) for room in rooms if room >= below]
        slopes = itertools.chain(*shaped, self._difference_sets(below))
        found = self._best(slopes, [spent], self._as_many)
        if found is None:
            raise no_signal(request)
        spendings = [spent, *budgets(request)[::_STEP]]
        return self._best([found.slope], spendings, self._about_as_many) or found

    def _as_many(self, modulus: int) -> Sequence[int]:
        """Return the number of counters of the plan without room, as far as they fit."""
        return [one for one in self.counters(modulus) if one <= self.plain.cells][-1:]

    def _about_as_many(self, modulus: int) -> Sequence[int]:
        """The same, half of it, and twice as many."""
        cells = self.plain.cells
        return [one for one in self.counters(modulus) if cells <= 2 * one <= 4 * cells]

    def _best(
        self, slopes: Iterable[Slope], spendings: Sequence[Budget], counters: CounterSizes
    ) -> P | None:
        """The plan of the smallest largest error."""
        options = itertools.product(slopes, spendings)
        plans = itertools.chain.from_iterable(self._made(*one, counters) for one in options)
        return min(plans, key=SlopedPlan.absolute_error, default=None)

    def _made(self, slope: Slope, budget: Budget, counters: CounterSizes) -> Iterator[P]:
        """The plans of all numbers of counters; none where nothing can be read."""
        for cells in counters(slope.modulus):
            split = scored_split(slope, budget, cells, 0)
            if split is None:
                return
            yield self.make(slope, cells, split)

    def _shaped(self, room: int, epsilon: Fraction) -> Iterator[Slope]:
        """Sets that are shaped to the question, of blocks that divide both the slope and room."""
        if not room:
            return
        block = math.gcd(self.low, room)
        rise, below, top = self.low // block, room // block, -(-self.reach // block)
        few = top <= _FEW
        falls = (rise, 2 * rise, 3 * rise) if few else (2 * rise,)
        for fall, more in itertools.product(falls, (0, 1, 3) if few else (0, 4 * rise)):
            modulus = top + more + fall + below
            if modulus <= _MOST_BLOCKS and modulus * block <= MOST_MODULUS:
                bare = Shape(2 * rise, top + more, modulus, 1, below, rise)
                for size in _set_sizes(modulus, float(epsilon), few=few):
                    yield Slope(replace(bare, size=size), None, block)

    def _difference_sets(self, room: int) -> Iterator[Slope]:
        """Difference sets, of which any number of blocks can be had; the fall is one block."""
        below = -(-room // self.low)
        least = -(-self.reach // self.low) + below + 1
        for chosen in sets_of(least, self.low)[:_FEWEST_SETS]:
            shape = Shape(2, chosen.modulus - below - 1, chosen.modulus, chosen.size, below)
            yield Slope(shape, chosen, self.low)


def _set_sizes(modulus: int, epsilon: float, *, few: bool) -> list[int]:
    """Return the sizes of a set to try."""
    size = modulus / (math.exp(min(_DENSITY * epsilon, 700)) + 1)
    shares = (0.7, 0.85, 1, 1.15, 1.3) if few else (0.9, 1, 1.1)
    return sorted({min(max(round(share * size), 1), modulus - 1) for share in shares})
