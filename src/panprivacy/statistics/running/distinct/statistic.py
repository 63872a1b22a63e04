"""How many different users so far, at the end of every step?

Noisy bits of hashed users, as a `DistinctCount` has them; and for each level of them a running
count of its ones, which is told by how much their number changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Whole
from panprivacy.statistics.running.distinct.cases import TRIALS, WALKS
from panprivacy.statistics.running.distinct.plan import RunningDistinctPlan
from panprivacy.statistics.running.distinct.sizes import RunningDistinctSizes
from panprivacy.statistics.running.stepwise import StepwiseTable


class RunningDistinct(StepwiseTable[RunningDistinctPlan]):
    """The number of different users so far, released at the end of every step.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> visitors = pp.RunningDistinct(horizon=24, expected=20_000, epsilon=2)
    >>> for hour in range(3):
    ...     visitors.update(np.arange(5_000) + 4_000 * hour)
    ...     answer = visitors.release()
    >>> 10_000 < answer.value < 16_000  # 13,000
    True

    What is hidden is one event, not one user: who comes every day is in many events. A step is the
    time between two releases; there are `horizon` of them, whatever `releases` says.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when one event is added or removed. Each intrusion that is announced is
    covered as well, for nothing but accuracy: it flips many bits.
    [tests/contract, tests/exact/test_running_distinct.py, docs/guarantees/running-distinct.md]

    Accuracy: as a `DistinctCount` with the part of epsilon that its bits have, and a running count
    of ones; `error()` is for the worst step. [tests/statistical/test_running_distinct.py]

    All of epsilon is spent at birth, and releases cost nothing. A step whose release has left is
    never made again after a crash: what was counted since the state was taken is lost. Each crash
    after which an earlier state goes on adds up to `guarantee.crash`.
    """

    __slots__ = ()

    entry = CatalogueEntry(RunningDistinctSizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            horizon: Whole,
            expected: tuple[Whole, Whole] | Whole | str = (1_000, 1_000_000_000),
            memory: Whole = 65_536,
            **arguments: Unpack[Arguments],
        ) -> None: ...
