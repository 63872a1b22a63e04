"""What every table statistic does: take in batches, release, survive an intrusion.

A statistic is three things: a public plan, a state (all that survives between two updates), and
the functions here that join them. A subclass says which cell a user maps to, which deltas make
sense, and what the noised counts mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy._validate import proportion, whole_number
from panprivacy.addressing import Slots
from panprivacy.cells.protocol import Deltas, Table
from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import BudgetError, InputError, LostReleaseError, PanPrivacyError
from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.ids import Ids, read_deltas, read_ids
from panprivacy.noise import wipe
from panprivacy.statistics.deltas import joined_deltas
from panprivacy.statistics.header import Header, public_text, unpacked
from panprivacy.statistics.plans import CountPlan, Plan, instance
from panprivacy.statistics.release import Release


@dataclass(slots=True)
class State:
    """All that survives between two updates; all that an intruder finds beside the plan.

    Args:
        key: addressing key.
        table: the cells.
        releases: number of releases made, which is public.
        intrusions: number of intrusions announced, which is public.
    """

    key: bytes
    table: Table
    releases: int = 0
    intrusions: int = 0


P = TypeVar("P", bound=Plan)
C = TypeVar("C", bound=CountPlan)


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that a statistic has checked and can count; they hold ids.

    Args:
        plan: of the statistic that has checked them.
        ids: of the users.
        deltas: int64, one for each id; None for 1 each.
    """

    plan: Plan
    ids: list[Ids]
    deltas: Deltas | None


