"""The plans of an `OverlapSketch`: hashed bits, or one bit for each user of a universe."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self, cast

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.statistics.aggregation import Aggregation
from panprivacy.statistics.count_plan import CountPlan, CountReading
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.statistics.distinct.plan import LevelledPlan
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.overlaps.occupancy import BitNoise
from panprivacy.statistics.overlaps.patterns import CellLayout
from panprivacy.statistics.overlaps.prediction import predict, two_windows
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.plan import guarantee_of
from panprivacy.statistics.release import Name
from panprivacy.statistics.sketch.decoder import UserModel, overlap_deviations
from panprivacy.statistics.sketch.publication import (
    Covers,
    PublicationBudget,
    budget_of,
    publication_law,
)
from panprivacy.tables.cells.protocol import Deltas, Table
from panprivacy.tables.cells.published import BitLaw, PublishedBits
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.planning.regret import Designs
from panprivacy.tables.planning.request import Request, Split, no_signal
from panprivacy.tables.planning.universe import check_cells
from panprivacy.tables.slices import Slice

MOST_CELLS = 1 << 27
"""A universe of up to so many users gets one cell each; larger ones a sample."""
CELLS_PER_USER = 3
"""Hashed cells for each expected user: more of them add more noise than they avoid collisions."""
_NORMAL = 1.96
_PUBLISHED = "each table is published once, and the next users are counted in a new one"
_NOT_BOTH = (
    "a look at the state of a window that publishes its table is not covered; at another window "
    "it costs epsilon"
)


class TableAggregation(Aggregation):
    """What is said of contributions of tables that are published: they are joined, not merged."""

    def of_sums(self, query: Any, epoch: int, tables: int) -> NoReturn:  # noqa: ARG002
        """Refuse them.

        Raises:
            PlanError: always.
        """
        message = "tables that are published are not merged: publish that of each shard, and join "
        message += "the sketches"
        raise PlanError(message)

    of_cells = of_sums


class OverlapPlan(CountPlan):
    """The common part of the plans: a table of bits that is published."""

    __slots__ = ()

    covers: Covers
    share: float

    proofs: ClassVar[tuple[str, ...]] = ("sketches",)
    checks: ClassVar[tuple[str, ...]] = ("exact/test_sketches", "statistical/test_sketches")
    question = "which users appeared, to compare windows and groups by published tables?"
    unit = "users"
    measure = "the number of users"
    name = Name("", "distinct")

    @property
    @abstractmethod
    def layout(self) -> CellLayout:
        """Layout of the cells that users have, for whoever reads a published table."""

    def slice_layout(self, slice_: Slice) -> CellLayout:
        """Return the layout of the cells of a slice."""
        whole, cells = self.layout, self.slicing.share(slice_)
        universe = None if whole.universe is None else slice_.share(whole.universe)
        return CellLayout(cells // whole.levels, whole.levels, universe)

    @property
    def law(self) -> BitLaw:
        """The law of a bit, and of what is published of it."""
        return publication_law(self.request.epsilon, self.covers, self.request.releases)

    @property
    def table(self) -> PublishedBits:
        """The table's cells."""
        return PublishedBits(self.layout.cells, self.law)

    @property
    def published(self) -> tuple[float, float]:
        """Probabilities of a published 1 where nobody came, and where somebody came."""
        law = self.law
        return float(law.published_absent), float(law.published_present)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee to each user of the stream."""
        if self.covers == "seizure":
            crash = cast("PublicationBudget", self.split.budget).crash
            promise = guarantee_of(self, crash=crash, crash_again=Fraction(0))
            return promise.on_condition(_PUBLISHED)
        return replace(guarantee_of(self), looks=False).on_condition(_PUBLISHED, _NOT_BOTH)

    @property
    def window_guarantee(self) -> Guarantee:
        """The guarantee of one window: its table, and one look at its state before."""
        budget = cast("PublicationBudget", self.split.budget)
        window = budget.total(releases=1, intrusions=0)
        return replace(self.guarantee, epsilon=window, unseen=budget.alone)

    def check_deltas(self, deltas: Deltas) -> None:
        """Nobody leaves."""
        refuse_deltas(deltas < 1, "delta must be at least 1: nobody leaves a table of who came")

    @property
    def aggregation(self) -> TableAggregation:
        """Refuse contributions of several tables: published tables are joined as they are."""
        return TableAggregation(self)

    def reading(self, query: object, epoch: int) -> OverlapReading:  # noqa: ARG002
        """Return the reading of the published table."""
        return OverlapReading(self, epoch)

    @property
    def blank_sketch(self) -> Sketch:
        """A sketch of the size of all that it publishes, of nobody and without a key."""
        return Sketch.of(self, bytes(self.key_bytes), np.zeros(self.table.nbytes, np.uint8))

    def return_error(self, users: float) -> float:
        """Return the predicted standard deviation of the return rate of two windows.

        Args:
            users: of each window, of whom the share `share` is in both.
        """
        noise = BitNoise(*((one, one) for one in self.published))
        windows = two_windows(users, users, self.share)
        return predict(self.layout, noise, windows).return_rate

    @property
    def remarks(self) -> tuple[str, ...]:
        """The predicted error of a return rate, beside that of the number of users."""
        told = [
            f"±{_points(self.return_error(users))} points at {users:,.0f} users"
            for users in self.error_points or (self.largest / 2,)
        ]
        return (
            f"where {100 * self.share:g} % come back, 95 % of return rates are within "
            + ", ".join(told),
        )

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Everybody who came."""
        return float(len(states))


