"""How many users hold at least 1/k of a public total by now, told at the end of every step?

Several times k cells, each born with noise of the size of one event; and a running count of how
far they are on the way from `total/2k` to `total/k`, which is told by how much that changes.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 3 and section 5. Where we differ: they keep the noise of a sketch that hides
a user, and subtract two estimates of cropped sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.common_sizes import CounterMemory
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.heavy.decoder import CellsModel, HeavyModel
from panprivacy.statistics.heavy.plan import Heavy
from panprivacy.statistics.heavy.sizes import (
    CELLS_OF_A_USER,
    LEAST_INDEPENDENCE,
    MOST_K,
    MOST_TOTAL,
    Independence,
    check_heavy,
)
from panprivacy.statistics.records import Sizes, Whole, integer
from panprivacy.statistics.release import Name
from panprivacy.statistics.running.cases import HEAVY_TRIALS, SKETCH_WALKS
from panprivacy.statistics.running.stepwise.event_plan import EventBound, Horizon, at_birth
from panprivacy.statistics.running.stepwise.sketch import (
    EpsilonSplit,
    SketchPlan,
    best_sketch,
    cells_of,
    ways_to_spend,
)
from panprivacy.statistics.running.stepwise.statistic import StepwiseTable
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import check_memory

_NEAR = np.linspace(-12, 12, 97)
"""Places around a corner where the noise of a cell is looked at, in scales of it."""


@dataclass(frozen=True, slots=True)
class RunningHeavyPlan(Heavy, SketchPlan):
    """The parameters of a `RunningHeavyHitters`.

    All of epsilon is the state's; the noise of the split is that of the worst step.

    Args:
        horizon: how many steps there are at most, each with an answer; the releases of the request.
        bound: the most that one event adds.
        spent: how cells and sums share epsilon.
    """

    horizon: int
    bound: int
    spent: EpsilonSplit

    proofs = ("running-cropped", "heavy", "running")
    checks = ("exact/test_running_sketches", "statistical/test_running_sketches")

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return (
            f"how many users hold at least 1/{self.k:,} of a public total of {self.total:,} by "
            f"now, at the end of each of up to {self.horizon:,} steps?"
        )

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "running_heavy_hitters", (("k", self.k),))

    @property
    def low(self) -> int:
        """A user counts from this state on; `total / 2k`, rounded down."""
        return self.total // (2 * self.k)

    @property
    def corners(self) -> tuple[int, ...]:
        """A cell counts from the second one to the first."""
        return self.high, self.low

    def model_of(self, noise_variance: float) -> HeavyModel:
        """Return the model of the sum, for this noise variance beside that of the cells.

        Cells add up to the total at most. So what their variance is above that of empty ones is
        at most what it is of the state that costs least for it.
        """
        scale = float(self.inner.scale)
        near = [corner + scale * _NEAR for corner in self.corners]
        states = np.unique(np.round(np.concatenate([*near, [self.low * 1.5]])))
        states = np.append(0.0, states[states >= 1])
        empty, *others = self.inner.variance(states)
        above = float(np.max((np.array(others) - empty) / states[1:]))
        each = (float(empty) + self.total * max(above, 0.0) / self.cells) / self.full**2
        return HeavyModel(CellsModel(self.cells, self.limit, 0.0, 1.0, each, noise_variance), 0.0)


class RunningHeavySizes(Sizes, frozen=True, tag="running-heavy-hitters"):
    """The number of users with at least 1/k of a public total by now, at every step.

    Hides one event.
    """

    k: Annotated[int, integer("who holds at least 1/k of the total counts", MOST_K, example=1_000)]
    total: Annotated[
        int,
        integer("what all deltas will add up to, which is public", MOST_TOTAL, example=10_000_000),
    ]
    horizon: Horizon
    bound: EventBound = 1
    cells: Annotated[
        int | None,
        integer(
            "cells, at least 2k; unless told, as many as make the largest error smallest",
            MOST_BYTES,
            example=32_000,
        ),
    ] = None
    memory: CounterMemory = None
    independence: Independence = LEAST_INDEPENDENCE

    def plan(self, request: Request) -> RunningHeavyPlan:
        """Several times k cells, whatever the number of users; and a tree of steps."""
        check_heavy(self.k, self.total, self.cells)
        check_memory(self.cells, self.memory)
        split, ways = at_birth(request), ways_to_spend(request, "a running count of heavy hitters")
        fitting, fewest = cells_of(self.memory), 2 * self.k
        if fitting < fewest:
            message = f"memory must be larger: {fewest:,} cells of 8 bytes are needed at least"
            raise PlanError(message)
        wanted = sorted({min(times * self.k, fitting) for times in CELLS_OF_A_USER})
        k, total, independence = self.k, self.total, self.independence
        steps = self.horizon, self.bound
        return best_sketch(
            RunningHeavyPlan(k, total, cells, independence, request, split, *steps, spent)
            for cells in ([self.cells] if self.cells else wanted)
            for spent in ways
        )


class RunningHeavyHitters(StepwiseTable[RunningHeavyPlan]):
    """The number of users with at least `total / k` so far, released at the end of every step.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> heavy = pp.RunningHeavyHitters(k=100, total=100_000, horizon=24, epsilon=2)
    >>> for hour in range(24):
    ...     heavy.update(np.repeat(np.arange(60), 50))
    ...     answer = heavy.release(confidence=1 - 1e-9)
    >>> answer.low < 60 < answer.high
    True

    A user of `total/k` or more counts as 1, one of `total/2k` or less as 0, and one between as
    the share of the way: see `HeavyHitterCount`. The answer is that of cells, which users who share
    one can raise: in the worst stream by `2 k**2 / cells`.

    What is hidden is one event, not one user: who comes every day is in many events. A step is the
    time between two releases; there are `horizon` of them, whatever `releases` says.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when one event is added or removed, or has another delta of 0 .. bound,
    whatever users do; `total` is public. No intrusion can be announced.
    [tests/contract, tests/exact/test_running_sketches.py, docs/guarantees/running-cropped.md]

    Accuracy: `plan.absolute_error()` predicts the root-mean-square error in the worst stream. It is
    small where `total/k` is some hundreds of the bound.
    [tests/statistical/test_running_sketches.py]

    All of epsilon is spent at birth, and releases cost nothing. A step whose release has left is
    never made again by whoever resumes: what was counted since the state was taken is lost. If it
    had been seen, its events lose up to `plan.spent.sums` more each time that a state from before
    them is resumed, or twice that where the open step goes on.
    """

    __slots__ = ()

    entry = CatalogueEntry(RunningHeavySizes, trials=HEAVY_TRIALS, walks=SKETCH_WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            k: Whole,
            total: Whole,
            horizon: Whole,
            bound: Whole = 1,
            cells: Whole | None = None,
            memory: Whole | None = None,
            independence: Whole = 4,
            **arguments: Unpack[Arguments],
        ) -> None: ...
