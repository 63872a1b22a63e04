"""What a `FrequencyMoment` is told."""

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
from panprivacy.statistics.moment.plan import MomentPlan
from panprivacy.statistics.records import Sizes, flag, integer
from panprivacy.tables.planning.additive import Design, Reach, best_design, check_clip, designs
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.planning.universe import check_memory

_LEAST, _MOST = 10_000, 1_000_000_000
"""Times the bound, or its square: the answers that are planned for where nobody says."""


class MomentSizes(Sizes, frozen=True, tag="moment"):
    """The sum of all users' states, or of their squares, which tells how uneven they are."""

    order: Annotated[
        int, integer("1 for the sum of states, 2 for that of their squares", 2, example=2)
    ]
    bound: Bound
    signed: Annotated[bool, flag("states may be below 0, down to minus the bound")] = False
    expected: Annotated[
        tuple[int, int] | None,
        answers("the answer, or its range; 10,000 to 1e9 times the bound**order unless told"),
    ] = None
    cells: Annotated[int | None, cells_of("how many sums are kept; for order 1 it is one")] = None
    memory: SumMemory = None
    clip: Clip = None

    def plan(self, request: Request) -> MomentPlan:
        """Return the plan whose cells and form of release have minimax regret over the range."""
        self._check()
        unit = self.bound**self.order
        expected = self.expected or (_LEAST * unit, _MOST * unit)

        def make(design: Design) -> MomentPlan:
            cells, budget, clip = design
            own = Split(budget, 1.0, 0.0)
            return MomentPlan(
                self.order, self.bound, self.signed, expected, cells, clip, request, own
            )

        linear = self.order == 1
        chosen = designs(
            Reach(self.bound, self.signed, 1),
            request,
            most_cells(self.memory, 1),
            expected[1],
            cells=1 if linear else self.cells,
            clip=0 if linear else self.clip,
        )
        return best_design(make, chosen, expected)

    def _check(self) -> None:
        """Refuse what does not go together."""
        check_memory(self.cells, self.memory)
        check_clip(self.clip, self.cells)
        if self.order == 2:
            return
        if self.signed:
            message = "order 1 has no signed=: states below 0 would take away from those above; "
            message += "ask for order 2"
            raise PlanError(message)
        if (self.cells or 1) > 1 or self.clip:
            message = "order 1 keeps one sum, and cuts nothing: leave out cells= and clip="
            raise PlanError(message)
