"""What is promised, in exact numbers: epsilon, what adjacency means, and who spends what.

Everything here is a `Fraction`. Irrational numbers enter only through `exp_bounds` and
`log_above`, which say on which side of the truth their answers lie.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from threading import Lock

from panprivacy._validate import positive_fraction
from panprivacy.errors import BudgetError, PlanError, WeakEpsilonWarning

_DIGITS = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999)
_ULP = Fraction(1, 10**50)
LARGEST_EXPONENT = Fraction(10_000)
RANDOMISATION_BITS = 64

_CHARGE_DIGITS = 15
"""Of what releases of bits are charged: few enough to be written into a ledger."""
_NOISE_DIGITS = 7
"""Of the epsilon of a release of bits: so few that its noise is drawn in machine words."""
_STEP_DIGITS = 55
_MOST_STEPS = 2_000
"""Releases of an unseen state whose losses are followed; further ones cost all of theirs."""


def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Rational numbers below and above `e**exponent`, within a relative 1e-50 of it.

    `decimal` rounds exp correctly at 60 digits; the division before it adds an error of
    `|exponent| * 1e-59`, so that 1e-50 covers both for every exponent up to 10,000.
    """
    if abs(exponent) > LARGEST_EXPONENT:
        message = f"the exponent must lie within ±{int(LARGEST_EXPONENT):,}"
        raise ValueError(message)
    numerator, denominator = (_DIGITS.create_decimal(part) for part in exponent.as_integer_ratio())
    near = Fraction(_DIGITS.exp(_DIGITS.divide(numerator, denominator)))
    return near * (1 - _ULP), near * (1 + _ULP)


