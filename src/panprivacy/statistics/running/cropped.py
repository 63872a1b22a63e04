"""How much have all users done so far, if nobody counts for more than tau, at every step?

A cell for each user, born with noise of the size of one event; and a running count of what all
cells add up to, none of them beyond tau, which is told by how much that changes.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 5. Where we differ: they keep the noise of a sketch that hides a user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.errors import PlanError
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.common_sizes import CounterCells, CounterMemory, PerhapsUniverse
from panprivacy.statistics.cropped.decoder import HashedCroppedModel
from panprivacy.statistics.cropped.plan import Cropped
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Sizes, Whole, integer
from panprivacy.statistics.release import Name
from panprivacy.statistics.running.cases import CROPPED_TRIALS, SKETCH_WALKS
from panprivacy.statistics.running.stepwise.event_plan import EventBound, Horizon, at_birth
from panprivacy.statistics.running.stepwise.sketch import (
    MOST_CORNER,
    EpsilonSplit,
    SketchPlan,
    best_sketch,
    cells_of,
    ways_to_spend,
)
from panprivacy.statistics.running.stepwise.statistic import StepwiseTable
from panprivacy.tables.decoders.blocks import CroppedModel
from panprivacy.tables.decoders.intervals import Floats, confidence_interval
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import check_cells, check_memory


@dataclass(frozen=True, slots=True)
class RunningCroppedModel(CroppedModel):
    """The sum of `min(state, tau)`, from that over cells, one user a cell.

    Sums are in units of tau. Noise does not depend on states, but for the sample.
    """

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of all noise, and of sampling users of tau or nothing."""
        share = np.asarray(truth, float) / self.limit
        sampled = self.cells * (1 - self._unsampled_share) * share * (1 - share)
        return np.sqrt(sampled + self.noise_variance) * self._unit

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval within 0 .. limit."""
        ends = {"limit": self.limit, "beyond": self.limit}
        return confidence_interval(self, estimate, confidence, **ends)


@dataclass(frozen=True, slots=True)
class RunningCroppedPlan(Cropped, SketchPlan):
    """The parameters of a `RunningCroppedSum`.

    All of epsilon is the state's; the noise of the split is that of the worst step.

    Args:
        horizon: how many steps there are at most, each with an answer; the releases of the request.
        bound: the most that one event adds.
        spent: how cells and sums share epsilon.
    """

    expected: int | None
    horizon: int
    bound: int
    spent: EpsilonSplit

    proofs = ("running-cropped", "running")
    checks = ("exact/test_running_sketches", "statistical/test_running_sketches")

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return (
            f"how much have all users done so far, if nobody counts for more than {self.tau:,}, "
            f"at the end of each of up to {self.horizon:,} steps?"
        )

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "running_cropped_sum", (("tau", self.tau),))

    @property
    def corners(self) -> tuple[int, ...]:
        """Tau."""
        return (self.tau,)

    def model_of(self, noise_variance: float) -> CroppedModel:
        """Return the model of the sum, for this noise variance beside that of the cells."""
        variance = self.inner.variance(np.array([-np.inf, self.tau])).max()
        noise = self.cells * float(variance) / self.tau**2 + noise_variance
        sizes = self.universe or self.cells, self.cells, self.tau
        kind = RunningCroppedModel if self.universe else HashedCroppedModel
        return kind(*sizes, 0.0, 1.0, noise)


_MOST_USERS = 1 << 40
_CELLS_PER_USER = tuple(4 << power for power in range(7))
"""Of hashed cells: with more the noise of empty cells grows, with fewer what collisions hide."""


class RunningCroppedSizes(Sizes, frozen=True, tag="running-cropped-sum"):
    """The sum of what users did so far, of nobody more than tau, at every step; hides one event."""

    tau: Annotated[int, integer("the most that a user counts for", MOST_CORNER, example=10)]
    horizon: Horizon
    bound: EventBound = 1
    universe: PerhapsUniverse = None
    expected: Annotated[
        int | None,
        integer("for open-ended ids, the most users that may come", _MOST_USERS, example=100_000),
    ] = None
    cells: CounterCells = None
    memory: CounterMemory = None

    def plan(self, request: Request) -> RunningCroppedPlan:
        """A cell for each user, or of a sample, or hashed ones; and a tree of steps."""
        split, ways = at_birth(request), ways_to_spend(request, "a running cropped sum")
        tau, universe, expected = self.tau, self.universe, self.expected
        steps = self.horizon, self.bound
        return best_sketch(
            RunningCroppedPlan(tau, universe, cells, expected, request, split, *steps, spent)
            for cells in self._cells()
            for spent in ways
        )

    def _cells(self) -> list[int]:
        """Return the largest number of cells.

        Raises:
            PlanError: sizes do not say how many users there are, or contradict each other.
        """
        universe, expected, cells = self.universe, self.expected, self.cells
        if (universe is None) == (expected is None):
            message = (
                "say either universe= (how many users there could be) or, for open-ended ids, "
                "expected= (the most that may come)"
            )
            raise PlanError(message)
        check_cells(universe, cells)
        check_memory(cells, self.memory)
        fitting = cells_of(self.memory)
        fewest = 1 if universe else 2 * (expected or 1)
        if (cells or fitting) < fewest:
            message = (
                f"{'memory' if cells is None else 'cells'} must be larger: {fewest:,} cells of 8 "
                "bytes are needed at least, because users who share one hide each other"
            )
            raise PlanError(message)
        if cells is not None:
            return [cells]
        wanted = [universe] if universe else [times * (expected or 1) for times in _CELLS_PER_USER]
        return sorted({min(one, fitting) for one in wanted})


class RunningCroppedSum(StepwiseTable[RunningCroppedPlan]):
    """The sum of `min(state, tau)` over all users so far, released at the end of every step.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> visits = pp.RunningCroppedSum(tau=10, horizon=24, universe=50_000, epsilon=2)
    >>> for hour in range(12):
    ...     visits.update(np.arange(20_000))
    ...     answer = visits.release()
    >>> 195_000 < answer.value < 205_000  # 20,000 users of 12 visits, of which 10 count
    True

    What is hidden is one event, not one user: who comes every day is in many events. A step is the
    time between two releases; there are `horizon` of them, whatever `releases` says.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when one event is added or removed, or has another delta of 0 .. bound,
    whatever users do. No intrusion can be announced.
    [tests/contract, tests/exact/test_running_sketches.py, docs/guarantees/running-cropped.md]

    Accuracy: unbiased where each user has a cell; the standard deviation is about
    `plan.absolute_error()` at most. [tests/statistical/test_running_sketches.py]

    All of epsilon is spent at birth, and releases cost nothing. A step whose release has left is
    never made again by whoever resumes: what was counted since the state was taken is lost. If it
    had been seen, its events lose up to `plan.spent.sums` more each time that a state from before
    them is resumed, or twice that where the open step goes on.
    """

    __slots__ = ()

    entry = CatalogueEntry(RunningCroppedSizes, trials=CROPPED_TRIALS, walks=SKETCH_WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tau: Whole,
            horizon: Whole,
            bound: Whole = 1,
            universe: Whole | None = None,
            expected: Whole | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...
