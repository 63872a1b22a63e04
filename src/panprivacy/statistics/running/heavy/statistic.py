"""How many users hold at least 1/k of a public total by now, told at the end of every step?

Several times k cells, each born with noise of the size of one event; and a running count of how
far they are on the way from `total/2k` to `total/k`, which is told by how much that changes.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 3 and section 5. Where we differ: they keep the noise of a sketch that hides
a user, and subtract two estimates of cropped sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Whole
from panprivacy.statistics.running.heavy.cases import TRIALS, WALKS
from panprivacy.statistics.running.heavy.plan import RunningHeavyPlan
from panprivacy.statistics.running.heavy.sizes import RunningHeavySizes
from panprivacy.statistics.running.stepwise import StepwiseTable


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

    entry = CatalogueEntry(RunningHeavySizes, trials=TRIALS, walks=WALKS)

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
