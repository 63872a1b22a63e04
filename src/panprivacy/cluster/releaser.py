"""The releases of one stream of a cluster: cut, paid for, gathered, merged, published.

A release begins with a cut. The cut is recorded, each queue gets a mark there, the release is paid
for, and each shard contributes what it has counted before its mark. All slices are merged, and
noise is added once. The shards store their contributions until the answer is in the store: so
after any crash the same release is made, once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Final

import pyrage

from panprivacy.cluster.announcing import PATIENCE, Announcing, has_not_contributed, named
from panprivacy.cluster.asking import Asking
from panprivacy.cluster.cuts import WindowCuts
from panprivacy.cluster.marks import WindowRelease
from panprivacy.cluster.queues import Position
from panprivacy.cluster.record import Cut, RecordFile, StreamRecord, utc
from panprivacy.cluster.routing import Router
from panprivacy.cluster.shards import Shards
from panprivacy.cluster.vault import ShardReport
from panprivacy.errors import BudgetError, PlanError
from panprivacy.ground.sealing import unseal_with
from panprivacy.intake.programs.counting import Counting
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.outbox import settled
from panprivacy.service.outgoing.payment import Payment, entries
from panprivacy.service.outgoing.records import Moment, Published, SketchRow, StoreError
from panprivacy.service.outgoing.results import published
from panprivacy.service.outgoing.sketches import sketch_rows
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Announced
from panprivacy.statistics.contribution import read_parts
from panprivacy.statistics.merging import Merger

_USUAL: Final = 15.0
"""Seconds after which a release that waits for a shard is reported."""


@dataclass(frozen=True, slots=True)
class _Costs:
    """Privacy loss of a release, by its number."""

    planned: int
    state_epsilon: Fraction
    release_epsilon: Fraction

    @classmethod
    def of(cls, plan: Counting, number: int) -> _Costs:
        """Return the costs of a release of statistics that are counted elsewhere."""
        return cls(
            plan.internals.releasing.planned,
            plan.internals.releasing.state_epsilon,
            plan.internals.releasing.of_release(number),
        )


class _Gathered:
    """Contributions of the shards to one release, sealed to a key that lives as long as this.

    Args:
        announced: number of intrusions that each shard knows of when it contributes.
    """

    def __init__(self, announced: int) -> None:
        self.announced = announced
        key = pyrage.x25519.Identity.generate()
        self._identity, self.recipient = str(key), str(key.to_public())
        self.sealed: dict[int, bytes] = {}

    def opened(self, shard: int) -> bytes:
        """Return the contribution of a shard, unsealed."""
        return unseal_with(self.sealed[shard], self._identity)


class _Slices:
    """The slices of one stream, read as one table.

    Args:
        name: the name of the stream.
        config: the configuration of the stream.
        router: the router of the shards.
        plan: statistics as the shards count them.
        clock: seconds since 1970 in UTC.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        router: Router,
        plan: Counting,
        clock: Callable[[], float],
    ) -> None:
        self._name, self._config, self._router = name, config, router
        self._plan, self._clock = plan, clock

    def merged(
        self, cut: Cut, gathered: _Gathered, absent: Sequence[int]
    ) -> tuple[list[Published], list[SketchRow]]:
        """Return the answers of merged slices, and the tables that they publish together.

        Slices of absent shards have no users.
        """
        contributions = {shard: gathered.opened(shard) for shard in gathered.sealed}
        first = next(iter(contributions.values()), None)
        announced = 0 if first is None else read_parts(first)[0].header.intrusions
        for shard in absent:
            contributions[shard] = self._of_nobody(shard, announced)
        merger = Merger(list(contributions.values()))
        answers = merger.release(self._config.confidence, SystemCoins())
        complete = cut.complete and merger.complete and not absent
        moment = Moment(
            self._name,
            utc(cut.window),
            utc(max(cut.until, cut.window)),
            cut.number,
            complete,
            utc(self._clock()),
        )
        rows = published(answers, self._plan, self._config.confidence, moment)
        tables = sketch_rows(answers, moment)
        if not absent:
            return rows, tables
        without = named(absent, self._router.shards)
        note = f"not complete: without {without} and its users, so it is too small"
        rows = [
            replace(row, note=note if row.note is None else f"{note}; {row.note}") for row in rows
        ]
        return rows, tables

    def _of_nobody(self, shard: int, announced: int) -> bytes:
        """Return the contribution of a shard without users."""
        key = self._config.table_key(self._router.key)
        stand_in = self._config.make_counting(self._router.slice(shard), key)
        for _ in range(announced):
            stand_in.announce_intrusion()
        contributed = stand_in.contribute()
        stand_in.forget()
        return contributed


