"""The one way to the users' data: each is asked through local randomisers, up to his epsilon.

Reference: Dwork and Roth, Definitions 12.2 and 12.3, Observation 12.1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import BudgetError, InputError
from panprivacy.guarantee import Epsilon, shown
from panprivacy.local.randomiser import Randomiser, Reports, check_below, one_column, read_epsilon

Encode = Callable[[Any], ArrayLike]
"""From the records of some users to a value for each, one user at a time or as if it were so."""


class LROracle:
    """Asks users through local randomisers, and refuses what would cost one of them too much.

    >>> import panprivacy as pp
    >>> from panprivacy import local
    >>> oracle = local.LROracle([3, 1, 4, 1, 5], epsilon=1)
    >>> reports = oracle.ask(local.RandomisedResponse(6, "1/2"))
    >>> odd = oracle.ask(local.RandomisedResponse(2, "1/2"), of=lambda held: held % 2, users=[0, 4])
    >>> oracle.spent([0, 1])
    [Fraction(1, 1), Fraction(1, 2)]
    >>> oracle.ask(local.RandomisedResponse(6, "1/2"))
    Traceback (most recent call last):
    ...
    panprivacy.errors.BudgetError: this costs epsilon 0.5, and somebody asked has less left of 1: nobody was asked

    Guarantee: the joint law of all reports changes by a factor of at most `e**epsilon` when one user's
    record is another one, whatever is asked of whom, and however that follows from earlier
    reports. [tests/exact/test_local.py, docs/guarantees/local.md]

    Args:
        records: what the users hold, an array whose first axis is users.
        epsilon: what each user may lose in all, in nats.
        coins: source of all randomness; None for the operating system's.

    Raises:
        InputError: the records have no axis of users.
    """  # noqa: E501 - a message of one line

    __slots__ = ("_coins", "_epsilon", "_lock", "_records", "_spent", "_sums")

    def __init__(self, records: ArrayLike, epsilon: Epsilon, *, coins: Coins | None = None) -> None:
        self._epsilon = read_epsilon(epsilon)
        self._records = np.asarray(records)
        if self._records.ndim == 0:
            message = "records must be an array whose first axis is users"
            raise InputError(message)
        self._coins = coins or SystemCoins()
        # Fractions are few, users are many: each has the number of what he spent.
        self._sums = [Fraction(0)]
        self._spent = np.zeros(len(self._records), np.int64)
        self._lock = Lock()

    @property
    def epsilon(self) -> Fraction:
        """What each user may lose in all."""
        return self._epsilon

    @property
    def coins(self) -> Coins:
        """The source of all randomness."""
        return self._coins

    def __len__(self) -> int:
        """The number of users."""
        return len(self._records)

    def spent(self, users: ArrayLike) -> list[Fraction]:
        """What some users have lost so far.

        Raises:
            InputError: there is no such user.
        """
        return [self._sums[sum_] for sum_ in self._spent[self._read(users)]]

    def ask(
        self, randomiser: Randomiser, *, of: Encode | None = None, users: ArrayLike | None = None
    ) -> Reports:
        """A report of each user who is asked.

        Args:
            randomiser: through which they answer; of one's own only as a `MatrixRandomiser`, for an
                oracle cannot check what another class draws.
            of: what of their records they are asked for: takes the records of those who are asked,
                gives a value for each. It has to look at each record by itself.
            users: who is asked, by number from 0, each once; None for all.

        Returns:
            The reports, in the order of `users`.

        Raises:
            BudgetError: one of them would lose more than he may; nobody was asked, nothing spent.
            InputError: no such users, one of them twice, or values that the randomiser has not.
        """
        asked = self._read(users)
        with self._lock:
            before = self._affordable(asked, randomiser.epsilon)
            self._spend(asked, before, randomiser.epsilon)
        held = self._records[asked]
        return randomiser.randomise(held if of is None else of(held), self._coins)

    def _affordable(self, asked: NDArray[np.int64], cost: Fraction) -> NDArray[np.int64]:
        """The numbers of what those who are asked have spent, if each of them can pay."""
        before = np.unique(self._spent[asked])
        if any(self._sums[sum_] + cost > self._epsilon for sum_ in before):
            message = (
                f"this costs epsilon {shown(cost)}, and somebody asked has less left of "
                f"{shown(self._epsilon)}: nobody was asked"
            )
            raise BudgetError(message)
        return before

    def _spend(self, asked: NDArray[np.int64], before: NDArray[np.int64], cost: Fraction) -> None:
        """Pay before anybody is asked: what fails later is lost, and not asked again."""
        after = np.zeros(len(self._sums), np.int64)
        for sum_ in before:
            total = self._sums[sum_] + cost
            if total not in self._sums:
                self._sums.append(total)
            after[sum_] = self._sums.index(total)
        self._spent[asked] = after[self._spent[asked]]

    def _read(self, users: ArrayLike | None) -> NDArray[np.int64]:
        if users is None:
            return np.arange(len(self))
        asked = one_column(users, "users")
        check_below(asked, len(self), "a user")
        if len(np.unique(asked)) < len(asked):
            message = "a user is named twice: ask in two calls"
            raise InputError(message)
        return asked.astype(np.int64)
