"""A list whose order follows private counts of requests.

Reference: Blum, Chawla, Kalai, "Static optimality and dynamic search-optimality in lists and
trees", 2002; Naor, "Foundations of Privacy", lecture 10, slides 31 to 35.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import InputError
from panprivacy.ground.validation import positive_integer, whole_number
from panprivacy.papers.online.multi_counter import MultiCounter
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Epsilon, Ledger
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import Floats, Integers

_MOST_WEIGHT: Final = 1 << 20


class ListUpdate(MultiCounter):
    """The order of a list of n elements, with the most requested elements in front.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> shelf = pp.online.ListUpdate(50, horizon=20_000, epsilon=1.0)
    >>> costs = shelf.serve(np.arange(20_000) % 5)  # a request a step: 5 elements of 50
    >>> bool(costs[-1_000:].mean() < 5)
    True

    A request costs the place of its element, counted from 1, and the order may change for nothing
    between two requests. The order is public, requests are not. An object is a `MultiCounter` of
    requests, which orders by its answers and by the weights of Blum, Chawla and Kalai: random
    whole numbers, drawn once. An object belongs to one thread at a time.

    Guarantee: that of `MultiCounter`, whatever the weights are; orders are functions of its answers
    and of them. [tests/exact/test_online.py, docs/guarantees/online.md]

    Accuracy: `bound()` is proved of the expected cost of requests that do not react to orders, over
    that of the best order that never changes. [tests/statistical/test_online.py]

    Args:
        n: number of elements, at least 2.
        horizon: maximum number of steps.
        epsilon: the loss for one request, in nats.
        every: after how many steps the order changes; None for `n/n.bit_length()`, rounded up.
        weights: the largest weight; None for the one whose bound is least.
        ledger: budget shared with others that count the same requests; None for one of its own.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range, or some that do not go together.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ("_places", "_places_of", "_weights")
    name = "list-update"

    def __init__(
        self,
        n: int,
        horizon: int,
        *,
        epsilon: Epsilon,
        every: int | None = None,
        weights: int | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        whole_number(2, 1 << 62, n=n)
        if weights is not None:
            positive_integer(_MOST_WEIGHT, weights=weights)
        super().__init__(n, horizon, epsilon=epsilon, every=every, ledger=ledger, coins=coins)
        self._sizes["weights"] = weights
        drawn = self._coins.categorical([1] * self.largest_weight, self.n)
        self._weights = 1 + drawn.astype(np.int64)
        self._places_of = -1

    @property
    def largest_weight(self) -> int:
        """The weights are whole numbers of 1 to this."""
        given = self._sizes["weights"]
        if given is not None:
            return int(given)
        best = math.sqrt(12 * self.horizon * self._strays() / self.n)
        return min(math.ceil(best), _MOST_WEIGHT)

    @property
    def order(self) -> NDArray[np.int64]:
        """The elements from front to back, int64[n]; it is public."""
        return np.argsort(self.places, kind="stable")

    @property
    def places(self) -> NDArray[np.int64]:
        """Current cost of a request for each element, int64[n] of 1 .. n; public."""
        if self._places_of != self.answered:
            self._places = self._ranked(self._now.last.values[:, None])[0]
            self._places_of = self.answered
        return self._places.copy()

    def serve(self, requests: ArrayLike) -> NDArray[np.int64]:
        """Take in many steps at once, as `run` does; what each request cost, int64[steps].

        Costs are as secret as requests are: an intruder with the order derives one from the other.
        A step without a request costs 0.

        Args:
            requests: the requested element of each step; -1 for none.

        Raises:
            InputError: one is out of range. Nothing was changed.
            BudgetError: the horizon has fewer steps left. Nothing was changed.
        """
        events = self._numbers(requests, -1)
        costs = np.zeros(len(events), np.int64)
        try:
            self._check_left(len(events))
            for steps in self._pieces(len(events)):
                before, late = self.places, self._answers_before(steps.stop - steps.start)
                places = np.vstack([before, self._ranked(self._take(events[steps]))])
                nothing = np.zeros((len(places), 1), np.int64)  # cost of -1
                found = np.hstack([places, nothing])[late, events[steps]]
                costs[steps] = found
                wipe(found)
        finally:
            wipe(events)
        return costs

    def bound(self, requests: int | None = None) -> float:
        """Return a bound on the excess of the expected cost over that of the best fixed order.

        It is proved of one request a step, without announced intrusions and crashes.

        Args:
            requests: number of requests; None for one at each step.
        """
        given = self.horizon if requests is None else requests
        count = whole_number(0, self.horizon, requests=given)
        pairs, most = self.n * (self.n - 1) / 2, self.largest_weight
        return pairs * most / 6 + (self.n - 1) * count * self._strays() / most

    def _strays(self) -> float:
        """Return the average error of a difference of two counts, plus 1."""
        noise = math.sqrt(2 * self._now.forest.variances().max())
        return noise + (self.every + 3) / 2

    def _ranked(self, values: Floats) -> Integers:
        """Return the places of all elements for each column of counts, int64[columns, n]."""
        order = np.argsort(-(values + self._weights[:, None]), axis=0, kind="stable")
        places = np.empty(order.T.shape, np.int64)
        np.put_along_axis(places, order.T, np.arange(1, self.n + 1)[None], axis=1)
        return places

    def _extra(self) -> bytes:
        return self._weights.tobytes()

    def _check_extra(self, body: memoryview) -> None:
        weights = np.frombuffer(body, np.int64)
        if ((weights < 1) | (weights > self.largest_weight)).any():
            message = "the state is damaged: there are no such weights"
            raise InputError(message)

    def _take_extra(self, body: memoryview) -> None:
        self._weights[:] = np.frombuffer(body, np.int64)
        self._places_of = -1
