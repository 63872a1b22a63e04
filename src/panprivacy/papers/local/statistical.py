"""Statistical queries, answered by asking each user for one noisy bit.

Reference: Dwork and Roth, Definitions 12.4 and 12.6; S. Kasiviswanathan, H. Lee, K. Nissim, S.
Raskhodnikova, A. Smith, "What can we learn privately?", 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import BudgetError, InputError, PlanError
from panprivacy.ground.validation import positive_integer, proportion
from panprivacy.papers.local.oracle import LROracle
from panprivacy.papers.local.response import GRID, RandomisedResponse, ShareResponse
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Epsilon, float_above
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Name, Release

StatisticalQuery = Callable[[Any], ArrayLike]
"""Function from all records that a user may hold to a number of 0 to 1 for each record."""


def users_needed(tolerance: float, epsilon: Epsilon, *, queries: int = 1, failure: float) -> int:
    """Return the number of users that each query needs so that all answers are within `tolerance`.

    >>> users_needed(0.05, 1, failure=0.05)
    3456

    Hoeffding's bound, of users and coins together: with `t = tanh(epsilon/2)` it is
    `ln(2 queries/failure) / (2 tolerance**2 t**2)`, less what rounding a query takes of the tolerance.
    Every query has separate users, so each of them spends all of epsilon on it: to query all users
    every time would take about `queries` times as many users.

    Args:
        tolerance: tau, at least 2**-16.
        epsilon: total privacy loss of each user, in nats.
        queries: number of queries.
        failure: probability that the error of any answer exceeds the tolerance.

    Raises:
        PlanError: an argument out of range.
    """  # noqa: E501 - a formula
    count, missed = positive_integer(queries=queries), proportion(failure=failure)
    left = proportion(tolerance=tolerance) - 1 / (2 * GRID)
    keep = float(RandomisedResponse(2, epsilon).keep)
    if left < 1 / (2 * GRID):
        message = f"tolerance must be at least 1/{GRID:,}"
        raise PlanError(message)
    return math.ceil((1 + 1e-9) * math.log(2 * count / missed) / (2 * (left * keep) ** 2))


class StatisticalQueries:
    """Answers a planned number of statistical queries, each from users of its own.

    >>> import numpy as np
    >>> from panprivacy import local
    >>> oracle = local.LROracle(np.arange(20_000) % 100, epsilon=2, domain=100)
    >>> asked = local.StatisticalQueries(oracle, tolerance=0.05, queries=2, failure=1e-6)
    >>> asked.users_each
    10000
    >>> answer = asked.ask(lambda age: age >= 65)
    >>> 0.3 <= answer.value <= 0.4
    True

    Guarantee: that of the oracle: each user answers one query at most, and loses the oracle's epsilon.
    [tests/exact/test_local.py]

    Accuracy: with probability `1 - failure` every answer is within the tolerance of the mean of the
    query over all users of the oracle, for users come in an order drawn at random. If they were
    drawn from a distribution it is that of the distribution, too, and queries may then depend on
    earlier answers; over a fixed set of users later ones have to be fixed in advance.
    [tests/statistical/test_local.py]

    Args:
        oracle: whose users are asked.
        tolerance: tau: how far an answer may be off.
        queries: how many there will be at most.
        failure: probability that the error of any answer exceeds the tolerance.

    Raises:
        PlanError: an argument out of range, or an oracle with fewer users than that takes.
    """  # noqa: E501 - a sentence

    __slots__ = ("_asked", "_order", "failure", "oracle", "queries", "tolerance")

    def __init__(
        self, oracle: LROracle, *, tolerance: float, queries: int, failure: float = 0.05
    ) -> None:
        each = users_needed(tolerance, oracle.epsilon, queries=queries, failure=failure)
        if each * queries > len(oracle):
            message = (
                f"{queries:,} queries take {each * queries:,} users and there are {len(oracle):,}: "
                "raise tolerance, failure or epsilon, or ask less"
            )
            raise PlanError(message)
        self.oracle, self.tolerance = oracle, tolerance
        self.queries, self.failure = queries, failure
        self._order = shuffled(len(oracle), oracle.coins)
        self._asked = 0

    @property
    def users_each(self) -> int:
        """Number of users of one query: all users, in equal parts."""
        return len(self.oracle) // self.queries

    def ask(self, query: StatisticalQuery) -> Release:
        """Return the mean of a query over all users.

        Args:
            query: takes the domain of the oracle, never what users hold, and gives a number of 0
                to 1 for each record, rounded to a multiple of 1/65,536; or yes or no.

        Returns:
            A share; its interval is the tolerance, and its confidence that of all answers together.

        Raises:
            BudgetError: all planned queries were made; no user was queried.
            InputError: the query returns something else; no user was queried.
        """
        if self._asked == self.queries:
            message = f"all {self.queries:,} queries were asked: plan for more with queries="
            raise BudgetError(message)
        shares = _shares(query(self.oracle.domain))
        sure = shares.dtype == np.bool_  # else a coin has the share as its probability
        epsilon = self.oracle.epsilon
        response = RandomisedResponse(2, epsilon) if sure else ShareResponse(epsilon)
        values = shares if sure else np.rint(shares * GRID).astype(np.int64)
        start = self._asked * self.users_each
        users = self._order[start : start + self.users_each]
        reports = self.oracle.ask(response, of=lambda _: values, users=users)
        self._asked += 1
        return self._release(response.estimate(reports).shares[1], reports)

    def _release(self, share: float, reports: NDArray[Any]) -> Release:
        """Return the answer; its standard error is that of equally many reports of 1 and 0."""
        keep = float(RandomisedResponse(2, self.oracle.epsilon).keep)
        low, high = share - self.tolerance, share + self.tolerance
        value, low, high = (float(np.clip(end, 0, 1)) for end in (share, low, high))
        return Release(
            value,
            low,
            high,
            1 - self.failure,
            float_above(self.oracle.epsilon),
            (int(reports.sum()), len(reports)),
            Name("statistical-query", "mean", (("query", self._asked),)),
            "share of users",
            note_on(low, high, unit="share of users", value=value),
            float(share),
            1 / (2 * math.sqrt(len(reports)) * keep),
        )


def _shares(given: ArrayLike) -> NDArray[Any]:
    """Return the value of a query for each record."""
    shares = np.asarray(given)
    numbers = shares.ndim == 1 and shares.dtype.kind in "biuf"
    if not numbers or not ((shares >= 0) & (shares <= 1)).all():
        message = "a query must give a number of 0 to 1 for each record"
        raise InputError(message)
    return shares


def shuffled(count: int, coins: Coins) -> NDArray[np.int64]:
    """Return the numbers below `count` in an order drawn at random, which is public.

    Two of the 64-bit keys tie with probability `count**2/2**65`, and keep their order then.
    """
    keys = np.frombuffer(coins.key(8 * count), np.uint64)
    return np.argsort(keys, kind="stable")