@dataclass(frozen=True, slots=True)
class HashedOverlapPlan(OverlapPlan, LevelledPlan):
    """The parameters of an `OverlapSketch` of open-ended ids.

    Args:
        expected: lowest and highest number of users the plan is good for.
        levels: number of levels.
        cells_per_level: cells of each.
        request: epsilon and what it covers.
        split: how epsilon is spent.
        covers: what epsilon covers.
        share: of users who come back, for the predicted error.
    """

    covers: Covers
    share: float

    limits = 1.0, 0.5

    @property
    def layout(self) -> CellLayout:
        """Hashed cells of levels that halve in popularity."""
        return CellLayout(self.cells_per_level, self.levels)

    def model(self, epoch: int) -> LevelModel:  # noqa: ARG002
        """Return the estimate model of the number of ones in each published level."""
        absent, present = self.published
        return LevelModel(
            self.levels,
            self.cells_per_level,
            contrast=present - absent,
            full=present,
            decay=1,
            noise_variance=0.0,
        )

    @classmethod
    def planning_errors(
        cls, designs: Sequence[Self], users: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The errors of the overlap of two windows of equally many users, as a share of these."""
        errors = [
            overlap_deviations(one.layout, *one.published, users, one.share) / users
            for one in designs
        ]
        return np.array(errors)


@dataclass(frozen=True, slots=True)
class UniverseOverlapPlan(OverlapPlan):
    """The parameters of an `OverlapSketch` of a declared universe.

    Args:
        universe: number of possible users.
        cells: number of cells; one for each user, or fewer for a sample.
        request: epsilon and what it covers.
        split: how epsilon is spent.
        covers: what epsilon covers.
        share: of users who come back, for the predicted error.
    """

    universe: int
    cells: int
    request: Request
    split: Split
    covers: Covers
    share: float

    limits = 0.5, 0.25
    measure = "the universe"

    @property
    def largest(self) -> float:
        """All users of the universe."""
        return float(self.universe)

    @property
    def layout(self) -> CellLayout:
        """One cell for each user, or for each user of a sample."""
        return CellLayout(self.cells, universe=self.universe)

    def model(self, epoch: int) -> UserModel:  # noqa: ARG002
        """Return the estimate model of the number of published ones."""
        return UserModel(self.universe, self.cells, *self.published)

    def reach(self, confidence: float, truth: float | None) -> float:  # noqa: ARG002
        """Return the bound on an answer's error at this probability, in standard deviations."""
        return noise_quantile(confidence, 0.0)

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return the synthetic population of an answer: as many users, in state 1."""
        return answer, 1


@dataclass(frozen=True, slots=True)
class OverlapReading(CountReading):
    """The reading of a published table, whose answer is its number of users.

    Args:
        plan: of the statistic.
        epoch: the number of announced intrusions so far.
    """

    plan: OverlapPlan

    @property
    def size(self) -> int:
        """The number of bytes of the table."""
        return self.plan.table.nbytes

    def sums(self, cells: PublishedBits, table: Table) -> NDArray[Any]:  # noqa: ARG002
        """Return a copy of the table, uint8[bytes]: all of it is published."""
        return table.copy()

    def counts(self, published: Table) -> NDArray[np.int64]:
        """Return the number of ones in each level of a published table, uint8[bytes]."""
        table = np.asarray(published, np.uint8)
        return self.plan.table.group_sums(table, self.plan.groups, self.epoch)


@functools.lru_cache(maxsize=256)
def plan_hashed(
    expected: tuple[int, int], memory: int, covers: Covers, share: float, request: Request
) -> HashedOverlapPlan:
    """Plan an `OverlapSketch` of hashed bits within `memory` bytes of table."""
    low, high = expected
    most = 8 * memory
    if low == high:
        most = min(most, CELLS_PER_USER * high)
    return _designs(expected, covers, share, request).best(most)


@functools.lru_cache(maxsize=8)
def _designs(
    expected: tuple[int, int], covers: Covers, share: float, request: Request
) -> Designs[HashedOverlapPlan]:
    """The designs for any memory."""
    split = _split(covers, request)

    def made(levels: int, cells: Sequence[int]) -> list[HashedOverlapPlan]:
        return [
            HashedOverlapPlan(expected, levels, each, request, split, covers, share)
            for each in cells
        ]

    return Designs(made, expected)


@functools.lru_cache(maxsize=256)
def plan_universe(
    universe: int,
    cells: int | None,
    memory: int | None,
    covers: Covers,
    share: float,
    request: Request,
) -> UniverseOverlapPlan:
    """Plan an `OverlapSketch` of a universe; a cell for each user as far as memory reaches."""
    check_cells(universe, cells)
    within = MOST_CELLS if memory is None else 8 * memory
    found = cells or min(universe, within)
    split = _split(covers, request)
    return UniverseOverlapPlan(universe, found, request, split, covers, share)


def _split(covers: Covers, request: Request) -> Split:
    """Return how epsilon is spent: a published bit has no noise of its own beside its law."""
    law = publication_law(request.epsilon, covers, request.releases)
    contrast = float(law.published_present - law.published_absent)
    if not contrast:
        raise no_signal(request)
    return Split(budget_of(law, request.epsilon, request.releases), contrast, 0.0)


def _points(deviation: float) -> str:
    """Return the half width of a 95 % interval in percentage points, 100 at most."""
    return f"{min(100 * _NORMAL * deviation, 100.0):.2g}"
