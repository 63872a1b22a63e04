"""Budgets of statistics, and the ledger that they share."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from threading import Lock

from panprivacy.errors import BudgetError, WeakEpsilonWarning
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.guarantee.exact import format_rounded_down, format_rounded_up
from panprivacy.privacy.guarantee.loss import PrivacyLoss
from panprivacy.privacy.guarantee.losses import unseen_loss

Epsilon = float | int | str | Decimal | Fraction
"""Loss in nats; a float is read as its printed decimal, and a text may be a ratio like 1/3."""


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """Split of a statistic's epsilon; it overrides the planned split.

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
        """Return the loss of the state with announced intrusions; charged at initialisation."""
        return (intrusions + 1) * self.state

    def of_releases(self, count: int) -> Fraction:
        """Return the loss of the first `count` releases, on top of the state."""
        return count * self.release

    def total(self, *, releases: int, intrusions: int) -> Fraction:
        """Return the loss of the state and of this number of releases and announced intrusions."""
        return self.of_state(intrusions) + self.of_releases(releases)

    def separate(self, *, releases: int, intrusions: int) -> Fraction:
        """Return the sum of the losses of looks and releases, which together may cost less."""
        return (intrusions + 1) * self.state + releases * self.release

    def unseen(self, *, releases: int, intrusions: int) -> Fraction:  # noqa: ARG002
        """Return the loss of `releases` releases if nobody ever sees the state."""
        return unseen_loss(self.state, self.release, releases)


_PACKAGE = __name__.partition(".")[0]


def warn_if_weak(epsilon: Fraction) -> None:
    """Warn, once for each epsilon, of one that is too large to protect anybody."""
    if PrivacyLoss(epsilon).weak:
        message = (
            f"epsilon {format_rounded_up(epsilon)} protects nobody: odds may change by a factor of "
            f"e**{format_rounded_up(epsilon)}; take 10 or less"
        )
        warnings.warn(message, WeakEpsilonWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the stack level of the line that uses the package, for warnings."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level


class Account:
    """Part of a `Ledger` for one statistic: a limit, and the amount spent of it."""

    __slots__ = ("_limit", "_lock", "_spent")

    def __init__(self, limit: Fraction) -> None:
        self._limit = limit
        self._spent = Fraction(0)
        self._lock = Lock()

    @property
    def limit(self) -> Fraction:
        """Amount reserved for the statistic."""
        return self._limit

    @property
    def spent(self) -> Fraction:
        """Amount that the statistic has spent."""
        return self._spent

    def spend(self, epsilon: Fraction) -> None:
        """Spend before any output is released; all or nothing.

        Raises:
            BudgetError: the limit would be exceeded. Nothing was spent.
        """
        cost = positive_fraction(epsilon=epsilon)
        with self._lock:
            if self._spent + cost > self._limit:
                left = format_rounded_down(self._limit - self._spent)
                message = (
                    f"this needs epsilon {format_rounded_up(cost)} and {left} is left; "
                    "plan for more with releases= or intrusions= when the statistic is made"
                )
                raise BudgetError(message)
            self._spent += cost


class Ledger:
    """The privacy budget of all states about the same users.

    Losses add over all statistics of one stream, so they share one ledger:

    >>> import panprivacy as pp
    >>> ledger = pp.Ledger(1)
    >>> visitors = pp.Density(universe=100, epsilon=0.5, ledger=ledger)
    >>> float(ledger.total), float(ledger.available)
    (1.0, 0.5)

    Args:
        epsilon: the total allowed loss, in nats; above 20 there is a warning.
    """

    __slots__ = ("_accounts", "_lock", "_total")

    def __init__(self, epsilon: Epsilon) -> None:
        self._total = positive_fraction(epsilon=epsilon)
        warn_if_weak(self._total)
        self._accounts: list[Account] = []
        self._lock = Lock()

    @property
    def total(self) -> Fraction:
        """The complete budget."""
        return self._total

    @property
    def spent(self) -> Fraction:
        """Loss of states and releases so far."""
        return sum((account.spent for account in self._accounts), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """Amount not spent; part of it may be reserved for planned releases."""
        return self._total - self.spent

    @property
    def available(self) -> Fraction:
        """Amount neither spent nor reserved: the maximum for an additional statistic."""
        return self._total - sum((account.limit for account in self._accounts), Fraction(0))

    def check(self, epsilon: Fraction) -> None:
        """Raise `BudgetError` if less than `epsilon` is available."""
        if epsilon > self.available:
            message = (
                f"the ledger has epsilon {format_rounded_down(self.available)} available "
                f"and this statistic asks for {format_rounded_up(epsilon)}"
            )
            raise BudgetError(message)

    def open(self, epsilon: Fraction) -> Account:
        """Reserve `epsilon` for an additional statistic.

        Raises:
            BudgetError: less than that is available. Nothing was reserved.
        """
        account = Account(positive_fraction(epsilon=epsilon))
        with self._lock:
            self.check(account.limit)
            self._accounts.append(account)
        return account

    def __repr__(self) -> str:
        return (
            f"Ledger(total={format_rounded_up(self._total)}, "
            f"spent={format_rounded_up(self.spent)}, "
            f"remaining={format_rounded_down(self.remaining)})"
        )
