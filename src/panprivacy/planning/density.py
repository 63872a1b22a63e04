"""The sizes of a `Density`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from panprivacy.addressing import Addressing
from panprivacy.cells import BitCells
from panprivacy.decoders import DensityModel, noise_quantile
from panprivacy.planning.request import Request, Split, best_split
from panprivacy.planning.universe import address_in, check_cells, key_bytes_in

MAX_DIRECT_CELLS = 1 << 27
"""A universe of up to so many users gets one cell each (16 MiB of bits); larger ones a sample."""


@dataclass(frozen=True, slots=True)
class DensityPlan:
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

    @property
    def table(self) -> BitCells:
        """The table's cells."""
        budget, intrusions = self.split.budget, self.request.intrusions
        return BitCells(self.cells, budget.state, intrusions, deletions=True)

    @property
    def groups(self) -> int:
        """A release publishes one count."""
        return 1

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key; a full table needs none."""
        return key_bytes_in(self.universe, self.cells)

    def address(self, key: bytes) -> Addressing:
        """Which cell a user maps to."""
        return address_in(self.universe, self.cells, key)

    def model(self, epoch: int) -> DensityModel:
        """What counts that are released after `epoch` announced intrusions say."""
        contrast = float(self.table.contrast(epoch))
        return DensityModel(self.universe, self.cells, contrast, self.split.noise_variance)

    def error(self, share: float) -> float:
        """The predicted standard deviation of the answer, as a share of the universe."""
        return float(self.model(self.request.intrusions).deviation(share))

    def margin(self, confidence: float) -> float:
        """How far from the truth an answer strays at most with this probability, at any share."""
        model = self.model(self.request.intrusions)
        return noise_quantile(confidence, model.output_share(0.5)) * self.error(0.5)


@functools.lru_cache(maxsize=256)
def plan_density(universe: int, cells: int | None, request: Request) -> DensityPlan:
    """Plan a `Density`; without `cells`, one for each user as far as 16 MiB reach."""
    if cells is None:
        cells = min(universe, MAX_DIRECT_CELLS)
    check_cells(universe, cells)
    return DensityPlan(universe, cells, request, best_split(request, cells, deletions=True))
