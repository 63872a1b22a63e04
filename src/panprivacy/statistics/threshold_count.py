"""How many users are in a state of about `least` or more?

A counter for each user of a universe or of a sample of it, with noise on blocks of `least/2`
values. What leaves is one noised count, which is affine in a threshold that rises from `least/2`
to `least`.
"""

from __future__ import annotations

from panprivacy._validate import MOST_BYTES, positive_integer
from panprivacy.addressing import MAX_UNIVERSE
from panprivacy.cells.protocol import Deltas
from panprivacy.coins import Coins
from panprivacy.guarantee import Budget, Ledger
from panprivacy.planning import ThresholdPlan, plan_threshold
from panprivacy.planning.cropped import MOST_BOUND
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.plans import request
from panprivacy.statistics.table import CountStatistic


class ThresholdCount(CountStatistic[ThresholdPlan]):
    """The number of users whose deltas add up to about `least` or more: a soft threshold.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> busy = pp.ThresholdCount(least=100, bound=5_000, universe=100_000, epsilon=1.0)
    >>> busy.update(np.arange(20_000), np.full(20_000, 700))
    >>> busy.update(np.arange(20_000, 90_000), np.full(70_000, 30))
    >>> answer = busy.release()
    >>> 15_000 < answer.low < 20_000 < answer.high < 25_000
    True

    A user of `least` or more counts as 1, one of `least/2` or less as 0, and one between as the
    share of the way. So the answer lies between the number of users with at least `least` and that
    with more than `least/2`. A threshold that cuts hard, `Incidence.release(at_least=...)`, costs
    about `sqrt(least)` times a fixed error; this one costs the same for every `least`.
    [docs/decoding.md]

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. With `intrusions=1` that includes the state at an announced intrusion before that
    time. [tests/contract, tests/exact/test_threshold.py, docs/guarantees/heavy.md]

    Accuracy: unbiased while states stay within 0 .. bound when it is released; with m cells the
    standard deviation is at most about `1.5 sqrt(m)/t`, `t = tanh(epsilon/2)`. `plan.error()`
    predicts it. [tests/unit/test_threshold.py, tests/statistical/test_threshold.py]

    Args:
        epsilon: total loss of state and releases, in nats.
        least: the state from which on a user counts in full, at least 2; if it is odd, one below.
        universe: number of possible users, whose ids are 0 .. universe-1.
        bound: the largest state; None for 64 times `least`, as far as counters reach. A state
            beyond it, or below 0, is taken for another one; privacy does not rest on it.
        cells: number of counters; None for one each, as far as 64 MiB reach, and fewer for a
            sample.
        memory: bytes of the counters, at most, in place of `cells`; None for 64 MiB.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers, at most one. It multiplies the
            error by the root of the number of values of a counter: a fresh statistic is better.
        budget: how epsilon is split between state and releases; None for the smallest error.
        ledger: budget shared with other statistics of the same stream.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        epsilon: object,
        least: int,
        universe: int,
        bound: int | None = None,
        cells: int | None = None,
        memory: int | None = None,
        releases: int = 1,
        intrusions: int = 0,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        plan = plan_threshold(
            positive_integer(MOST_BOUND, least=least),
            None if bound is None else positive_integer(MOST_BOUND, bound=bound),
            positive_integer(MAX_UNIVERSE, universe=universe),
            None if cells is None else positive_integer(MOST_BYTES, cells=cells),
            request(epsilon, releases, intrusions, budget),
            None if memory is None else positive_integer(MOST_BYTES, memory=memory),
        )
        super().__init__(plan, coins, ledger)

    def _check_deltas(self, deltas: Deltas) -> None:
        refuse_beyond(deltas, self._plan.bound, signed=False)

    @property
    def _sensitivity(self) -> int:
        return self._plan.sensitivity
