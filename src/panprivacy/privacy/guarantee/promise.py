"""Guarantees to a user, an event or a device, and their consequences.

Every surface that prints a loss reads it here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from panprivacy.errors import PlanError
from panprivacy.ground.validation import whole_number
from panprivacy.privacy.guarantee.exact import format_rounded_up, number_above
from panprivacy.privacy.guarantee.loss import PrivacyLoss

DAY_SECONDS: Final = 86_400
YEAR_SECONDS: Final = 365 * DAY_SECONDS
MOST_WINDOWS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A differential privacy guarantee that survives one unannounced intrusion.

    Guarantee: for streams that differ by adding or removing all or some updates of one user, let P
    and P' be the joint distributions of (state at any one time, all releases). For every set S of
    outcomes `P(S) <= e**epsilon P'(S) + delta`; see `PrivacyLoss`.

    Args:
        epsilon: the add/remove loss, in nats.
        intrusions: number of announced intrusions it covers besides the unannounced one.
        groups: maximum number of groups in which a user may appear; None without groups.
        delta: 0 for pure differential privacy.
        rho: loss under zero-concentrated differential privacy, if the guarantee is one; `epsilon`
            and `delta` then follow from it.
        adjacency: unit in which neighbouring streams differ: a "user", an "event" or a "device".
        conditions: additional conditions, each as half a sentence.
        looks: whether it covers one unannounced look at the state.
        unseen: the epsilon of a window whose state nobody sees; None for `epsilon`.
        crash: the largest epsilon that one crash adds, if the program resumes from an earlier
            state; see docs/guarantees/crashes.md.
        crash_again: the same for an additional crash, if no intrusion is announced; None for
            `crash`.
        events_per_user: how many events a user has at most, if what is hidden is one event; None
            if that is not said.
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
    crash_again: Fraction | None = None
    events_per_user: int | None = None

    @property
    def of_user(self) -> PrivacyLoss | None:
        """The loss of a user with all their events, by group privacy; None if that is not said."""
        if self.events_per_user is None:
            return None
        return self.loss.of_people(self.events_per_user)

    @property
    def loss(self) -> PrivacyLoss:
        """The add/remove loss."""
        return PrivacyLoss(self.epsilon, self.delta)

    @property
    def replaced(self) -> PrivacyLoss:
        """The loss if one user's updates are moved to another user: an add and a remove."""
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
        """The epsilon of a look at a window on top of the loss without one."""
        return self.epsilon - self.unseen_loss.epsilon

    def over(self, windows: int, *, seen: int | None = None) -> PrivacyLoss:
        """Return the loss of a user who is in several windows, with an intruder in some of them.

        An event is in one window only. [docs/guarantees/windows.md]

        Args:
            windows: number of windows that contain the user.
            seen: the number of these whose state somebody sees; None for one where the guarantee
                covers a look, and for none where it does not.

        Raises:
            PlanError: some are seen, and the guarantee covers no look.
        """
        count = whole_number(1, MOST_WINDOWS, windows=windows)
        open_ones = whole_number(0, count, seen=int(self.looks) if seen is None else seen)
        if open_ones and not self.looks:
            message = "this guarantee covers no look at the state, so seen must be 0"
            raise PlanError(message)
        if self.adjacency == "event":
            return self.loss
        return self.loss.times(open_ones) + self.unseen_loss.times(count - open_ones)

    def year(self, window_seconds: float) -> tuple[int, PrivacyLoss]:
        """Return the number of windows in a year, and the loss over them; see `over`."""
        windows = windows_in_a_year(window_seconds)
        return windows, self.over(windows)

    @property
    def additional_crash(self) -> Fraction:
        """The epsilon that each crash after the first adds, if no intrusion is announced."""
        return self.crash if self.crash_again is None else self.crash_again

    def says_of_year(self, window_seconds: float) -> str:
        """Return the loss over a year of such windows, as half a sentence."""
        windows, loss = self.year(window_seconds)
        if self.adjacency == "event":
            return f"an event is counted in one window: it loses {loss}, however many there are"
        each = f"a {self.adjacency} who is in all {windows:,} windows of a year"
        seen = "seen or not" if self.looks and self.unseen is None else self.says_of_look
        return f"{each}, {seen}, loses {loss}"

    @property
    def says_of_look(self) -> str:
        """The look that a loss over windows has in it, as half a sentence."""
        return "one of them seen" if self.looks else "where nobody sees the state"

    def crashed(self, crashes: int, *, announced: int | None = None) -> PrivacyLoss:
        """Return the loss over crashes after each of which an earlier state is resumed.

        An update that a crash loses may be counted once more after it, with its own delta. Each
        announced intrusion may let one more crash add as much as the first one.
        [docs/guarantees/crashes.md]

        Args:
            crashes: number of crashes.
            announced: number of intrusions announced in all; None for `intrusions`.
        """
        count = whole_number(0, MOST_WINDOWS, crashes=crashes)
        looks = self.intrusions if announced is None else announced
        most = min(count, 1 + whole_number(0, MOST_WINDOWS, announced=looks))
        more = most * self.crash + (count - most) * self.additional_crash
        return self.loss + PrivacyLoss(more, count * self.delta if self.crash else Fraction(0))

    def contributed(self, look: str = "a contribution is the look at its window") -> Guarantee:
        """Return the guarantee if each window is contributed: each contribution is an intrusion.

        Args:
            look: the condition that states it.
        """
        return replace(self, unseen=None).on_condition(look)

    def on_condition(self, *conditions: str) -> Guarantee:
        """Return the same guarantee under additional conditions."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def in_groups(self, per_user: int) -> Guarantee:
        """Return the guarantee of one such table per group, for a user of `per_user` groups."""
        each = self.loss.times(per_user)
        return replace(
            self,
            epsilon=each.epsilon,
            delta=each.delta,
            groups=per_user,
            unseen=None if self.unseen is None else per_user * self.unseen,
            crash=per_user * self.crash,
            crash_again=None if self.crash_again is None else per_user * self.crash_again,
        )

    def compared(self, cost: PrivacyLoss) -> Guarantee:
        """Return the guarantee with comparisons, which cost the same if nobody sees the state.

        [docs/guarantees/moves.md]
        """
        total = self.loss + cost
        unseen = None if self.unseen is None else self.unseen + cost.epsilon
        return replace(self, epsilon=total.epsilon, delta=total.delta, unseen=unseen)

    def document(self) -> dict[str, object]:
        """Return the guarantee for JSON; every bound is rounded up."""
        return {
            **self.loss.document(),
            "adjacency": self.adjacency,
            "conditions": list(self.conditions),
            "replace": self.replaced.document(),
            "unseen": number_above(self.unseen_loss.epsilon),
            "crash": number_above(self.crash),
            "crash_again": number_above(self.additional_crash),
            **({} if self.of_user is None else {"user": self.of_user.document()}),
        }

    @classmethod
    def of_all(cls, several: Iterable[Guarantee]) -> Guarantee:
        """Return the guarantee of several programs over one stream together: their losses add up.

        Raises:
            PlanError: their adjacencies differ, so there is no sum.
        """
        each = list(several)
        if len(each) == 1:
            return each[0]
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
            None
            if all(one.crash_again is None for one in each)
            else sum((one.additional_crash for one in each), Fraction(0)),
            min((one.events_per_user for one in each if one.events_per_user), default=None),
        )

    def says_of_crashes(self, digits: int = 6) -> str:
        """Return the loss that crashes add, as half a sentence; empty if they add nothing."""
        if not self.crash:
            return ""
        found = self._says_of_crashes(digits)
        return found if self.events_per_user is None else f"{found}, for each event of a user"

    def _says_of_crashes(self, digits: int) -> str:
        most = PrivacyLoss(self.crash, self.delta).text(digits)
        if self.additional_crash == self.crash:
            return f"each crash after which an earlier state goes on adds up to epsilon {most}"
        if not self.additional_crash and not self.intrusions:
            return (
                f"the first crash after which an earlier state goes on adds up to epsilon {most}, "
                "and further ones add nothing"
            )
        more = PrivacyLoss(self.additional_crash, self.delta).text(digits)
        return (
            f"the first crash after which an earlier state goes on adds up to epsilon {most}, and "
            f"each further one {more}, or as much as the first where intrusions are announced"
        )

    def __str__(self) -> str:
        seen = "one unannounced look at the whole state"
        if self.intrusions:
            announced = _counted(self.intrusions, "announced intrusion")
            seen = f"{announced} and {seen} after the last of them"
        concentrated = "" if self.rho is None else f"rho {format_rounded_up(self.rho)}, that is "
        promise = (
            f"{concentrated}{self.loss} for adding or removing one {self.adjacency}, "
            f"{self.replaced.text()} for replacing one by another; it covers every release "
            f"{f'and {seen}' if self.looks else 'where nobody sees the state'}"
        )
        if self.groups is not None and self.adjacency != "event":  # which is in one group
            further = self.loss.times(Fraction(1, self.groups))
            promise += f", for a user in at most {_counted(self.groups, 'group')}; "
            promise += f"each further group costs them {further.text()} more"
        if self.of_user is not None:
            events = _counted(self.events_per_user or 1, "event")
            promise += f"; a user of up to {events} in all loses {self.of_user}"
        crashes = self.says_of_crashes()
        return "; ".join([promise, *([crashes] if crashes else []), *self.conditions])


def loss_over(
    windows: Sequence[Guarantee], together: Iterable[Iterable[int]] | None = None
) -> PrivacyLoss:
    """Return the loss of a user who is in windows of different guarantees, with one look.

    It is that of the windows whose look costs most, and of the others without a look.
    [docs/guarantees/windows.md]

    Args:
        windows: the guarantee of each, at least one.
        together: places of windows that one look sees together; None for one window at a time.
    """
    each = [one.unannounced for one in windows]
    seen = ([place] for place in range(len(windows))) if together is None else together
    dearest = max(sum((each[place] for place in some), Fraction(0)) for some in seen)
    return PrivacyLoss.total(one.unseen_loss for one in windows) + PrivacyLoss(dearest)


def windows_in_a_year(window_seconds: float) -> int:
    """Return the number of windows that begin in 365 days, rounded up."""
    return max(-int(-YEAR_SECONDS // window_seconds), 1)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
