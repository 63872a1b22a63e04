"""Who spends what: budgets of statistics, and the ledger that they share."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from threading import Lock

from panprivacy._validate import positive_fraction
from panprivacy.errors import BudgetError, WeakEpsilonWarning
from panprivacy.guarantee.exact import shown, shown_below
from panprivacy.guarantee.losses import unseen_loss

Epsilon = float | int | str | Decimal | Fraction
"""A loss in nats; a float means the decimal it prints as, and a text may be a ratio like 1/3."""


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """How a statistic's epsilon is split; overrides the planned split.

    Args:
        state: epsilon of the state, for each look (one unannounced, and each announced one).
        release: epsilon of each release.
    """

    state: Fraction
    release: Fraction

    def __init__(self, state: Epsilon, release: Epsilon) -> None:
        object.__setattr__(self, "state", positive_fraction(state=state))
        object.__setattr__(self, "release", positive_fraction(release=release))

    def of_state(self, intrusions: int) -> Fraction:
        """What the state costs with so many announced intrusions; it is paid at birth."""
        return (intrusions + 1) * self.state

    def of_releases(self, count: int) -> Fraction:
        """What the first so many releases cost, on top of the state."""
        return count * self.release

    def total(self, *, releases: int, intrusions: int) -> Fraction:
        """What the state, `releases` releases and `intrusions` announced intrusions cost."""
        return self.of_state(intrusions) + self.of_releases(releases)

    def separate(self, *, releases: int, intrusions: int) -> Fraction:
        """Return what looks and releases cost apart, which together may cost less."""
        return (intrusions + 1) * self.state + releases * self.release

    def unseen(self, *, releases: int, intrusions: int) -> Fraction:  # noqa: ARG002
        """What `releases` releases cost if nobody ever sees the state."""
        return unseen_loss(self.state, self.release, releases)


_WEAK = 20
"""From more epsilon than this on, odds may change by a factor of 485 million."""


def warn_if_weak(epsilon: Fraction) -> None:
    """Warn, once for each epsilon, of one that protects nobody."""
    if epsilon > _WEAK:
        message = (
            f"epsilon {shown(epsilon)} protects nobody: odds may change by a factor of "
            f"e**{shown(epsilon)}; take 10 or less"
        )
        warnings.warn(message, WeakEpsilonWarning, stacklevel=3)


class Account:
    """One statistic's part of a `Ledger`: a limit, and what has been spent of it."""

    __slots__ = ("_limit", "_lock", "_spent")

    def __init__(self, limit: Fraction) -> None:
        self._limit = limit
        self._spent = Fraction(0)
        self._lock = Lock()

    @property
    def limit(self) -> Fraction:
        """What was set aside for the statistic."""
        return self._limit

    @property
    def spent(self) -> Fraction:
        """What the statistic has spent."""
        return self._spent

    def spend(self, epsilon: Fraction) -> None:
        """Spend before anything leaves; all or nothing.

        Raises:
            BudgetError: the limit would be exceeded. Nothing was spent.
        """
        cost = positive_fraction(epsilon=epsilon)
        with self._lock:
            if self._spent + cost > self._limit:
                left = shown_below(self._limit - self._spent)
                message = (
                    f"this needs epsilon {shown(cost)} and {left} is left; "
                    "plan for more with releases= or intrusions= when the statistic is made"
                )
                raise BudgetError(message)
            self._spent += cost


class Ledger:
    """The privacy budget of everything that is kept about the same users.

    Losses add over all statistics of one stream, so they share one ledger:

    >>> import panprivacy as pp
    >>> ledger = pp.Ledger(1)
    >>> visitors = pp.Density(universe=100, epsilon=0.5, ledger=ledger)
    >>> float(ledger.total), float(ledger.available)
    (1.0, 0.5)

    Args:
        epsilon: the total loss that is allowed, in nats; above 20 it is warned about.
    """

    __slots__ = ("_accounts", "_lock", "_total")

    def __init__(self, epsilon: Epsilon) -> None:
        self._total = positive_fraction(epsilon=epsilon)
        warn_if_weak(self._total)
        self._accounts: list[Account] = []
        self._lock = Lock()

    @property
    def total(self) -> Fraction:
        """The whole budget."""
        return self._total

    @property
    def spent(self) -> Fraction:
        """What states and releases have cost so far."""
        return sum((account.spent for account in self._accounts), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """What has not been spent; part of it may be set aside for planned releases."""
        return self._total - self.spent

    @property
    def available(self) -> Fraction:
        """What is neither spent nor set aside: the most that one more statistic may take."""
        return self._total - sum((account.limit for account in self._accounts), Fraction(0))

    def check(self, epsilon: Fraction) -> None:
        """Raise `BudgetError` if less than `epsilon` is available."""
        if epsilon > self.available:
            message = (
                f"the ledger has epsilon {shown_below(self.available)} available "
                f"and this statistic asks for {shown(epsilon)}"
            )
            raise BudgetError(message)

    def open(self, epsilon: Fraction) -> Account:
        """Set `epsilon` aside for one more statistic.

        Raises:
            BudgetError: less than that is available. Nothing was set aside.
        """
        account = Account(positive_fraction(epsilon=epsilon))
        with self._lock:
            self.check(account.limit)
            self._accounts.append(account)
        return account

    def __repr__(self) -> str:
        return (
            f"Ledger(total={shown(self._total)}, spent={shown(self.spent)}, "
            f"remaining={shown_below(self.remaining)})"
        )
