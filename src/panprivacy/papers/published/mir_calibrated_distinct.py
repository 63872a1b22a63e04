"""The number of users in a nonzero state, from one counter a user with calibrated noise.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3.1, "A general noise-calibrating technique for sketches".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.papers.published.mir_columns import MOST_UNIVERSE
from panprivacy.papers.published.mir_lattice import MOST_POINTS, Floats
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.cases import RELEASE, Short, Trial, Walk
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.cells.law import Law
from panprivacy.tables.cells.modular import BlockCells
from panprivacy.tables.decoders.intervals import EstimateModel, confidence_interval
from panprivacy.tables.planning.request import Request, Split, budgets, no_signal, noise_variance


@dataclass(frozen=True, slots=True)
class NonzeroModel(EstimateModel):
    """The distribution of the noisy number of nonzero counters.

    Args:
        cells: number of counters, a user each.
        absent: the probability that a counter of state 0 is not 0.
        present: the probability that a counter of any other state is not 0.
        noise_variance: variance of the output noise on the number of nonzero counters.
    """

    cells: int
    absent: float
    present: float
    noise_variance: float

    def estimate(self, sums: ArrayLike) -> float:
        """Return the unbiased estimate, cut to 0 .. cells."""
        return min(max(self.unbiased(sums), 0.0), float(self.cells))

    def unbiased(self, ones: ArrayLike) -> float:
        """Return the estimate before it is cut."""
        return (float(np.sum(ones)) - self.cells * self.absent) / (self.present - self.absent)

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the standard deviation of counters and output noise."""
        there = np.asarray(truth, float)
        counters = there * self.present * (1 - self.present)
        counters = counters + (self.cells - there) * self.absent * (1 - self.absent)
        return np.sqrt(counters + self.noise_variance) / (self.present - self.absent)

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that output noise causes."""
        counted = float(self.deviation(truth)) * (self.present - self.absent)
        return self.noise_variance / counted**2

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return a confidence interval within 0 .. cells, widened by half a count for rounding."""
        limit = float(self.cells)
        slack = 0.5 / (self.present - self.absent)
        return confidence_interval(
            self, estimate, confidence, limit=limit, beyond=limit, slack=slack
        )


@dataclass(frozen=True, slots=True)
class CalibratedDistinctPlan(CountPlan):
    """The parameters of a `CalibratedDistinctCount`.

    Args:
        universe: number of users, a counter each.
        modulus: M.
        request: epsilon and what it covers.
        split: the split of epsilon.
    """

    universe: int
    modulus: int
    request: Request
    split: Split

    proofs = ("modular", "releases", "published")
    checks = ("exact/test_calibration", "statistical/test_calibration")
    question = "how many users are in a state other than 0?"
    unit = "users"
    measure = "the universe"
    name = Name("", "distinct_count")

    @property
    def cells(self) -> int:
        """Number of counters."""
        return self.universe

    @property
    def law(self) -> Law:
        """The noise of a counter: the least vector that leads to a point is the point itself."""
        return Law.spike(self.modulus, self.split.budget.state)

    @property
    def table(self) -> BlockCells:
        """The table's cells."""
        return BlockCells(self.universe, self.law)

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The states that are not 0 modulo M."""
        return 1 - self.modulus, self.modulus - 1

    @property
    def largest(self) -> float:
        """The largest answer: all users."""
        return float(self.universe)

    def model(self, epoch: int) -> NonzeroModel:
        """Return the model of a noisy count; each redraw of the noise shrinks the signal."""
        (hit, _), others = self.law.hit_and_miss(), self.modulus - 1
        stays = 1 / self.modulus + (1 - 1 / self.modulus) * (hit - (1 - hit) / others) ** (
            epoch + 1
        )
        variance = self.split.noise_variance
        return NonzeroModel(self.universe, 1 - stays, 1 - (1 - stays) / others, variance)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Return the number of states that are not 0."""
        return float((states != 0).sum())


class CalibratedDistinctSizes(Sizes, frozen=True, tag="calibrated-distinct-count"):
    """The number of users in a state other than 0, from a counter for each."""

    universe: Annotated[int, integer("how many users there could be: ids 0 to N-1", MOST_UNIVERSE)]
    modulus: Annotated[int, integer("more than any state is away from 0", MOST_POINTS, 2)]

    def plan(self, request: Request) -> CalibratedDistinctPlan:
        """Return the map that leaves all states unchanged."""

        def planned(budget: Budget) -> CalibratedDistinctPlan:
            split = Split(budget, 1.0, noise_variance(1, budget))
            return CalibratedDistinctPlan(self.universe, self.modulus, request, split)

        plans = [plan for plan in map(planned, budgets(request)) if plan.law.ratio > 1]
        best = min(plans, key=lambda plan: plan.absolute_error(), default=None)
        if best is None or best.model(request.intrusions).present == best.model(0).absent:
            raise no_signal(request)
        return best


DISTINCT_TRIALS = (
    Trial(
        "calibrated distinct count",
        {"universe": 50_021, "modulus": 5},
        {"universe": 3, "modulus": 3},
        deltas=(1, 2, -1, 3),
    ),
)

DISTINCT_WALKS = (
    Walk(
        "calibrated-distinct",
        "two users, each with a counter modulo 3",
        {"universe": 2, "modulus": 3},
        [Short([[(0, 1)], [(0, 2)], [(1, 1)]], 1), [[(0, 1)], RELEASE]],
        evenly=True,
    ),
)


class CalibratedDistinctCount(Statistic[CalibratedDistinctPlan, Release]):
    """The number of users in a nonzero state, estimated with the identity map.

    >>> import numpy as np
    >>> from panprivacy.papers.published import CalibratedDistinctCount
    >>> users = CalibratedDistinctCount(universe=20_000, modulus=7, epsilon=2)
    >>> users.update(np.arange(10_000), np.full(10_000, -3))
    >>> answer = users.release(confidence=1 - 1e-9)
    >>> answer.low < 10_000 < answer.high
    True

    The length of a sketch is how many of its numbers are not 0. So the exponential mechanism draws
    each of them apart, 0 with `e**epsilon` times the weight of any other: it need not be
    enumerated, and universes may be large.

    Guarantee: as for `CalibratedNorm`. [tests/exact/test_calibration.py]

    Accuracy: unbiased for users whose state is no multiple of M, but for what is cut off. With m
    users the deviation is about `sqrt((M-1) m e**epsilon)/(e**epsilon - 1)` where few came: that of
    randomised response at M = 2, and with the root of M it grows.
    [tests/statistical/test_calibration.py]

    Reference: section 3.1 with the sketch that is the states themselves.
    """

    __slots__ = ()

    entry = CatalogueEntry(CalibratedDistinctSizes, trials=DISTINCT_TRIALS, walks=DISTINCT_WALKS)