class Releaser:
    """Maker of the releases of one stream; thread-safe, but only one thread calls `advance`.

    Guarantee: a release is in the ledger before a shard contributes to it, and is published once.
    [docs/guarantees/cluster.md, tests/cluster/test_releaser.py]

    Args:
        name: the name of the stream.
        config: the configuration of the stream.
        record: the record of the coordinator.
        store: the store of releases and ledger.
        shards: the shards.
        router: the router of the shards.
        mark: marks the cut of a release in each queue, and returns its positions; see `put_marks`.
        patience: seconds that a release waits for a shard.
        broken: returns when the process was last suspended, or its clock was last set.
        clock: seconds since 1970 in UTC.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        record: RecordFile,
        store: ReleaseStore,
        shards: Shards,
        router: Router,
        mark: Callable[[WindowRelease], Sequence[Position]],
        *,
        patience: float,
        broken: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.config = name, config
        self._file, self._store, self._router = record, store, router
        self._patience, self._clock = patience, clock
        self._cuts = WindowCuts(
            name, config, record, router.shards, mark, broken=broken, clock=clock
        )
        self._plan = config.make_counting(router.slice(0))
        self._slices = _Slices(name, config, router, self._plan, clock)
        self._payment = Payment(name, store, self._plan.guarantee)
        if self._own.paid:
            self._payment.check(bytes.fromhex(self._own.paid))
            self._payment.unpack(bytes.fromhex(self._own.paid))
        self._gathered: dict[tuple[float, int], _Gathered] = {}
        self._nobody = str(pyrage.x25519.Identity.generate().to_public())
        self._missing: frozenset[int] = frozenset()
        self._made = threading.Condition()
        self._asking = Asking(name, shards)
        self._announcing = Announcing(
            name, config, record, store, self._asking, router.shards, self._made, clock
        )

    @property
    def began(self) -> datetime:
        """Start of the counting of the current window."""
        return utc(self._own.window)

    @property
    def ends(self) -> datetime:
        """End of the current window."""
        return utc(self._own.ends)

    @property
    def made(self) -> int:
        """Number of releases of the current window that were begun."""
        return self._own.number - 1

    @property
    def through(self) -> Sequence[Position]:
        """Positions of the last cut; empty if that was not made by this process."""
        return self._cuts.through

    @property
    def missing(self) -> frozenset[int]:
        """Shards for which a release waits longer than usual."""
        return self._missing

    @property
    def busy(self) -> bool:
        """Whether a release is in progress."""
        return bool(self._own.cuts)

    def begin(self) -> None:
        """Start the intake: a window that began before is incomplete."""
        self._cuts.begin()

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: some of its events were not counted."""
        self._cuts.mark_incomplete()

    def deadline(self) -> float:
        """Return the time at which something is due, in seconds since 1970."""
        return min(self._own.ends, self._cuts.scheduled())

    def announced(self) -> int:
        """Return the number of intrusions announced to the current window.

        Raises:
            StoreError: the store cannot be read now.
        """
        return self._announcing.total()

    def announce(self, key: bytes) -> Announced:
        """Announce to the current window that somebody has seen the memory; see `Announcing`.

        Raises:
            BudgetError: no announced intrusion is left. Nothing was changed.
            StoreError: call again with the same key. If it could be stored, it took effect.
        """
        return self._announcing.announce(key)

    def advance(self, report: Mapping[int, ShardReport]) -> None:
        """Do what is due, as far as possible now.

        Args:
            report: the last report of each shard about this stream, for those that have reported.

        Raises:
            OSError: the record cannot be written; try again.
            StoreError: the store cannot be used; try again.
            BrokerError: the queues cannot be marked; try again.
        """
        self._announcing.report = report
        self._cuts.make_due()
        self._file.write()  # no queue is marked for a cut that is not on the disk
        self._cuts.mark()
        self._announcing.announce_again()
        waits: set[int] = set()
        behind: set[int] = set()
        for cut in list(self._own.cuts):
            if not cut.through or (not cut.over and not self._make(cut, waits)):
                break
            self._settle(cut, behind)
            behind.update(cut.held)
        self._missing = frozenset(waits)

    def release(self) -> None:
        """Make one release now, and wait for it.

        Raises:
            PlanError: the stream releases on a clock.
            BudgetError: only the release at the end of the window is left.
            StoreError: a shard or the store does not answer: the release is made when they do.
        """
        if self.config.every_seconds is not None:
            message = f"stream {self.name} releases on a clock, every {self.config.every}"
            raise PlanError(message)
        with self._file.changing():
            if self._cuts.left <= 1:
                message = "no release is left but that of the end of the window; "
                message += "plan for more, such as releases = 2, in the configuration"
                raise BudgetError(message)
            name = self._cuts.make(self._clock()).name
        with self._made:
            done = self._made.wait_for(lambda: self._is_over(name), PATIENCE)
        if not done:
            message = "the release waits for a shard, and is published when that has contributed"
            raise StoreError(message)

    @property
    def _own(self) -> StreamRecord:
        return self._cuts.own

    def _make(self, cut: Cut, waits: set[int]) -> bool:
        """Continue a release, and return whether it is over, so that the next one can begin."""
        paid = self._pay(cut)
        if cut.answers is None and not self._answer(cut, waits, paid=paid):
            return False
        if cut.answers is None or not self._published(cut):
            reason = "its line is in the ledger already, by another service"
            JOURNAL.error(Event.answer_lost, stream=self.name, reason=reason)
        with self._file.changing(), self._made:
            cut.over, cut.answers, cut.tables = True, None, []
            self._made.notify_all()
        return True

    def _published(self, cut: Cut) -> bool:
        """Publish the answers beside their line; return False if another service has the line."""
        costs = _Costs.of(self._plan, cut.number)
        priced = costs.state_epsilon, costs.release_epsilon
        named = self.name, utc(cut.window), utc(cut.ends), cut.number, cut.payer
        paid = settled(self._payment, entries(*named, priced), cut.answers or (), cut.tables)
        if self.config.kept_for is not None:
            self._store.discard_sketches(self.name, utc(self._clock()) - self.config.kept_for)
        return paid

    def _answer(self, cut: Cut, waits: set[int], *, paid: bool) -> bool:
        """Gather, and store the answers on disk before anybody sees them: noise is drawn once."""
        if cut.name not in self._gathered:
            self._gathered[cut.name] = _Gathered(self._announced_to(cut))
        gathered = self._gathered[cut.name]
        late = self._cuts.late(cut)
        for shard in range(self._router.shards):
            if shard not in gathered.sealed:
                self._gather(cut, shard, gathered)
        absent = [one for one in range(self._router.shards) if one not in gathered.sealed]
        if late > _USUAL:
            waits.update(absent)
        if absent and late <= self._patience:
            return False
        answers, tables = self._slices.merged(cut, gathered, absent) if paid else (None, [])
        del self._gathered[cut.name]
        with self._file.changing():
            cut.answers, cut.tables = answers, tables
        return True

    def _pay(self, cut: Cut) -> bool:
        """Write the release to the ledger; return False if another payer has that line."""
        began, ends = utc(cut.window), utc(cut.ends)
        costs = _Costs.of(self._plan, cut.number)
        paid = self._payment.make(began, ends, costs, cut.number, cut.payer)
        packed = self._payment.packed().hex()
        if paid and packed != self._own.paid:
            with self._file.changing():
                self._own.paid = packed
        return paid

    def _gather(self, cut: Cut, shard: int, gathered: _Gathered) -> None:
        """Call a shard for its contribution, or store the one it has returned."""
        asked = self._ask(cut, shard, gathered.recipient, gathered.announced)
        if asked is not None and asked.done() and asked.exception() is None:
            gathered.sealed[shard] = asked.result()

    def _ask(self, cut: Cut, shard: int, recipient: str, announced: int) -> Future[bytes] | None:
        through = cut.position(shard)
        wanted = cut.window, cut.number, through, cut.last, cut.next_start, recipient, announced
        return self._asking.once((cut.name, shard), "contribute", *wanted)

    def _announced_to(self, cut: Cut) -> int:
        """Return the number of intrusions announced before a cut."""
        if cut.announced is not None:
            return cut.announced
        return self._store.announced(self.name, utc(cut.window)) if self.config.intrusions else 0

    def _settle(self, cut: Cut, behind: AbstractSet[int]) -> None:
        """Make each shard forget its contribution; one that was missing contributes first.

        Args:
            cut: the cut of a release that is over.
            behind: shards that have not forgotten an earlier release, and handle this one later.
        """
        report = self._announcing.report
        held = [
            one for one in cut.held if one in behind or not _has_forgotten(cut, report.get(one))
        ]
        for shard in held:
            known = None if shard in behind else report.get(shard)
            if known is not None and has_not_contributed(cut, known):
                self._ask(cut, shard, self._nobody, self._announced_to(cut))
            elif known is not None:
                self._asking.again((cut.name, shard), "settled", *cut.name)
        if held != cut.held:
            with self._file.changing(), self._made:
                cut.held = held
                if not held:
                    self._own.cuts.remove(cut)
                    self._made.notify_all()
            for shard in range(self._router.shards):
                if shard not in held:
                    self._asking.forget((cut.name, shard))

    def _is_over(self, name: tuple[float, int]) -> bool:
        return all(cut.over for cut in self._own.cuts if cut.name == name)


def _has_forgotten(cut: Cut, report: ShardReport | None) -> bool:
    """Return whether the state in the vault is after a release, and contains nothing of it."""
    if report is None or cut.name in report["pending"]:
        return False
    return report["window"] != cut.window or (not cut.last and report["released"] >= cut.number)