class Statistic(ABC, Generic[P]):
    """The base of all table statistics; see the subclasses.

    An object belongs to one thread at a time; several threads need a lock around it.
    """

    __slots__ = ("_account", "_addressing", "_coins", "_kept", "_ledger", "_plan")

    def __init__(self, plan: P, coins: Coins | None, ledger: Ledger | None) -> None:
        asked = plan.request
        self._plan = plan
        self._coins = SystemCoins() if coins is None else coins
        self._ledger = instance(Ledger, ledger=ledger) or Ledger(asked.epsilon)
        self._ledger.check(asked.epsilon)
        key = self._coins.key(plan.key_bytes) if plan.key_bytes else b""
        self._kept: State | None = State(key, plan.table.born(self._coins))
        self._addressing = plan.address(key)
        # Last, so that a table that does not fit in memory costs a shared ledger nothing.
        self._account = self._ledger.open(asked.epsilon)
        self._account.spend(asked.looks * plan.split.budget.state)

    @abstractmethod
    def _check_deltas(self, deltas: Deltas) -> None:
        """Raise `InputError` for a delta that this statistic cannot count."""

    @abstractmethod
    def release(self, *_arguments: Any, **_named: Any) -> Any:
        """Publish the answer; the budget is spent first."""

    @property
    def plan(self) -> P:
        """The public parameters: sizes, the split of epsilon, the predicted error."""
        return self._plan

    @property
    def ledger(self) -> Ledger:
        """The budget this statistic draws on; shared if it was given one."""
        return self._ledger

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user of the stream."""
        return Guarantee(self._plan.request.epsilon, self._plan.request.intrusions)

    @property
    def unseen(self) -> Fraction:
        """The loss if nobody ever sees the state; see `Windowed`."""
        asked = self._plan.request
        return self._plan.split.budget.unseen(releases=asked.releases, intrusions=asked.intrusions)

    @property
    def releases(self) -> int:
        """How many releases have been made."""
        return self._state.releases

    @property
    def release_epsilon(self) -> Fraction:
        """What a release costs, in nats."""
        return self._plan.split.budget.release

    @property
    def _state(self) -> State:
        if self._kept is None:
            message = "the state was wiped; make a new statistic"
            raise PanPrivacyError(message)
        return self._kept

    @property
    def state_bytes(self) -> int:
        """The size of `state()`, which no stream changes."""
        return self._header().state_bytes

    def update(self, users: object, deltas: object = None) -> None:
        """Take in one batch of events; an error changes nothing.

        Args:
            users: user ids, one for each event: a NumPy array, Arrow array, pandas or Polars
                series, or sequence of whole numbers, byte strings or texts.
            deltas: one whole number for each event; None for 1 each.

        Raises:
            InputError: a null, a wrong type, a delta that cannot be counted, or an id outside a
                declared universe. The message names the row, never the id.
        """
        self.apply(self.prepare(users, deltas))

    def prepare(self, users: object, deltas: object = None) -> Batch:
        """Check one batch of events without counting it, so that several statistics can take it.

        Args:
            users: as for `update`.
            deltas: as for `update`.

        Returns:
            What `apply` takes. It holds ids: use it at once.

        Raises:
            InputError: as for `update`.
        """
        ids = read_ids(users)
        self._addressing.check(ids)
        checked = None if deltas is None else read_deltas(deltas, sum(map(len, ids)))
        if checked is not None:
            self._check_deltas(checked)
        return Batch(self._plan, ids, checked)

    def apply(self, *batches: Batch) -> None:
        """Count what this statistic has checked, or one of the same plan, in one pass.

        Args:
            batches: what `prepare` gave, in order.

        Raises:
            InputError: one was checked for another plan. Nothing was counted.
        """
        if any(one.plan is not self._plan and one.plan != self._plan for one in batches):
            message = "this batch was checked for another plan"  # its cells may not exist here
            raise InputError(message)
        ids = [chunk for batch in batches for chunk in batch.ids]
        state, slots = self._state, self._addressing.slots(ids)
        if self._plan.key_bytes:  # without a key the slots are the caller's ids
            slots = _wiped(slots)
        deltas = joined_deltas([(sum(map(len, one.ids)), one.deltas) for one in batches])
        self._plan.table.update(state.table, slots, deltas, state.intrusions, self._coins)

    def forget(self) -> None:
        """Wipe the state: nothing can be counted, released or seen any more. May be repeated."""
        if self._kept is not None:
            wipe(self._kept.table)
            self._kept = None

    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything.

        Args:
            asked: what `release` is to be given.
        """
        self._check_asked(**asked)
        self._check_left()

    @abstractmethod
    def _check_asked(self, *_arguments: Any, **_asked: Any) -> None:
        """Raise `PlanError` for what cannot be asked."""

    def _check_left(self) -> None:
        """Raise `BudgetError` if all planned releases have been made."""
        if self._state.releases >= self._plan.request.releases:
            message = (
                f"all {self._plan.request.releases} planned releases have been made; "
                "plan for more with releases= when the statistic is made"
            )
            raise BudgetError(message)

    def _spend(self) -> Fraction:
        """Pay for a release; the coins and the table come after that."""
        self._check_left()
        epsilon = self._plan.split.budget.release
        self._account.spend(epsilon)
        return epsilon

    def _publish(self, sums: NDArray[np.int64], scales: Sequence[Fraction]) -> NDArray[np.int64]:
        """Add output noise to sums that are paid for.

        Args:
            sums: of cells; wiped, because with the public counts they are an old state.
            scales: of the noise on each sum, or one for all of them.
        """
        try:
            if len(scales) == 1:
                noise = self._coins.discrete_laplace(scales[0], len(sums))
            else:
                drawn = [self._coins.discrete_laplace(scale, 1) for scale in scales]
                noise = np.concatenate(drawn)
                wipe(*drawn)
            counts = sums + noise
            wipe(noise)
        finally:
            wipe(sums)
        self._state.releases += 1
        return counts

    def announce_intrusion(self) -> None:
        """Re-randomise the state after somebody has seen it, so that it may be seen once more.

        Raises:
            BudgetError: no further announced intrusion was planned. Nothing was changed.
        """
        if self._state.intrusions >= self._plan.request.intrusions:
            message = (
                f"{self._plan.request.intrusions} announced intrusions were planned for; "
                "plan for more with intrusions= when the statistic is made"
            )
            raise BudgetError(message)
        self._plan.table.rerandomise(self._state.table, self._coins)
        self._state.intrusions += 1

    def state(self) -> bytes:
        """Exactly what an intruder would get; reading it changes nothing.

        Whoever reads it has intruded: only one unannounced look is covered. Announce this one
        before the state may be seen again.
        """
        return self._header().packed() + self._state.key + self._state.table.tobytes()

    def resume(self, state: bytes, *, released: int = 0) -> None:
        """Go on from an earlier state of the same plan, in place of this statistic's own.

        An old state beside a newer one is a second look, so only a sealed checkpoint may keep one
        (docs/threat-model.md). What the releases and intrusions of that state cost is spent here.

        Args:
            state: what `state()` returned. Wipe it afterwards if it can be wiped.
            released: how many releases have left in all, if some did after the state was taken.

        Raises:
            InputError: it is damaged, or of another statistic, plan or version. Nothing changed.
            PlanError: more releases have left than were planned.
            PanPrivacyError: this statistic has made releases or announced intrusions of its own.
        """
        earlier, kept = self._earlier(state, released), self._state
        for _ in range(earlier.releases):
            self._account.spend(self._plan.split.budget.release)
        kept.table[:] = earlier.table
        kept.key, kept.releases, kept.intrusions = earlier.key, earlier.releases, earlier.intrusions
        self._addressing = self._plan.address(kept.key)

    def check_state(self, state: bytes, *, released: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        self._earlier(state, released)

    def _earlier(self, state: bytes, released: int) -> State:
        """An earlier state, once it is checked; its table is a part of the bytes."""
        if self._state.releases or self._state.intrusions:
            message = "only a new statistic can go on from an earlier state"
            raise PanPrivacyError(message)
        header, body = unpacked(state, self._header())
        asked, key_bytes = self._plan.request, len(self._state.key)
        table = np.frombuffer(body, self._state.table.dtype, offset=key_bytes)
        releases = max(header.releases, whole_number(0, asked.releases, released=released))
        possible = releases <= asked.releases and header.intrusions <= asked.intrusions
        if not possible or not self._plan.table.is_table(table):
            message = "the state is damaged: no such state can come about"
            raise InputError(message)
        return State(bytes(body[:key_bytes]), table, releases, header.intrusions)

    def _header(self) -> Header:
        """The public part of the state; its length depends on the plan alone."""
        name, budget = type(self).__name__, self._plan.split.budget
        text = public_text(name, self._plan, budget, self._ledger.total)
        return Header(text, self._body_bytes, self._state.releases, self._state.intrusions)

    @property
    def _body_bytes(self) -> int:
        return len(self._state.key) + self._state.table.nbytes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} epsilon={float(self._plan.request.epsilon):g}>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        message = (
            f"a {type(self).__name__} cannot be pickled or copied: a plain copy of the state is a "
            "second intrusion; only a sealed checkpoint, which this machine cannot open, is safe"
        )
        raise TypeError(message)


