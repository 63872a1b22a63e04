"""How much have all users done, if nobody counts for more than tau?

A counter for each user of a universe or of a sample of it, or hashed counters for open-ended ids,
with noise on blocks of tau values. What leaves is a noised count of cells, which is affine in the
cropped sum; or one of each level, where nobody knows how many users will come.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 2. Where we differ: the law of the noise. Theirs has a bump of one value
and needs random weights, so its answer is biased by up to a factor of 2, and its deviation grows
with `tau**2`; that of blocks is unbiased and grows with `tau`.
"""

from __future__ import annotations

from panprivacy._validate import MOST_BYTES, expected_range, positive_integer
from panprivacy.addressing import MAX_UNIVERSE
from panprivacy.cells.protocol import Deltas
from panprivacy.coins import Coins
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget, Ledger
from panprivacy.planning import CroppedPlan, plan_cropped, plan_cropped_levels
from panprivacy.planning.cropped import MOST_BOUND, default_bound
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.plans import request
from panprivacy.statistics.table import CountStatistic


class CroppedSum(CountStatistic[CroppedPlan]):
    """The sum of `min(|state|, tau)` over users; a state is the sum of a user's deltas.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> spent = pp.CroppedSum(tau=10, bound=500, universe=100_000, epsilon=1.0)
    >>> spent.update(np.arange(50_000), np.full(50_000, 4))
    >>> spent.update(np.arange(1_000), np.full(1_000, 400))  # whales count for 10 each
    >>> answer = spent.release()
    >>> 140_000 < answer.low < answer.value < answer.high < 270_000
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. With `intrusions=1` that includes the state at an announced intrusion before that
    time. [tests/contract, tests/exact/test_cropped.py, docs/guarantees/blocks.md]

    Accuracy: with a universe unbiased. With m cells the standard deviation is at most about
    `tau sqrt(m)/t`, `t = tanh(epsilon/2)`, whatever the bound; `plan.error()` predicts it. Of
    open-ended ids, two that share a cell hide a part of each other, and the interval covers what
    they may hide. Levels err by about as large a share of any sum in their range; the prediction
    is good where that share is below a fifth.
    [tests/unit/test_cropped.py, tests/statistical/test_cropped_sum.py]

    Args:
        epsilon: total loss of state and releases, in nats.
        tau: the most that a user counts for.
        bound: the largest distance of a user's state from 0 when it is released; None for 64 times
            tau. A state beyond it is taken for another one; privacy does not rest on it, and on
            the way states may go as far as they like. States below 0 count by their distance from
            0 if there is a universe; without one there must be none.
        universe: number of possible users, whose ids are 0 .. universe-1; None for open-ended ids.
        cells: number of counters. With a universe, None for one each, as far as 64 MiB reach, and
            fewer for a sample; without one, None for the smallest error within 64 MiB.
        memory: bytes of the counters, at most, in place of `cells`; None for 64 MiB.
        expected: for open-ended ids, the most users that may come; or a pair, the lowest and the
            highest number of users if each counts for tau, for an error that is a share of the
            sum. With a pair, `memory` limits the counters.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers, at most one. It multiplies the
            error by about `sqrt(tau q)/t` with q blocks: a fresh statistic is mostly better.
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
        tau: int,
        bound: int | None = None,
        universe: int | None = None,
        cells: int | None = None,
        memory: int | None = None,
        expected: object = None,
        releases: int = 1,
        intrusions: int = 0,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        most = positive_integer(MOST_BOUND, tau=tau)
        reach = None if bound is None else positive_integer(MOST_BOUND, bound=bound)
        size = None if memory is None else positive_integer(MOST_BYTES, memory=memory)
        asked = request(epsilon, releases, intrusions, budget)
        users = None if expected is None else expected_range(expected)
        if isinstance(expected, tuple | list) and users:
            _refuse_sizes(universe, cells)
            plan = plan_cropped_levels(most, reach or default_bound(most, None), users, asked, size)
        else:
            plan = plan_cropped(
                most,
                reach,
                None if universe is None else positive_integer(MAX_UNIVERSE, universe=universe),
                None if cells is None else positive_integer(MOST_BYTES, cells=cells),
                None if users is None else positive_integer(MOST_BYTES, expected=users[1]),
                asked,
                size,
            )
        super().__init__(plan, coins, ledger)

    def _check_deltas(self, deltas: Deltas) -> None:
        refuse_beyond(deltas, self._plan.bound, signed=self._plan.signed)


def _refuse_sizes(universe: object, cells: object) -> None:
    """Refuse what levels have no use for."""
    if universe is not None:
        message = "a universe says how many users there are: leave out expected="
        raise PlanError(message)
    if cells is not None:
        message = "a range of expected users is planned by memory=, not by cells="
        raise PlanError(message)
