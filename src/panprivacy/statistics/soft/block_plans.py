"""Plans of counters whose law is larger on some blocks of values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.abilities import Growing
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.notes import BELOW, ROOM
from panprivacy.statistics.plan import smallest_error
from panprivacy.statistics.records import Sizes
from panprivacy.statistics.release import Name
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.law import Law, on_blocks
from panprivacy.tables.planning.blocks import (
    MOST_ANNOUNCED,
    block_sets,
    block_split,
    blocks_within,
    count_range,
    too_small,
)
from panprivacy.tables.planning.request import Request, Split, budgets, no_signal
from panprivacy.tables.planning.room import roomiest, wider_sets
from panprivacy.tables.planning.universe import cells_within, check_memory

IN_PART = f"{BELOW} count in part: {ROOM}"
"""What answers say of a soft threshold, or a hard one, without room below 0."""


class BlockPlan(CountPlan):
    """The plan of a count of cells with a block law."""

    __slots__ = ()

    chosen: DifferenceSet

    @property
    @abstractmethod
    def block(self) -> int:
        """The length of a block."""

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_blocks(self.chosen, self.block, self.split.budget.state)

    @property
    def modulus(self) -> int:
        """The number of values of a counter."""
        return self.block * self.chosen.modulus


class Soft(CountPlan):
    """The description of soft threshold counts: users between the thresholds count in part."""

    __slots__ = ()

    @property
    @abstractmethod
    def low(self) -> int:
        """A user counts from this state on."""

    @property
    def high(self) -> int:
        """A user counts in full from this state on, which is at most the threshold."""
        return 2 * self.low

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The soft count: each user counts as far as they are on the way from `low` to `high`."""
        return float(np.clip(states / self.low - 1, 0, 1).sum())

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Users that count in full."""
        return answer, self.high


class SoftPlan(Soft, BlockPlan):
    """The plan of such a count of cells with a block law."""

    __slots__ = ()

    cells: int
    below: int | None
    """0 where somebody says that there are no states below 0; None where nobody says."""

    @property
    def caveat(self) -> str | None:
        """The caveat that users below 0 count, where they are possible and there is no room."""
        return IN_PART if self.below is None else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """The same, and how much they count."""
        if self.caveat is None:
            return ()
        told, cure = IN_PART.split(":")
        return (f"{told}, from {-self.low:,} on in full:{cure}",)

    def sensitivity(self, epoch: int) -> int:
        """Return the sensitivity of the count to a user's cell: after an intrusion, 0 or 1."""
        return 1 if epoch else count_range(self.chosen)


def refused(sizes: Sizes, request: Request, what: str) -> PlanError:
    """Return the refusal of more announced intrusions than blocks allow, with the error.

    Each multiplies the error by more than the one before: the growth of the first is the least.
    """
    once = sizes.planned(replace(request, intrusions=MOST_ANNOUNCED, budget=None))
    growth = (once.growth if isinstance(once, Growing) else None) or 1
    error = smallest_error(once) * growth ** (request.intrusions - MOST_ANNOUNCED)
    message = (
        f"{what} cannot be read after {request.intrusions} announced intrusions: its error would "
        f"be at least about {error:.3g} times {once.measure}; make a fresh one after each"
    )
    return PlanError(message)


P = TypeVar("P", bound=BlockPlan)


def best_plan(
    make: Callable[[int, DifferenceSet, Split], P],
    request: Request,
    block: int,
    reach: int,
    *,
    cells: int | None,
    memory: int | None,
    wanted: Sequence[int],
    fewest: int = 1,
    moved: Callable[[DifferenceSet], int] = lambda _: 1,
    room: bool = False,
) -> P:
    """The best of all plans of so many counters, over all sets of blocks and budgets.

    Args:
        make: makes a plan from the number of counters, the set of blocks, and a split of epsilon.
        request: epsilon and what it covers.
        block: the length of a block.
        reach: the largest state of a counter.
        cells: how many counters there are; None for those that are wanted.
        memory: bytes of them, at most; None for 64 MiB.
        wanted: how many there may be, as far as they fit.
        fewest: so many have to fit.
        moved: by how much a user may move the count, by the set.
        room: whether counters reach farther where that is nearly free.

    Raises:
        PlanError: both cells and memory are said, the fewest counters do not fit, or no signal
            would be left.
    """
    check_memory(cells, memory)
    sets = block_sets(block, reach)

    def made(sets: Sequence[DifferenceSet], spendings: Sequence[Budget]) -> list[P]:
        plans = []
        for chosen in sets:
            fitting = cells_within(memory, block * chosen.modulus)
            sizes = sorted({min(size, fitting) for size in wanted}) if fitting >= fewest else []
            for budget in spendings:
                split = block_split(chosen, block, request, budget, moved(chosen))
                plans += [make(size, chosen, split) for size in ([cells] if cells else sizes)]
        return plans

    plans = made(sets, budgets(request))
    if not plans:
        raise too_small(fewest, block, sets)
    best = best_of(plans, request)
    if not room:
        return best
    wider = wider_sets(blocks_within(block, reach), best.chosen, block)
    others = _readable(made(wider, [best.split.budget]))
    return roomiest(best, others, lambda plan: plan.chosen, lambda plan: plan.absolute_error())


def best_of(plans: Sequence[P], request: Request) -> P:
    """The plan whose largest error is the smallest.

    Raises:
        PlanError: none leaves anything of what a state does to a count.
    """
    best = min(_readable(plans), key=lambda plan: plan.absolute_error(), default=None)
    if best is None or best.law.ratio == 1:
        raise no_signal(request)
    return best


def _readable(plans: Sequence[P]) -> list[P]:
    """Those that leave something of what a state does to a count."""
    return [p for p in plans if p.split.contrast > 0 and math.isfinite(p.split.noise_variance)]