class CountStatistic(Statistic[C]):
    """A statistic with one answer, which a model reads off the number of ones."""

    __slots__ = ()

    def _check_asked(self, *, confidence: float = 0.95) -> None:
        proportion(confidence=confidence)

    def release(self, *, confidence: float = 0.95) -> Release:
        """Publish the answer; the budget is spent first.

        Args:
            confidence: probability, 0 to 1, that the interval covers the truth.

        Returns:
            The answer with its interval, a function of the noised counts and the plan alone.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
        """
        level = proportion(confidence=confidence)
        epsilon = self._spend()
        state, plan = self._state, self._plan
        sums = plan.table.group_sums(state.table, plan.groups, state.intrusions)
        counts = self._publish(sums, [self._sensitivity / epsilon])
        model = plan.model(state.intrusions)
        value, low, high = model.answer(counts, level)
        return Release(value, low, high, level, float(epsilon), tuple(counts.tolist()))

    @property
    def _sensitivity(self) -> int:
        """By how much a user may move a count, all counts together."""
        return 1


def _wiped(pieces: Iterator[Slots]) -> Iterator[Slots]:
    """Each piece, zeroed after its use: it tells which cells were touched."""
    for piece in pieces:
        yield piece
        wipe(piece)


def unless_lost(release: Callable[..., Any], *arguments: Any, **asked: Any) -> Any:
    """What a release gives, or None if it is lost: what others give is paid for as well."""
    with suppress(LostReleaseError):
        return release(*arguments, **asked)
    return None