@functools.lru_cache(maxsize=1024)
def randomised_response(epsilon: Fraction) -> Fraction:
    """The largest probability `p` on a grid of 2**-64 with `p/(1-p) <= e**epsilon`.

    It is `(1+t)/2` with `t = tanh(epsilon/2)`, rounded so that the loss never exceeds epsilon.
    """
    exponent = min(epsilon, LARGEST_EXPONENT)
    below, _ = exp_bounds(exponent)
    grid = 1 << RANDOMISATION_BITS
    complement = -(-grid // (1 + below))  # ceiling of grid * 1/(1 + e^epsilon)
    return max(1 - Fraction(complement, grid), Fraction(1, 2))


def log_above(ratio: Fraction) -> Fraction:
    """A number above the logarithm, within 1e-50 and a relative 1e-50 of it."""
    parts = (_DIGITS.create_decimal(part) for part in ratio.as_integer_ratio())
    near = Fraction(_DIGITS.ln(_DIGITS.divide(*parts)))
    return near + (abs(near) + 1) * _ULP


def rounded_up(number: Fraction, digits: int) -> Decimal:
    """So many digits of a number, no smaller than it: a printed bound stays a bound."""
    return _rounded(number, digits, ROUND_CEILING)


def _up(number: Fraction) -> Fraction:
    return Fraction(rounded_up(number, _STEP_DIGITS))


def _rounded(number: Fraction, digits: int, direction: str) -> Decimal:
    rounding = Context(prec=digits, rounding=direction, Emax=999_999, Emin=-999_999)
    return rounding.divide(*map(Decimal, number.as_integer_ratio()))


def shown(epsilon: Fraction) -> str:
    """Up to six digits, rounded up.

    >>> shown(Fraction(1)), shown(Fraction(1, 3))
    ('1', '0.333334')
    """
    return f"{rounded_up(epsilon, 6).normalize():f}"


@functools.lru_cache(maxsize=1024)
def unseen_loss(state: Fraction, release: Fraction, releases: int = 1) -> Fraction:
    """An upper bound of what so many releases cost if nobody sees the state, whatever the cells.

    Of one release it is `2 artanh(tanh(state/2) tanh(release/2))`: the release tells about the
    user's cell, and the cell tells about the user, each through noise of its own. Each further one
    costs more, as those before it have told of the cell. [docs/guarantees/windows.md]
    """
    most = releases * release
    if state + 2 * most > LARGEST_EXPONENT:
        return min(state, release) + most - release
    odds, each = exp_bounds(state)[1], exp_bounds(release)[1]
    grown, steps = Fraction(1), min(releases, _MOST_STEPS)
    for _ in range(steps):
        factor = _up((1 + odds * each) / (odds + each))
        grown, odds = _up(grown * factor), _up(odds * each * factor)
    loss = log_above(grown) + (releases - steps) * release
    return min(most, min(state, release) + most - release, loss)


def unseen_bits(present: Fraction, release: Fraction, releases: int) -> Fraction | None:
    """The same of bits that nobody flips, where it is smaller; None where that is not proved.

    It is `ln(1-p + p e**(R release)) - R ln(p + (1-p) e**release)`.

    Args:
        present: p, the probability that a present bit is 1.
        release: epsilon of each release.
        releases: R, how many there are.
    """
    odds = present / (1 - present)
    if releases * release > LARGEST_EXPONENT or exp_bounds(release)[1] > odds**2:
        return None
    most = 1 - present + present * exp_bounds(releases * release)[1]
    least = present + (1 - present) * exp_bounds(release)[0]
    return log_above(most) + releases * log_above(1 / least)


def unseen_count(fewest: Fraction, most: Fraction, release: Fraction) -> Fraction:
    """The same of one release of a number of cells that count, 1 each.

    Args:
        fewest: the lowest probability with which a cell counts, over all states of its users.
        most: the highest one.
        release: epsilon of the release.
    """
    if release > LARGEST_EXPONENT:
        return release
    each = exp_bounds(release)[1]
    ratios = [
        (1 - high + high * each) / (1 - low + low * each)
        for low, high in ((fewest, most), (1 - most, 1 - fewest))
    ]
    return log_above(max(ratios))


@functools.lru_cache(maxsize=1024)
def joint_loss(surest: Fraction, releases: Fraction) -> Fraction:
    """An upper bound, in 15 digits, of what releases of bits cost on top of the looks.

    It is `ln(1-p + p e**releases)`: a bit that looks did not show is the one that a release makes
    more likely with probability p at most. [docs/guarantees/releases.md]

    Args:
        surest: p, at least 1/2.
        releases: the sum of their epsilons.
    """
    if releases > LARGEST_EXPONENT:
        return releases
    mean = 1 - surest + surest * exp_bounds(releases)[1]
    return min(releases, Fraction(rounded_up(log_above(mean), _CHARGE_DIGITS)))


def joint_releases(surest: Fraction, cost: Fraction, releases: int) -> Fraction:
    """The epsilon of each release, for which all of them have a `joint_loss` of at most `cost`.

    It is rounded down to 7 digits, and all that `joint_loss` rounds up is taken off before.
    """
    spent = cost * (1 - Fraction(1, 10 ** (_CHARGE_DIGITS - 2)))
    total = spent
    if spent < LARGEST_EXPONENT - 1:  # the releases add up to at most ln 2 more
        odds = (exp_bounds(spent)[0] - 1 + surest) / surest
        total = max(spent, -log_above(1 / odds))
    return Fraction(_rounded(total / releases, _NOISE_DIGITS, ROUND_FLOOR))


Epsilon = float | int | str | Decimal | Fraction
"""A loss in nats; a float means the decimal it prints as, and a text may be a ratio like 1/3."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A differential privacy guarantee that survives one unannounced intrusion.

    Guarantee: for streams that differ by adding or removing all or some updates of one user, the
    joint law of (state at any one time, all releases) changes by a factor of at most `e**epsilon`,
    but for outcomes of probability `delta` in all.

    Args:
        epsilon: the add/remove loss, in nats.
        intrusions: how many announced intrusions it covers beside the unannounced one.
        groups: in how many groups a user may appear; None where there are no groups.
        delta: 0 for pure differential privacy.
        rho: where it is one of zero-concentrated differential privacy, its loss; `epsilon` and
            `delta` then follow from it.
        adjacency: what neighbouring streams differ in: a "user", an "event" or a "device".
        conditions: what it rests on beside that, each as half a sentence.
        looks: whether it covers one look at the state that nobody announces.
    """

    epsilon: Fraction
    intrusions: int = 0
    groups: int | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    adjacency: str = "user"
    conditions: tuple[str, ...] = ()
    looks: bool = True

    @property
    def replace(self) -> Fraction:
        """The loss when one user's updates are moved to another user: an add and a remove."""
        return 2 * self.epsilon

    @property
    def replace_delta(self) -> Fraction:
        """The delta that belongs to `replace`, rounded up: `(1 + e**epsilon) delta`."""
        return self.delta * (1 + exp_bounds(min(self.epsilon, LARGEST_EXPONENT))[1])

    @classmethod
    def of_all(cls, several: Iterable[Guarantee]) -> Guarantee:
        """What holds for all of several programs over one stream together: their losses add up.

        Raises:
            PlanError: they speak of different neighbours, of which no sum can be told.
        """
        each = list(several)
        first, rhos = each[0], [one.rho for one in each]
        if any(one.adjacency != first.adjacency for one in each):
            hidden = " and ".join(sorted({f"one {one.adjacency}" for one in each}))
            message = f"what hides {hidden} has no guarantee in common: count them in two programs"
            raise PlanError(message)
        known = [rho for rho in rhos if rho is not None]
        return cls(
            sum((one.epsilon for one in each), Fraction(0)),
            min(one.intrusions for one in each),
            min((one.groups for one in each if one.groups is not None), default=None),
            sum((one.delta for one in each), Fraction(0)),
            sum(known, Fraction(0)) if len(known) == len(each) else None,
            first.adjacency,
            tuple(dict.fromkeys(word for one in each for word in one.conditions)),
            all(one.looks for one in each),
        )

    def __str__(self) -> str:
        seen = "one unannounced look at the whole state"
        if self.intrusions:
            seen = f"{self.intrusions} announced intrusions and {seen} after the last of them"
        concentrated = "" if self.rho is None else f"rho {shown(self.rho)}, that is "
        replacing = _loss(self.replace, self.replace_delta).removeprefix("epsilon ")
        promise = (
            f"{concentrated}{_loss(self.epsilon, self.delta)} for adding or removing one "
            f"{self.adjacency}, {replacing} for replacing one by another; it covers every release "
            f"{f'and {seen}' if self.looks else 'where nobody sees the state'}"
        )
        if self.groups is not None and self.adjacency != "event":  # which is in one group
            groups = "1 group" if self.groups == 1 else f"{self.groups} groups"
            share = _loss(self.epsilon / self.groups, self.delta / self.groups)
            share = share.removeprefix("epsilon ")
            promise += (
                f", for a user in at most {groups}; each further group costs him {share} more"
            )
        return "; ".join([promise, *self.conditions])


def _loss(epsilon: Fraction, delta: Fraction) -> str:
    """A loss in words."""
    return f"epsilon {shown(epsilon)}" + (
        f" and delta {rounded_up(delta, 3).normalize():g}" if delta else ""
    )


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
                left = float(self._limit - self._spent)
                message = (
                    f"this needs epsilon {float(cost):g} and {left:g} is left; "
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
                f"the ledger has epsilon {float(self.available):g} available "
                f"and this statistic asks for {float(epsilon):g}"
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
            f"Ledger(total={float(self._total):g}, spent={float(self.spent):g}, "
            f"remaining={float(self.remaining):g})"
        )
