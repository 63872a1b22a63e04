"""What an `InnerProduct` is told."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.statistics.additive_plans import (
    Bound,
    Clip,
    SumMemory,
    answers,
    cells_of,
    most_cells,
)
from panprivacy.statistics.common_sizes import LeftLabel, RightLabel, check_labels
from panprivacy.statistics.inner.plan import InnerPlan
from panprivacy.statistics.records import Sizes, flag
from panprivacy.tables.planning.additive import Design, Reach, best_design, check_clip, designs
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.planning.universe import check_memory

_LEAST, _MOST = 10_000, 1_000_000_000
"""Times the square of the bound: the sums of squares that are planned for where nobody says."""


class InnerSizes(Sizes, frozen=True, tag="inner-product"):
    """The sum over users of the products of their states in two streams: the size of a join."""

    bound: Bound
    left: LeftLabel = "left"
    right: RightLabel = "right"
    signed: Annotated[bool, flag("states may be below 0, down to minus the bound")] = False
    expected: Annotated[
        tuple[int, int] | None,
        answers(
            "the sum of the squares of the states of either stream, or its range; 10,000 to 1e9 "
            "times the bound**2 unless told"
        ),
    ] = None
    cells: Annotated[
        int | None, cells_of("how many sums are kept, an even number: half for each stream")
    ] = None
    memory: SumMemory = None
    clip: Clip = None

    def plan(self, request: Request) -> InnerPlan:
        """Return the plan whose cells and form of release have minimax regret over the range."""
        self._check()
        unit = self.bound**2
        expected = self.expected or (_LEAST * unit, _MOST * unit)

        def make(design: Design) -> InnerPlan:
            cells, budget, clip = design
            sizes = self.bound, self.left, self.right, self.signed, expected, 2 * cells, clip
            return InnerPlan(*sizes, request, Split(budget, 1.0, 0.0))

        chosen = designs(
            Reach(self.bound, self.signed, 2),
            request,
            most_cells(self.memory, 2),
            expected[1],
            cells=None if self.cells is None else self.cells // 2,
            clip=self.clip,
        )
        return best_design(make, chosen, expected)

    def _check(self) -> None:
        """Refuse what does not go together."""
        check_memory(self.cells, self.memory)
        check_clip(self.clip, self.cells)
        if self.cells is not None and self.cells % 2:
            message = f"cells ({self.cells:,}) must be even: half of them are for each stream"
            raise PlanError(message)
        check_labels(self.left, self.right)
