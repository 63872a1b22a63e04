"""A stream of a cluster without Ray: its coordinator, shards that may be away, and a store."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from panprivacy.cluster import announcing
from panprivacy.cluster import releaser as releasers
from panprivacy.cluster.record import ClusterRecord, RecordFile, StreamRecord
from panprivacy.cluster.releaser import Releaser
from panprivacy.cluster.shard import ShardStream
from panprivacy.errors import PanPrivacyError
from panprivacy.ground.sealing import seal
from panprivacy.service.outgoing.records import StoreError
from tests.cluster.shards import KEY, at, planned, queue, sealed
from tests.service.doubles import HOUR, START, Crash
from tests.service.doubles import Store as FailingStore

PATIENCE = 600.0


class Store(FailingStore):
    """One that also fails around announcements."""

    def announce(self, line):
        self._due("before announce")
        super().announce(line)
        self._due("after announce")


class Shards:
    """Shards in this process, of which some are away, with what the vault would have of them."""

    def __init__(self, config, began, shards=2):
        self.all = [ShardStream(queue(one, shards), config, _slice(one, shards), began)
                    for one in range(shards)]  # fmt: skip
        self.away, self.log, self.sequence = set(), [], 0
        self.marks, self.broken = [], None

    def send(self, users):
        """Have the shards count a body."""
        self.sequence += 1
        publics = [one.report()["public"] for one in self.all]
        for shard, (one, message) in enumerate(zip(self.all, sealed(publics, users), strict=True)):
            if shard not in self.away:
                one.take([(at(self.sequence), message)])

    def mark(self, release):
        """Nothing comes while a queue is marked, so the mark takes no place here."""
        if self.broken is not None:
            raise self.broken
        self.marks.append(release)
        return [at(self.sequence)] * len(self.all)

    def report(self):
        return {shard: one.report() for shard, one in enumerate(self.all) if shard not in self.away}

    def ask(self, shard, what, *arguments):
        found = Future()
        self.log.append((shard, what))
        if shard in self.away:
            found.set_exception(StoreError("does not answer"))
            return found
        try:
            found.set_result(getattr(self, f"_{what}")(self.all[shard], *arguments[1:]))
        except PanPrivacyError as error:
            found.set_exception(error)
        return found

    def _contribute(self, one, window, number, through, last, next_start, recipient, announced):
        if one.position < through and one.position != at(0, 0):
            raise StoreError("not yet")
        one.contribute(
            window, number, through=through, last=last, next_start=next_start, announced=announced
        )
        return seal(one.contribution(window, number), recipient)

    def _settled(self, one, window, number):
        one.settle(window, number)

    def _announce(self, one, window, total):
        one.announce(window, total)


def _slice(shard, shards):
    return (
        ClusterRecord(shards=shards, key=KEY.hex(), streams={}).router(numbered=True).slice(shard)
    )


class Cluster:
    """A stream of a cluster, whose coordinator can end and begin again."""

    def __init__(self, folder, clock, **given):
        self.config, self.clock = planned(**given), clock
        self.store = Store(f"sqlite:///{folder}/releases.sqlite")
        self.path = folder / "coordinator.json"
        self.shards = Shards(self.config, clock.now)
        began = StreamRecord(window=clock.now, ends=clock.now + HOUR, last_release=clock.now)
        RecordFile(
            self.path, ClusterRecord(shards=2, key=KEY.hex(), streams={"visits": began})
        ).write()
        self.begin()

    def begin(self):
        """Go on from what is on the disk."""
        self.record = RecordFile.load(self.path)
        self.releaser = Releaser(
            "visits",
            self.config,
            self.record,
            self.store,
            self.shards,
            self.record.record.router(numbered=True),
            self.shards.mark,
            patience=PATIENCE,
            clock=self.clock,
        )

    def advance(self, times=6):
        for _ in range(times):
            self.releaser.advance(self.shards.report())

    def crash(self, place, patch):
        """End the coordinator at a place of the store, or as it would forget a cut."""
        self.store.fail(place, error=Crash())
        if place == "forgetting":
            patch.setattr(Releaser, "_settle", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            self.advance()

    @property
    def cuts(self):
        return self.record.record.streams["visits"].cuts

    @property
    def answers(self):
        """Of each release: when it began, its number, whether it is complete, users by state."""
        found = {}
        for row in self.store.answers():
            key = row.start.timestamp() - START, row.number, row.complete
            found.setdefault(key, []).append(round(row.value))
        return {key: values[1:] for key, values in found.items()}


def without_patience(patch):
    """No request waits for its release, or its announcement."""
    for module in (releasers, announcing):
        patch.setattr(module, "PATIENCE", 0.0)
