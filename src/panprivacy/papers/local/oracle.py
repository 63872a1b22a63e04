"""The access to the users' data: local randomisers query each user up to the user's epsilon.

Reference: Dwork and Roth, Definitions 12.2 and 12.3, Observation 12.1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import BudgetError, InputError, PlanError
from panprivacy.ground.validation import whole_number
from panprivacy.papers.local.hadamard import HadamardResponse
from panprivacy.papers.local.matrix import MatrixRandomiser
from panprivacy.papers.local.randomiser import (
    MOST_VALUES,
    Randomiser,
    Reports,
    Values,
    check_below,
    integer_column,
    read_epsilon,
    read_values,
)
from panprivacy.papers.local.response import RandomisedResponse, ShareResponse
from panprivacy.papers.local.unary import UnaryEncoding
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import Epsilon, format_rounded_up

Encode = Callable[[Any], ArrayLike]
"""Function from all records that a user may hold to a value for each record."""

_KNOWN: Final = frozenset(
    {HadamardResponse, MatrixRandomiser, RandomisedResponse, ShareResponse, UnaryEncoding}
)


class LROracle:
    """Asks users through local randomisers, and refuses what would cost one of them too much.

    >>> import panprivacy as pp
    >>> from panprivacy import local
    >>> oracle = local.LROracle([3, 1, 4, 1, 5], epsilon=1, domain=6)
    >>> reports = oracle.ask(local.RandomisedResponse(6, "1/2"))
    >>> odd = oracle.ask(local.RandomisedResponse(2, "1/2"), of=lambda held: held % 2, users=[0, 4])
    >>> oracle.spent([0, 1])
    [Fraction(1, 1), Fraction(1, 2)]
    >>> oracle.ask(local.RandomisedResponse(6, "1/2"))
    Traceback (most recent call last):
    ...
    panprivacy.errors.BudgetError: this costs epsilon 0.5, and somebody asked has less left of 1: nobody was asked

    Guarantee: the joint law of all reports and errors of `ask` changes by a factor of at most
    `e**epsilon` when one user's record is another one of the domain, whatever is asked of whom, and
    however that follows from earlier reports. [tests/exact/test_local.py, docs/guarantees/local.md]

    Args:
        records: what the users hold, an array whose first axis is users.
        epsilon: total privacy loss of each user, in nats.
        domain: the records that a user may hold, which is public: a number for whole numbers of
            0 .. domain-1, or an array of them, with records along the first axis.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: no such domain.
        InputError: a record that is not in the domain; the message names the row. From here on no
            error depends on the records.
    """  # noqa: E501 - a message of one line

    __slots__ = ("_coins", "_domain", "_epsilon", "_held", "_lock", "_spent", "_sums")

    def __init__(
        self,
        records: ArrayLike,
        epsilon: Epsilon,
        *,
        domain: int | ArrayLike,
        coins: Coins | None = None,
    ) -> None:
        self._epsilon = read_epsilon(epsilon)
        self._domain = _read_domain(domain)
        self._held = _places(np.asarray(records), self._domain)
        self._coins = coins or SystemCoins()
        # Each user has the index of the total spent so far; there are few different totals.
        self._sums = [Fraction(0)]
        self._spent = np.zeros(len(self._held), np.int64)
        self._lock = Lock()

    @property
    def epsilon(self) -> Fraction:
        """Total privacy loss that each user may have."""
        return self._epsilon

    @property
    def domain(self) -> NDArray[Any]:
        """The records that a user may hold; it cannot be written to."""
        return self._domain

    @property
    def coins(self) -> Coins:
        """The source of all randomness."""
        return self._coins

    def __len__(self) -> int:
        """Return the number of users."""
        return len(self._held)

    def spent(self, users: ArrayLike) -> list[Fraction]:
        """Return the privacy loss of some users so far.

        Raises:
            InputError: a user does not exist.
        """
        return [self._sums[sum_] for sum_ in self._spent[self._read(users)]]

    def ask(
        self, randomiser: Randomiser, *, of: Encode | None = None, users: ArrayLike | None = None
    ) -> Reports:
        """Return a report of each user in `users`.

        Args:
            randomiser: through which they answer, one of this package; a law of one's own is a
                `MatrixRandomiser`.
            of: what records are asked for: takes the whole domain, never what users hold, and gives
                a value for each record; None for the place of a record in the domain.
            users: the users to query, by number from 0, each once; None for all.

        Returns:
            The reports, in the order of `users`.

        Raises:
            PlanError: another class of randomiser, whose law nobody checks.
            BudgetError: a user would exceed the limit; no user was queried, nothing was spent.
            InputError: no such users, one of them twice, or records of the domain for which the
                randomiser has no value; nothing was spent.
        """
        asked, values = self._read(users), self._values(randomiser, of)
        with self._lock:
            before = self._affordable(asked, randomiser.epsilon)
            self._spend(asked, before, randomiser.epsilon)
        return randomiser.randomise(values[self._held[asked]], self._coins)

    def _values(self, randomiser: Randomiser, of: Encode | None) -> Values:
        """Return a value for each record of the domain: it is public, so it may be refused."""
        if type(randomiser) not in _KNOWN:
            message = "an oracle asks through the randomisers of this package: write a law of your "
            message += "own as a MatrixRandomiser"
            raise PlanError(message)
        given = np.arange(len(self._domain)) if of is None else of(self._domain)
        values = read_values(given, randomiser.inputs)
        if len(values) != len(self._domain):
            message = (
                f"of= must give a value for each of the {len(self._domain):,} records of the "
                f"domain, and gave {len(values):,}"
            )
            raise InputError(message)
        return values

    def _affordable(self, asked: NDArray[np.int64], cost: Fraction) -> NDArray[np.int64]:
        """Return the indices of the spent totals of the queried users, if each of them can pay."""
        before = np.unique(self._spent[asked])
        if any(self._sums[sum_] + cost > self._epsilon for sum_ in before):
            message = (
                f"this costs epsilon {format_rounded_up(cost)}, and somebody asked has less left "
                f"of {format_rounded_up(self._epsilon)}: nobody was asked"
            )
            raise BudgetError(message)
        return before

    def _spend(self, asked: NDArray[np.int64], before: NDArray[np.int64], cost: Fraction) -> None:
        """Charge the users before the query: a later failure does not give the budget back."""
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
        asked = integer_column(users, "users")
        check_below(asked, len(self), "a user")
        if len(np.unique(asked)) < len(asked):
            message = "a user is named twice: ask in two calls"
            raise InputError(message)
        return asked.astype(np.int64)


def _read_domain(domain: int | ArrayLike) -> NDArray[Any]:
    """Return the records that a user may hold, each once."""
    if isinstance(domain, (int, np.integer)):
        records = np.arange(whole_number(1, MOST_VALUES, domain=domain))
    else:
        records = np.array(domain)
    if records.ndim == 0 or not 1 <= len(records) <= MOST_VALUES:
        message = f"domain must be a number, or an array of 1 to {MOST_VALUES:,} records"
        raise PlanError(message)
    if len(np.unique(records, axis=0)) < len(records):
        message = "domain has a record twice: name each once"
        raise PlanError(message)
    records.flags.writeable = False
    return records


def _places(records: NDArray[Any], domain: NDArray[Any]) -> Values:
    """Return the place of each record in the domain."""
    if records.ndim == 0 or records.shape[1:] != domain.shape[1:]:
        message = "records must be an array whose first axis is users, of records like the domain's"
        raise InputError(message)
    _, found = np.unique(np.concatenate([domain, records]), axis=0, return_inverse=True)
    found, place = found.reshape(-1), np.full(len(domain) + len(records), -1)
    place[found[: len(domain)]] = np.arange(len(domain))
    places = place[found[len(domain) :]]
    outside = np.flatnonzero(places < 0)
    if outside.size:
        message = "a record is not in the domain: name all records that a user may hold"
        raise InputError(message, row=int(outside[0]) + 1)
    return places
