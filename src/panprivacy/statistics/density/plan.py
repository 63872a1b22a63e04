"""The plan of a `Density`."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import ClassVar

from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.deltas import refuse_moves
from panprivacy.statistics.density.decoder import DensityModel
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.release import Name
from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.planning.bits import best_split
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.planning.universe import check_cells

MAX_DIRECT_CELLS = 1 << 27
"""A universe of up to so many users gets one cell each (16 MiB of bits); larger ones a sample."""


@dataclass(frozen=True, slots=True)
class DensityPlan(CountPlan):
    """The parameters of a `Density`.

    Args:
        universe: number of possible users.
        cells: number of cells; one for each user, or fewer for a sample.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    universe: int
    cells: int
    request: Request
    split: Split

    proofs: ClassVar[tuple[str, ...]] = ("bits", "releases")
    checks: ClassVar[tuple[str, ...]] = (
        "exact/test_exact",
        "statistical/test_bits",
        "statistical/test_density",
    )
    limits = 0.5, 0.25
    question = "what share of a known universe of users appeared, or is present?"
    unit = "share of the universe"
    measure = "the universe"
    name = Name("", "density")
    largest = 1.0

    @property
    def table(self) -> BitCells:
        """The table's cells."""
        budget, intrusions = self.split.budget, self.request.intrusions
        return BitCells(self.cells, budget.state, intrusions)

    def check_deltas(self, deltas: Deltas) -> None:
        """Users come and go, one at a time."""
        refuse_moves(deltas)

    def model(self, epoch: int) -> DensityModel:
        """Return the estimate model of counts released after `epoch` announced intrusions."""
        contrast = float(self.table.contrast(epoch))
        return DensityModel(self.universe, self.cells, contrast, self.split.noise_variance)

    def joint_model(self, epoch: int, tables: int) -> DensityModel:
        """Return the estimate model of added counts of several tables of disjoint users."""
        return replace(self.model(epoch), tables=tables)

    def reach(self, confidence: float, truth: float | None) -> float:
        """Return the bound on an answer's error at this probability, in standard deviations."""
        model = self.model(self.request.intrusions)
        return noise_quantile(confidence, model.output_share(0.5 if truth is None else truth))

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Return the true answer; a user who enters twice and leaves once has left."""
        return float((last > 0).sum()) / self.universe

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return the synthetic population of an answer: as many users as its share, in state 1."""
        return answer * self.universe, 1


@functools.lru_cache(maxsize=256)
def plan_density(universe: int, cells: int | None, request: Request) -> DensityPlan:
    """Plan a `Density`; without `cells`, one for each user as far as 16 MiB reach."""
    if cells is None:
        cells = min(universe, MAX_DIRECT_CELLS)
    check_cells(universe, cells)
    return DensityPlan(universe, cells, request, best_split(request, cells))
