"""What a `Density` is told."""

from __future__ import annotations

from typing import Annotated, ClassVar

from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.common_sizes import Universe
from panprivacy.statistics.density.plan import MAX_DIRECT_CELLS, DensityPlan, plan_density
from panprivacy.statistics.records import Sizes, integer
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import check_memory


class DensitySizes(Sizes, frozen=True, tag="density"):
    """The share of a known universe of users that appeared, or is present."""

    most_memory: ClassVar[int] = MAX_DIRECT_CELLS // 8

    universe: Universe
    cells: Annotated[
        int | None,
        integer("bits: one for each user, fewer for a sample", 8 * MOST_BYTES, example=500_000),
    ] = None
    memory: Annotated[
        int | None,
        integer(
            "most bytes of bits, in place of cells; 16 MiB unless told",
            MOST_BYTES,
            example=16_777_216,
        ),
    ] = None

    def plan(self, request: Request) -> DensityPlan:
        """One bit for each user, as far as the memory reaches, and a sample beyond that."""
        check_memory(self.cells, self.memory)
        fitting = None if self.memory is None else min(self.universe, 8 * self.memory)
        return plan_density(self.universe, self.cells or fitting, request)
