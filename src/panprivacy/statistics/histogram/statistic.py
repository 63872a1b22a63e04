"""How many events have a value in each bin, and which percentiles follow?

A running count for each bin: an event is in one of them, so each has the whole of epsilon.

Reference: C. Dwork, M. Naor, T. Pitassi, G. Rothblum, "Differential privacy under continual
observation", for a counter; a histogram as in C. Dwork, A. Roth, "The algorithmic foundations of
differential privacy", section 3.3. Where we differ: bins keep noise from the start, so that the
state may be seen as well, and all intervals of a release hold together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from panprivacy.ground.validation import proportion
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.histogram.cases import TRIALS, WALKS
from panprivacy.statistics.histogram.decoder import BinsModel
from panprivacy.statistics.histogram.nodes import RunningBins
from panprivacy.statistics.histogram.plan import HistogramPlan
from panprivacy.statistics.histogram.questions import HistogramQuery
from panprivacy.statistics.histogram.release import HistogramRelease, counts_of
from panprivacy.statistics.histogram.sizes import HistogramSizes
from panprivacy.statistics.records import Whole
from panprivacy.statistics.running.stepwise.statistic import (
    Stepwise,
    StepwiseMemory,
    StepwiseReleasing,
)
from panprivacy.tables.ids import Labels, SharedColumn, WholeNumbers, read_deltas
from panprivacy.tables.numeric import read_values


class CheckedValues(NamedTuple):
    """Values that were checked, as the number of each bin.

    Args:
        plan: of the statistic that has checked them.
        counts: int64[bins], what they add to each bin.
    """

    plan: HistogramPlan
    counts: NDArray[np.int64]


class BinsMemory(StepwiseMemory[HistogramPlan]):
    """The memory of a histogram: noisy sums of the events of each bin."""

    __slots__ = ()

    def prepare(  # type: ignore[override]
        self,
        users: Labels | SharedColumn,
        deltas: WholeNumbers | SharedColumn | None = None,
        sides: Labels | SharedColumn | str | None = None,  # noqa: ARG002 - both streams count
    ) -> CheckedValues:
        """Check one batch of values without counting it.

        Args:
            users: the value of each event.
            deltas: 1 for each event, or -1 to take one back if signed; None for 1 each.
            sides: not used.

        Raises:
            InputError: a null, NaN, a value outside of closed edges, or a delta that is not one
                event. The message names the row, never the value.
            BudgetError: all steps have ended.
        """
        self.check_steps()
        values = read_values(users)
        read = None if deltas is None else read_deltas(deltas, len(values))
        if read is not None:
            self.plan.check_deltas(read)
        return CheckedValues(self.plan, self.plan.edges.count(values, read))

    def apply(self, *batches: CheckedValues) -> None:  # type: ignore[override]
        """Count what this statistic has checked, or one of the same plan, in the open step."""
        self.check_plans(one.plan for one in batches)
        self.check_steps()
        (bins,) = cast("Sequence[RunningBins]", self.sums)
        for one in batches:
            bins.add(one.counts)


class HistogramReleasing(StepwiseReleasing[HistogramPlan]):
    """The releases of a histogram, of which each ends a step."""

    __slots__ = ()

    def release(self, *, confidence: float = 0.95, **asked: Any) -> HistogramRelease:
        """End the step, and publish the counts of all bins.

        Args:
            confidence: probability, 0 to 1, that all intervals hold together.
            asked: what a release may be asked.

        Raises:
            PlanError: something cannot be asked. Nothing was changed.
            BudgetError: all steps have ended. Nothing was changed.
        """
        self.check_release(confidence=confidence, **asked)
        query = cast("HistogramQuery", self.query(asked))
        level, plan = proportion(confidence=confidence), self.memory.plan

        def read(sums: Iterable[RunningBins]) -> HistogramRelease:
            (bins,) = sums
            released = bins.end_step().released
            model = BinsModel(plan.edges, bins.values, bins.variance, bins.fourth, plan.signed)
            return HistogramRelease(model, query, counts_of(released), level)

        return self._end_step(read).under(self.memory.name)


class Histogram(Stepwise[HistogramPlan, HistogramRelease]):
    """How many events have a value in each bin, with percentiles, a mean and a cumulative curve.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> times = pp.Histogram(low=1, high=100_000, resolution=0.02, epsilon=1)
    >>> times.update(np.random.default_rng(1).lognormal(5, 1, 1_000_000))
    >>> median, slow = times.release(quantile=(0.5, 0.95)).values()
    >>> 145 < median.low < median.high < 151.5  # e**5 is 148.4
    True
    >>> 755 < slow.value < 785  # 769
    True

    What is hidden is one event, not one user. A row is the value of an event, and whose it is
    nobody asks. With `per_user=n` the guarantee says what a user of n events loses. A step is the
    time between two releases; there are `horizon` of them, one unless told.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when one event is added or removed, whatever the number of bins. Each
    intrusion that is announced is covered as well, for nothing.
    [tests/contract, docs/guarantees/histogram.md]

    Accuracy: the count of a bin is unbiased; its standard deviation is `2/epsilon` for one step,
    and that of a `RunningCount` for more. All intervals of a release hold together with the
    probability `confidence`. A percentile is known to the bin, once its rank is: with B bins the
    rank of a median is off by about `sqrt(B)/epsilon` events.
    [tests/unit/test_histogram.py, tests/statistical/test_histogram.py]

    All of epsilon is spent at birth, and releases cost nothing. A step whose release has left is
    never made again after a crash, as for a `RunningCount`.
    """

    __slots__ = ()

    entry = CatalogueEntry(HistogramSizes, HistogramQuery, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            low: float | None = None,
            high: float | None = None,
            bins: Whole | None = None,
            scale: str = "linear",
            resolution: float | None = None,
            edges: Sequence[float] | None = None,
            outside: str = "open",
            horizon: Whole = 1,
            signed: bool = False,
            per_user: Whole | None = None,
            expected: Whole = 1_000_000,
            **arguments: Unpack[Arguments],
        ) -> None: ...

    _memory = BinsMemory
    _releasing = HistogramReleasing
