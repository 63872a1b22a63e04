"""How many users hold at least 1/k of a public total?

Several times k counters with noise on blocks of `total/2k`, whatever the number of users; random
polynomials send users to them.
What leaves is one noised count, which is affine in a threshold that rises from `total/2k` to
`total/k`.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 3. Where we differ: they subtract two estimates of cropped sums, each from
a table of its own and each right up to a factor of 2, so the difference may be off by a multiple
of k. Here one count of one table has the threshold as its mean, and a look costs half as much.
"""

from __future__ import annotations

from panprivacy._validate import MOST_BYTES, positive_integer
from panprivacy.cells.protocol import Deltas
from panprivacy.coins import Coins
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget, Ledger
from panprivacy.planning import HeavyPlan, plan_heavy
from panprivacy.planning.heavy import LEAST_INDEPENDENCE, MOST_INDEPENDENCE, MOST_K, MOST_TOTAL
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.plans import request
from panprivacy.statistics.table import CountStatistic


class HeavyHitterCount(CountStatistic[HeavyPlan]):
    """The number of users whose deltas add up to at least `total / k`, in a memory of k alone.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> heavy = pp.HeavyHitterCount(k=1_000, total=1_000_000, epsilon=4)
    >>> heavy.update(np.arange(600), np.full(600, 1_500))  # of 100,000 users
    >>> heavy.update(np.arange(600, 100_000))
    >>> answer = heavy.release()
    >>> answer.low < 600 < answer.high
    True

    A user of `total/k` or more counts as 1, one of `total/2k` or less as 0, and one between as
    the share of the way: the *soft count*, which lies between the number of users with at least
    `total/k` and that with more than `total/2k`. The interval is for it. The answer is the soft
    count of cells, which users who share one can raise: in the worst stream, where everybody
    holds just `total/2k`, by `2 k**2 / cells`.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do and however deltas are rounded; `total` is public. With `intrusions=1` that includes
    the state at an announced intrusion before that time.
    [tests/contract, tests/exact/test_heavy.py, docs/guarantees/heavy.md]

    Accuracy: with m cells the standard deviation is at most about `1.5 sqrt(m)/t`,
    `t = tanh(epsilon/2)`, and so at epsilon 1 the answer says little unless k is in the thousands.
    `plan.error()` predicts the root-mean-square error in the worst stream; the plan takes as many
    cells as make it smallest. [tests/unit/test_heavy.py, tests/statistical/test_heavy_hitters.py]

    Args:
        epsilon: total loss of state and releases, in nats.
        k: users count who hold at least 1/k of the total; at most 32,768.
        total: what the deltas of all users add up to when it is released, in the unit of deltas.
            It is public. If it is wrong, so are the thresholds; privacy does not rest on it. No
            user's deltas may add up to less than 0.
        cells: number of counters, at least 2k; None for the smallest error within 64 MiB.
        memory: bytes of the counters, at most, in place of `cells`; None for 64 MiB.
        resolution: what each delta is rounded to a multiple of, up or down at random, so that the
            mean is right; None for the finest that counters of a moderate size allow, which is 1
            for totals up to a million. The interval covers it for deltas of at least 0; where
            many deltas are taken back, give a finer one.
        independence: r, from 4 to 64: the cells of any r users are independent. What is said of
            collisions needs 4; with 64 an update takes several times as long (benchmarks/heavy.py).
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
        k: int,
        total: int,
        cells: int | None = None,
        memory: int | None = None,
        resolution: int | None = None,
        independence: int = LEAST_INDEPENDENCE,
        releases: int = 1,
        intrusions: int = 0,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        plan = plan_heavy(
            positive_integer(MOST_K, k=k),
            positive_integer(MOST_TOTAL, total=total),
            None if cells is None else positive_integer(MOST_BYTES, cells=cells),
            None if resolution is None else positive_integer(MOST_TOTAL, resolution=resolution),
            request(epsilon, releases, intrusions, budget),
            None if memory is None else positive_integer(MOST_BYTES, memory=memory),
            _independence(independence),
        )
        super().__init__(plan, coins, ledger)

    def _check_deltas(self, deltas: Deltas) -> None:
        refuse_beyond(deltas, self._plan.total, signed=False, what="total")

    @property
    def _sensitivity(self) -> int:
        return self._plan.sensitivity


def _independence(given: object) -> int:
    """Of how many users the cells are independent."""
    chosen = positive_integer(MOST_INDEPENDENCE, independence=given)
    if chosen < LEAST_INDEPENDENCE:
        message = (
            f"independence must be at least {LEAST_INDEPENDENCE}: with less, how often users share "
            "cells varies too much"
        )
        raise PlanError(message)
    return chosen
