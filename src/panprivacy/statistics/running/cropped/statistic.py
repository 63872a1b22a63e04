"""How much have all users done so far, if nobody counts for more than tau, at every step?

A cell for each user, born with noise of the size of one event; and a running count of what all
cells add up to, none of them beyond tau, which is told by how much that changes.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 5. Where we differ: they keep the noise of a sketch that hides a user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Whole
from panprivacy.statistics.running.cropped.cases import TRIALS, WALKS
from panprivacy.statistics.running.cropped.plan import RunningCroppedPlan
from panprivacy.statistics.running.cropped.sizes import RunningCroppedSizes
from panprivacy.statistics.running.stepwise import StepwiseTable


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

    entry = CatalogueEntry(RunningCroppedSizes, trials=TRIALS, walks=WALKS)

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
