"""What is promised to a user, an event or a device, and what follows from it.

Every surface that prints a loss reads it here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from panprivacy._validate import whole_number
from panprivacy.errors import PlanError
from panprivacy.guarantee.exact import number_above, shown
from panprivacy.guarantee.loss import PrivacyLoss

YEAR_SECONDS: Final = 365 * 86_400
MOST_WINDOWS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A differential privacy guarantee that survives one unannounced intrusion.

    Guarantee: for streams that differ by adding or removing all or some updates of one user, let P
    and P' be the joint laws of (state at any one time, all releases). For every set S of outcomes
    `P(S) <= e**epsilon P'(S) + delta`; see `PrivacyLoss`.

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
        unseen: the epsilon of a window whose state nobody sees; None for `epsilon`.
        crash: the largest epsilon that one crash adds, if an earlier state goes on after it; see
            docs/guarantees/crashes.md.
    """

    epsilon: Fraction
    intrusions: int = 0
    groups: int | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    adjacency: str = "user"
    conditions: tuple[str, ...] = ()
    looks: bool = True
    unseen: Fraction | None = None
    crash: Fraction = Fraction(0)

    @property
    def loss(self) -> PrivacyLoss:
        """The add/remove loss."""
        return PrivacyLoss(self.epsilon, self.delta)

    @property
    def replaced(self) -> PrivacyLoss:
        """The loss when one user's updates are moved to another user: an add and a remove."""
        return self.loss.of_people(2)

    @property
    def replace(self) -> Fraction:
        """The epsilon of `replaced`."""
        return self.replaced.epsilon

    @property
    def replace_delta(self) -> Fraction:
        """The delta of `replaced`, rounded up: `(1 + e**epsilon) delta`."""
        return self.replaced.delta

    @property
    def unseen_loss(self) -> PrivacyLoss:
        """The loss in a window whose state nobody sees."""
        return PrivacyLoss(self.epsilon if self.unseen is None else self.unseen, self.delta)

    @property
    def unannounced(self) -> Fraction:
        """The epsilon that a look at a window costs on top of what it loses without one."""
        return self.epsilon - self.unseen_loss.epsilon

    def over(self, windows: int, *, seen: int = 1) -> PrivacyLoss:
        """Return the loss of a user who is in several windows, with an intruder in some of them.

        An event is in one window only. [docs/guarantees/windows.md]

        Args:
            windows: how many the user is in.
            seen: the number of these whose state somebody sees.
        """
        count = whole_number(1, MOST_WINDOWS, windows=windows)
        open_ones = whole_number(0, count, seen=seen)
        if self.adjacency == "event":
            return self.loss
        return self.loss.times(open_ones) + self.unseen_loss.times(count - open_ones)

    def year(self, window_seconds: float) -> tuple[int, PrivacyLoss]:
        """Return the number of windows in a year, and the loss over them if one is seen."""
        windows = windows_in_a_year(window_seconds)
        return windows, self.over(windows)

    def of_groups(self, count: int) -> PrivacyLoss:
        """Return the loss of a user who is in `count` of the groups that are counted apart."""
        return self.loss.times(Fraction(count, self.groups or 1))

    def crashed(self, crashes: int) -> PrivacyLoss:
        """Return the loss over crashes after each of which an earlier state goes on.

        An update that a crash loses may be counted once more after it, with a delta of its own.
        """
        count = whole_number(0, MOST_WINDOWS, crashes=crashes)
        each = PrivacyLoss(self.crash, self.delta if self.crash else Fraction(0))
        return self.loss + each.times(count)

    def contributed(self, look: str = "a contribution is the look at its window") -> Guarantee:
        """Return the guarantee where each window is handed out: each one is an intrusion.

        Args:
            look: the condition that says so.
        """
        return replace(self, unseen=None).on_condition(look)

    def on_condition(self, *conditions: str) -> Guarantee:
        """Return the same guarantee under further conditions."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def in_groups(self, per_user: int) -> Guarantee:
        """Return the guarantee of one such table a group, for a user of `per_user` groups."""
        each = self.loss.times(per_user)
        return replace(
            self,
            epsilon=each.epsilon,
            delta=each.delta,
            groups=per_user,
            unseen=None if self.unseen is None else per_user * self.unseen,
            crash=per_user * self.crash,
        )

    def compared(self, cost: PrivacyLoss) -> Guarantee:
        """Return the guarantee with comparisons, which cost as much if nobody sees the state.

        [docs/guarantees/moves.md]
        """
        total = self.loss + cost
        unseen = None if self.unseen is None else self.unseen + cost.epsilon
        return replace(self, epsilon=total.epsilon, delta=total.delta, unseen=unseen)

    def document(self) -> dict[str, object]:
        """Return what it says for JSON; every bound is rounded up."""
        return {
            **self.loss.document(),
            "adjacency": self.adjacency,
            "conditions": list(self.conditions),
            "replace": self.replaced.document(),
            "unseen": number_above(self.unseen_loss.epsilon),
            "crash": number_above(self.crash),
        }

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
        total = PrivacyLoss.total(one.loss for one in each)
        unseen = PrivacyLoss.total(one.unseen_loss for one in each)
        return cls(
            total.epsilon,
            min(one.intrusions for one in each),
            min((one.groups for one in each if one.groups is not None), default=None),
            total.delta,
            sum(known, Fraction(0)) if len(known) == len(each) else None,
            first.adjacency,
            tuple(dict.fromkeys(word for one in each for word in one.conditions)),
            all(one.looks for one in each),
            None if all(one.unseen is None for one in each) else unseen.epsilon,
            sum((one.crash for one in each), Fraction(0)),
        )

    def __str__(self) -> str:
        seen = "one unannounced look at the whole state"
        if self.intrusions:
            seen = f"{self.intrusions} announced intrusions and {seen} after the last of them"
        concentrated = "" if self.rho is None else f"rho {shown(self.rho)}, that is "
        promise = (
            f"{concentrated}{self.loss} for adding or removing one {self.adjacency}, "
            f"{_numbers(self.replaced)} for replacing one by another; it covers every release "
            f"{f'and {seen}' if self.looks else 'where nobody sees the state'}"
        )
        if self.groups is not None and self.adjacency != "event":  # which is in one group
            groups = "1 group" if self.groups == 1 else f"{self.groups} groups"
            promise += f", for a user in at most {groups}; each further group costs him "
            promise += f"{_numbers(self.of_groups(1))} more"
        if self.crash:
            more = _numbers(PrivacyLoss(self.crash, self.delta))
            promise += f"; each crash after which an earlier state goes on adds up to {more}"
        return "; ".join([promise, *self.conditions])


def windows_in_a_year(window_seconds: float) -> int:
    """Return the number of windows that begin in 365 days, rounded up."""
    return max(-int(-YEAR_SECONDS // window_seconds), 1)


def _numbers(loss: PrivacyLoss) -> str:
    """A loss without the word epsilon."""
    return str(loss).removeprefix("epsilon ")
