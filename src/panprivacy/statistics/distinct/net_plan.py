"""The plans of a `DistinctCount` with deletions: which law, how many levels and cells."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.statistics.count_plan import CountAggregation, CountReading
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.statistics.distinct.plan import LevelledPlan
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.release import Name
from panprivacy.tables.addressing import Addressing, Levelled
from panprivacy.tables.cells.difference_sets import (
    DifferenceSet,
    next_biquadratic,
    next_prime,
    next_residues,
    point,
)
from panprivacy.tables.cells.law import (
    MOST_MODULUS,
    Law,
    hit_and_miss,
    on_set,
    outside,
)
from panprivacy.tables.cells.modular import ScaledCells, counter_type
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.blocks import best_counters
from panprivacy.tables.planning.regret import Designs, grid
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.room import roomiest

MOST_BOUND = MOST_MODULUS // 2

_ROOMS = 2, 4, 8
"""So many times as many values as states need are tried."""

_NO_USE = 1 / 3
"""A larger relative error tells hardly anything."""


class CounterAggregation(CountAggregation):
    """The contributions of tables of counters."""

    __slots__ = ()

    def of_cells(self, query: object, epoch: int, tables: int) -> CountReading:
        """Return the reading of the sum of tables of one key: each adds its noise."""
        return self.plan.reading(query, tables * (epoch + 1) - 1)


class LeavingPlan(LevelledPlan):
    """The common part of plans for users that come and go: cells fill nearly twice as fast."""

    __slots__ = ()

    proofs = ("modular", "releases")
    question = "how many different users are left, when they come and go?"
    needs_deltas = True

    @property
    def aggregation(self) -> CounterAggregation:
        """The contributions of several tables, as one."""
        return CounterAggregation(self)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Everybody whose deltas do not add up to 0."""
        return float(np.count_nonzero(states))

    @staticmethod
    def errors_of(models: Sequence[LevelModel], users: Floats) -> Floats:
        """The errors where answers are two deviations too large.

        A cell fills up fast, and beyond that errors have a long tail, which the deviation at the
        truth does not show.
        """
        errors = LevelledPlan.errors_of(models, users)
        ahead = users * (1 + 2 * np.minimum(errors, 1e6))
        return np.maximum(errors, LevelledPlan.errors_of(models, ahead))


@dataclass(frozen=True, slots=True)
class NetDistinctPlan(LeavingPlan):
    """The parameters of a `DistinctCount` of users whose deltas do not add up to 0.

    Args:
        bound: the largest distance of a state from 0.
        signed: whether states below 0 occur.
        chosen: the set on which the law of the counters is larger.
    """

    bound: int
    signed: bool
    chosen: DifferenceSet

    checks = ("exact/test_counters", "statistical/test_net_distinct")

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right: no multiple of M but 0 itself."""
        return 1 - self.chosen.modulus, self.chosen.modulus - 1

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_set(self.chosen, self.split.budget.state)

    @property
    def counted(self) -> tuple[Fraction, Fraction]:
        """The smallest and largest probability that a cell counts."""
        return outside(self.chosen, 1, self.split.budget.state)

    @property
    def table(self) -> ScaledCells:
        """The table's cells."""
        return ScaledCells(self.cells, self.law)

    def address(self, key: bytes) -> Addressing:
        """Return the addressing of a user's cell, and the factor of the user's deltas."""
        return Levelled(self.levels, self.cells_per_level * (self.chosen.modulus - 1), key)

    def model(self, epoch: int) -> LevelModel:
        """Return the estimate model of counts released after `epoch` announced intrusions.

        A user that adds a uniform nonzero number shrinks the chance of 0 beyond its share `1/M` by
        the factor `-1/(M-1)`.
        """
        hit, miss = hit_and_miss(self.chosen, self.split.budget.state, epoch)
        modulus = self.chosen.modulus
        return LevelModel(
            self.levels,
            self.cells_per_level,
            contrast=(hit - miss) * (1 - 1 / modulus),
            full=1 - miss - (hit - miss) / modulus,
            decay=modulus / (modulus - 1),
            noise_variance=self.split.noise_variance,
        )


@functools.lru_cache(maxsize=256)
def plan_net_distinct(
    expected: tuple[int, int], memory: int, bound: int, request: Request, *, signed: bool
) -> NetDistinctPlan:
    """Plan a `DistinctCount` with deletions within `memory` bytes of table.

    There is room beyond the bound where it is nearly free. There is none for a bound of 1, which
    says that a user is in or out, as in `deletions="strict"`; nor where answers are noise anyway,
    as such errors cannot be compared; nor where it would spoil what two shards add up.
    """
    sets = _sets(bound + 1)
    width = counter_type(sets[0].modulus).itemsize
    if memory < width:
        message = f"bound {bound:,} is too large for {memory} bytes: one counter takes {width}"
        raise PlanError(message)

    def planned(sets: tuple[DifferenceSet, ...]) -> NetDistinctPlan:
        return _designs(expected, bound, request, sets, signed=signed).best(memory // width)

    best = planned(sets)
    if bound == 1 or best.relative_error() >= 1:
        return best
    wider = []
    for some in _wider(bound + 1, width):
        with suppress(PlanError):  # so many values may leave no signal
            wider.append(planned(some))
    users = grid(*expected)

    def errors(one: NetDistinctPlan) -> Floats:
        """Return the errors of one table, and of the cell-wise sum of two where that is useful."""
        added = one.model(request.intrusions + 1).deviation(users) / users
        return np.concatenate([*one.planning_errors([one], users), np.fmin(added, _NO_USE)])

    return roomiest(best, wider, lambda one: one.chosen, errors)


@functools.lru_cache(maxsize=8)
def _designs(
    expected: tuple[int, int],
    bound: int,
    request: Request,
    sets: tuple[DifferenceSet, ...],
    *,
    signed: bool,
) -> Designs[NetDistinctPlan]:
    """The designs with these sets, for any memory."""

    def made(levels: int, cells: Sequence[int]) -> list[NetDistinctPlan]:
        return [
            NetDistinctPlan(expected, levels, each, request, split, bound, signed, chosen)
            for each, (split, chosen) in zip(
                cells, best_counters(request, cells, sets), strict=True
            )
        ]

    return Designs(made, expected)


def _wider(least: int, width: int) -> Iterator[tuple[DifferenceSet, ...]]:
    """The sets for several times as many values, in counters of as many bytes."""
    for times in _ROOMS:
        sets = _sets(times * least)
        if sets[0].modulus <= MOST_MODULUS and counter_type(sets[0].modulus).itemsize == width:
            yield sets


@functools.lru_cache(maxsize=32)
def _sets(least: int) -> tuple[DifferenceSet, ...]:
    """The sets to choose from: their modulus is prime, above the bound, and as small as can be."""
    prime = point(next_prime(least))
    width = counter_type(prime.modulus)
    others = [next_residues(max(least, 3)), next_biquadratic(least)]
    fitting = [one for one in others if one and counter_type(one.modulus) == width]
    return prime, *fitting
