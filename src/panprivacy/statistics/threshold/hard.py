"""The plan of a `ThresholdCount` that cuts hard: a law shaped to the threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.release import Name
from panprivacy.statistics.soft.block_plans import IN_PART
from panprivacy.statistics.soft.scored_plans import ScoredPlan, promising, scored_split
from panprivacy.statistics.threshold.plan import AnyThreshold, soft_plan
from panprivacy.tables.cells.law import Law, on_shape
from panprivacy.tables.cells.modular import counter_type
from panprivacy.tables.cells.shapes import MOST_SHAPED, Shape
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.request import Request, budgets, no_signal
from panprivacy.tables.planning.room import MOST_COST

MOST_HARD = 4_095
"""The largest bound: the search for a law of twice as many values takes four times as long."""

_ROOM = Fraction(9, 8)
"""So many times as many values as states let what a user counts fall slowly beyond the bound."""

_PARTS = 2, 4, 8
"""States below 0 have room down to such a part of the threshold, the first that is nearly free."""

_FEW = 32
"""Of so few values or residues several numbers are tried: one more makes a difference."""

_STATE_SHARE = Fraction(9, 10)
"""Of epsilon, while a set is looked for; the set then has the split that is best for it."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """A law on a set that is shaped to a threshold.

    Args:
        shape: of the set.
    """

    shape: Shape

    between = False

    def law(self, epsilon: Fraction) -> Law:
        """Larger on the set."""
        return on_shape(self.shape, epsilon)

    def question(self) -> Floats:
        """1 from the threshold on, and less beyond the bound."""
        return self.shape.question()

    def countable_states(self) -> NDArray[np.bool_]:
        """Those up to the bound, and those below 0 that have room."""
        return self.shape.countable_states()


@dataclass(frozen=True, slots=True)
class HardPlan(AnyThreshold, ScoredPlan):
    """The parameters of a `ThresholdCount` that cuts hard.

    Args:
        below: 0 where somebody says that there are no states below 0; None where nobody says.
        shape: the set on which the law of the counters is larger.
    """

    below: int | None
    shape: Shape

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return f"how many users are in a state of {self.threshold:,} or more?"

    @property
    def unit(self) -> str:
        """The unit of answers."""
        return f"users with {self.threshold:,} or more"

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "at_least", (("state", self.threshold),))

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right."""
        return -self.shape.below, self.bound

    @property
    def recipe(self) -> Shaped:
        """A law that is shaped to the threshold."""
        return Shaped(self.shape)

    @property
    def caveat(self) -> str | None:
        """The caveat that users below 0 count, where they are possible and there is no room."""
        return IN_PART if self.below is None and not self.shape.below else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks about the error of a soft threshold with as many counters."""
        counters = self.universe, self.cells, None
        soft = soft_plan(self.threshold, self.bound, *counters, self.request)
        times = self.absolute_error() / soft.absolute_error()
        remark = f"it errs {times:.2g} times as much as without hard"
        remarks = f"{remark}, where users above {soft.low:,} count in part", self.caveat
        return tuple(filter(None, remarks))

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The users in such a state, beyond the bound too."""
        return float((states >= self.threshold).sum())

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Users at the threshold."""
        return answer, self.threshold


def hard_plan(
    threshold: int,
    bound: int,
    universe: int,
    counters: Callable[[int], int],
    request: Request,
    below: int | None,
) -> HardPlan:
    """The plan of the smallest largest error, or one with room below 0 that errs hardly more.

    Args:
        threshold: the state from which on users count.
        bound: the largest state.
        universe: number of possible users.
        counters: how many there may be, by how many values they have.
        request: epsilon and what it covers.
        below: how far below 0 nobody may count; None for as far as is nearly free.

    Raises:
        PlanError: the bound or the room is too large, or no signal is left.
    """
    _check(bound, below or 0)

    def made(shape: Shape, budget: Budget) -> Iterator[HardPlan]:
        cells = counters(shape.modulus)
        shaped = Shaped(shape)
        split = scored_split(shaped, budget, cells, request.intrusions) if cells else None
        if split is not None:
            yield HardPlan(threshold, bound, universe, cells, request, split, below, shape)

    spendings = budgets(request)
    wanted = _STATE_SHARE * request.epsilon / request.looks
    likely = min(spendings, key=lambda one: abs(one.state - wanted))

    def best(bare: Iterable[Shape]) -> HardPlan | None:
        shapes = [one for shape in bare for one in _sized(shape, float(likely.state))]
        tried = [plan for shape in shapes for plan in made(shape, likely)]
        if not tried:
            return None
        found = min(tried, key=HardPlan.absolute_error).shape
        asked = Shaped(found), spendings, counters(found.modulus), request.intrusions
        split = [plan for budget in promising(*asked) for plan in made(found, budget)]
        return min(split, key=HardPlan.absolute_error)

    bare = [Shape(threshold, bound, modulus, 1) for modulus in _moduli(threshold, bound)]
    tight = best(_with_room(bare, below or 0))
    if tight is None:
        raise no_signal(request)
    if below is not None:
        return tight
    most = MOST_COST * tight.absolute_error()
    width = counter_type(bare[0].modulus)
    for part in _PARTS:
        shapes = _with_room(bare, threshold // part)
        roomy = best(one for one in shapes if one.below and counter_type(one.modulus) == width)
        if roomy and roomy.absolute_error() <= most:
            return roomy
    return tight


def _check(bound: int, below: int) -> None:
    """Refuse so many states that a search would take too long."""
    if bound > MOST_HARD:
        message = (
            f"the bound ({bound:,}) of a hard threshold may be at most {MOST_HARD:,}; lower it, or "
            "leave out hard= for a soft threshold, which has no such limit"
        )
        raise PlanError(message)
    if bound + below > MOST_HARD:
        message = (
            f"the bound ({bound:,}) and below= ({below:,}) of a hard threshold may be at most "
            f"{MOST_HARD:,} together; lower one, or leave out hard="
        )
        raise PlanError(message)


def _with_room(shapes: Iterable[Shape], below: int) -> Iterator[Shape]:
    """The shapes with room for so many states below 0."""
    for shape in shapes:
        modulus = shape.modulus + below
        if modulus <= MOST_SHAPED:
            yield replace(shape, modulus=modulus, below=below)


def _sized(shape: Shape, epsilon: float) -> Iterator[Shape]:
    """The shape with each size to choose from."""
    return (replace(shape, size=size) for size in _set_sizes(shape.modulus, epsilon))


def _moduli(threshold: int, bound: int) -> list[int]:
    """Return the numbers of values to try for a counter: all if few, else the better end."""
    least, most = max(bound + 1, 3), max(math.ceil(_ROOM * (bound + 1)), 4)
    if most <= _FEW:
        return list(range(least, most + 1))
    two = Shape(threshold, bound, least, 1), Shape(threshold, bound, most, 1)
    return [min(two, key=lambda one: one.price_bound(1)).modulus]


def _set_sizes(modulus: int, epsilon: float) -> list[int]:
    """Return the set sizes to try: near the share that gives its law the largest spectrum."""
    size = max(round(modulus / (math.exp(min(epsilon, 700)) + 1)), 1)
    near = range(max(size * 3 // 4, 1), size * 3 // 2 + 2) if size < _FEW else [size]
    return [one for one in near[:: max(size // 8, 1)] if one < modulus]
