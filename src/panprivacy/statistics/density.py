"""What share of a known universe appeared?

One presence bit for each user of the universe, or of a uniform sample of it, and discrete Laplace
noise on the number of ones.

Reference: V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream density
estimation", Algorithm 2. Where we differ: the output noise is that of the true sensitivity (1 for
the number of ones; the printed scale is too small), it is discrete, and the sample is a keyed
permutation, which stores bits instead of ids.
"""

from __future__ import annotations

import numpy as np

from panprivacy._validate import MOST_BYTES, positive_integer
from panprivacy.addressing import MAX_UNIVERSE
from panprivacy.cells.protocol import Deltas
from panprivacy.coins import Coins
from panprivacy.guarantee import Budget, Ledger
from panprivacy.planning import DensityPlan, plan_density
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.plans import request
from panprivacy.statistics.table import CountStatistic


class Density(CountStatistic[DensityPlan]):
    """The share of a declared universe that appeared, or is present in a stream with deletions.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> members = pp.Density(universe=100_000, epsilon=1.0)
    >>> members.update(np.arange(25_000))
    >>> answer = members.release()
    >>> 0.2 < answer.low < answer.value < answer.high < 0.3
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed. With
    `intrusions=k` that includes the states at k announced intrusions before that time.
    [tests/contract, tests/exact/test_exact.py]

    Accuracy: with m cells the standard deviation is about `1/(2 t sqrt(m))`,
    `t = tanh(epsilon/2)`, and with fewer cells than users that of a sample of m.
    [tests/statistical/test_density.py]

    Args:
        universe: number of possible users; their ids are 0 .. universe-1.
        epsilon: total loss of state and releases, in nats.
        cells: number of bits; None for one each, as far as 16 MiB reach.
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
        universe: int,
        epsilon: object,
        cells: int | None = None,
        releases: int = 1,
        intrusions: int = 0,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        size = positive_integer(MAX_UNIVERSE, universe=universe)
        wanted = None if cells is None else positive_integer(8 * MOST_BYTES, cells=cells)
        asked = request(epsilon, releases, intrusions, budget)
        super().__init__(plan_density(size, wanted, asked), coins, ledger)

    def _check_deltas(self, deltas: Deltas) -> None:
        refuse_deltas(
            np.abs(deltas) != 1, "delta must be 1 (the user enters) or -1 (the user leaves)"
        )
