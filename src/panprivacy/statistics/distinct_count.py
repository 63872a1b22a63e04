"""How many different users appeared, or are left after deletions, when nobody knows who might?

Presence bits at hashed cells, in levels that halve in popularity, so that some level is about
half full whatever the number of users; noise on the number of ones of each level; maximum
likelihood across levels. With deletions, counters modulo a prime in place of bits: each user's
deltas take a factor of his own, so a counter tells a sum of 0 from any other.

Reference: the bits of V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream
density estimation", Algorithm 2. Where we differ from their Algorithm 3: a user's level is fixed
by the hash, not by the history of the sample, which is not pan-private for any epsilon.
The counters: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via
statistics on sketches", asks the same question (Algorithm 1); the sketch here is another one.
"""

from __future__ import annotations

from panprivacy._validate import MOST_BYTES, expected_range, positive_integer, truth
from panprivacy.cells.protocol import Deltas
from panprivacy.coins import Coins
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget, Ledger
from panprivacy.planning import (
    DistinctPlan,
    NetDistinctPlan,
    plan_distinct,
    plan_net_distinct,
)
from panprivacy.planning.net import MOST_BOUND
from panprivacy.statistics.deltas import refuse_beyond, refuse_deltas
from panprivacy.statistics.plans import request
from panprivacy.statistics.table import CountStatistic


class DistinctCount(CountStatistic[DistinctPlan | NetDistinctPlan]):
    """The number of different users that appeared, in a fixed and small memory.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> visitors = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000))
    >>> visitors.update(np.arange(50_000) % 20_000)
    >>> answer = visitors.release()
    >>> 14_000 < answer.low < answer.value < answer.high < 26_000
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed. With
    `intrusions=k` that includes the states at k announced intrusions before that time.
    [tests/contract, tests/exact/test_exact.py]

    Accuracy: `plan.error(users)` is the predicted relative standard deviation; with 64 KiB and
    epsilon 1 it is below 1 % from 200,000 to 9 million users when those are expected.
    [tests/statistical/test_distinct_count.py, docs/accuracy.md]

    Args:
        epsilon: total loss of state and releases, in nats.
        expected: lowest and highest number of users to plan for, or one number. The count stays
            private outside of the range; its error grows.
        memory: bytes of table, at most; the plan may use fewer.
        deletions: whether to count users whose deltas do not add up to 0, in place of all that
            appeared.
        bound: with deletions, the largest distance from 0 of the sum of a user's deltas. Beyond it
            the count stays private, and may miss the user.
        signed: with deletions, whether such sums may be below 0.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers.
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
        expected: object = (1_000, 1_000_000_000),
        memory: int = 65_536,
        deletions: bool = False,
        bound: int | None = None,
        signed: bool = False,
        releases: int = 1,
        intrusions: int = 0,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        size = positive_integer(MOST_BYTES, memory=memory)
        users = expected_range(expected)
        asked = request(epsilon, releases, intrusions, budget)
        largest = _bound(bound, deletions=truth(deletions=deletions), signed=truth(signed=signed))
        plan: DistinctPlan | NetDistinctPlan
        if largest is None:
            plan = plan_distinct(users, size, asked)
        else:
            plan = plan_net_distinct(users, size, largest, asked, signed=signed)
        super().__init__(plan, coins, ledger)

    def _check_deltas(self, deltas: Deltas) -> None:
        if isinstance(self._plan, NetDistinctPlan):
            refuse_beyond(deltas, self._plan.bound, signed=self._plan.signed)
        else:
            refuse_deltas(
                deltas < 1, "delta must be at least 1; if users can leave, say deletions=True"
            )


def _bound(bound: object, *, deletions: bool, signed: bool) -> int | None:
    """The bound of the states, if users can leave."""
    if deletions:
        if bound is None:
            message = "deletions=True needs bound=: the largest sum of a user's deltas"
            raise PlanError(message)
        return positive_integer(MOST_BOUND, bound=bound)
    if bound is not None or signed:
        message = "bound= and signed= are for deletions=True"
        raise PlanError(message)
    return None
