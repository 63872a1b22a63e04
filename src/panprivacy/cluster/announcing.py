"""Announcements of intrusions to all shards of a stream.

A shard that still has to contribute to an earlier release re-randomises its state with that
contribution, and stores the contribution until the answer is in the store. So an announcement is
confirmed only once no shard stores a contribution that the announcement does not change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from panprivacy.cluster.asking import Asking
from panprivacy.cluster.record import Cut, RecordFile, StreamRecord, utc
from panprivacy.cluster.vault import ShardReport
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.announcements import digest_of, next_number
from panprivacy.service.outgoing.records import Announcement, StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Announced

PATIENCE: Final = 30.0
"""Seconds that a request waits for its release or its announcement."""
_REPEAT: Final = "repeat it with the same Idempotency-Key before the memory may be seen again"


class Announcing:
    """Announcer of intrusions to the shards of one stream; thread-safe.

    Args:
        name: the name of the stream.
        config: the configuration of the stream.
        record: the record of the coordinator.
        store: the store of the announcements.
        asking: calls the shards.
        shards: number of shards.
        made: condition that is notified when a release is made, or when no shard stores a
            contribution to it any more.
        clock: seconds since 1970 in UTC.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        record: RecordFile,
        store: ReleaseStore,
        asking: Asking,
        shards: int,
        made: threading.Condition,
        clock: Callable[[], float],
    ) -> None:
        self._name, self._config, self._file, self._store = name, config, record, store
        self._asking, self._shards, self._made, self._clock = asking, shards, made, clock
        self.report: Mapping[int, ShardReport] = {}
        """The last report of each shard about this stream, for the shards that have reported."""

    @property
    def _own(self) -> StreamRecord:
        return self._file.record.streams[self._name]

    def total(self) -> int:
        """Return the number of intrusions announced to the current window.

        Raises:
            StoreError: the store cannot be read now.
        """
        return self._store.announced(self._name, utc(self._own.window))

    def announce(self, key: bytes) -> Announced:
        """Announce to the current window that somebody has seen the memory of the cluster.

        When it returns, all shards have re-randomised their states, and none stores a contribution
        from before the announcement.

        Args:
            key: idempotency key. A second call with the same key changes nothing.

        Raises:
            BudgetError: no announced intrusion is left. Nothing was changed.
            StoreError: the announcement cannot be stored, a shard has not taken it, or a shard
                still stores an earlier contribution. Call again with the same key. Parts that
                succeeded took effect.
        """
        digest = digest_of(key)
        with self._file.reading():
            line = self._store.announcement(self._name, digest)
            if line is None:
                number = next_number(self.total(), self._config.intrusions)
                self._note_before_it(number - 1)
                now = utc(self._clock())
                line = Announcement(self._name, utc(self._own.window), number, digest, now)
                self._store.announce(line)
                JOURNAL.warning(Event.announced, stream=self._name)
            total, window = self.total(), self._own.window
        shards = range(self._shards) if line.start == utc(window) else ()
        later = self._announce_to(shards, window, total)
        self._wait_for_what_is_held()
        if self._announce_to(later, window, total):
            raise StoreError(self._still_held())
        return Announced(line.start, line.number, self._config.intrusions - total)

    def announce_again(self) -> None:
        """Announce to the shards that do not know all announcements yet, as after a crash."""
        if not self._config.intrusions:
            return
        total, window = self.total(), self._own.window
        for shard, one in self.report.items():
            knows = one["window"] != window or one["announced"] >= total
            if not knows and not self._has_to_contribute(shard):
                self._asking.again((window, shard), "announce", window, total)

    def _note_before_it(self, announced: int) -> None:
        """Fix the epoch of each cut before an announcement.

        Slices that have not contributed yet then contribute from that epoch. This is on the disk
        before the announcement is.
        """
        with self._file.changing():
            for cut in self._own.cuts:
                if cut.window == self._own.window and cut.announced is None:
                    cut.announced = announced

    def _has_to_contribute(self, shard: int) -> bool:
        """Return whether a release within the window, which re-randomises a shard, waits for it."""
        return any(
            cut.window == self._own.window and self._waits_for(cut, shard)
            for cut in list(self._own.cuts)
        )

    def _waits_for(self, cut: Cut, shard: int) -> bool:
        """Return whether the shard is not known to have contributed to the release."""
        report = self.report.get(shard)
        return report is None or has_not_contributed(cut, report)

    def _announce_to(self, shards: Iterable[int], window: float, total: int) -> list[int]:
        """Re-randomise the states of shards, except those that have to contribute first.

        Returns:
            The shards that have to contribute first.

        Raises:
            StoreError: a shard does not answer.
        """
        later = [shard for shard in shards if self._has_to_contribute(shard)]
        asked = {
            shard: self._asking.now(shard, "announce", window, total)
            for shard in shards
            if shard not in later
        }
        for shard, one in asked.items():
            try:
                one.result(PATIENCE)
            except (StoreError, TimeoutError):
                message = (
                    f"announced, but {named([shard], self._shards)} does not answer: {_REPEAT}"
                )
                raise StoreError(message) from None
        return later

    def _wait_for_what_is_held(self) -> None:
        """Wait until no shard stores a contribution that the announcement cannot change."""
        before = {cut.name for cut in list(self._own.cuts)}
        with self._made:
            gone = self._made.wait_for(
                lambda: before.isdisjoint(cut.name for cut in list(self._own.cuts)), PATIENCE
            )
        if not gone:
            raise StoreError(self._still_held())

    def _still_held(self) -> str:
        held = [(cut, shard) for cut in list(self._own.cuts) for shard in cut.held]
        waits = [shard for cut, shard in held if self._waits_for(cut, shard)]
        whose = named(sorted(set(waits or [shard for _, shard in held])), self._shards)
        message = f"announced, but a release from before waits for {whose}, and no announcement "
        return f"{message}changes what was counted for it: {_REPEAT}"


def has_not_contributed(cut: Cut, report: ShardReport) -> bool:
    """Return whether a shard that was missing at a release has still not contributed to it."""
    if cut.name in report["pending"]:
        return False
    return report["window"] == cut.window and report["released"] == cut.number - 1


def named(shards: Sequence[int], of: int) -> str:
    """Return the numbers of shards as displayed to users, counted from 1."""
    numbers = ", ".join(str(one + 1) for one in shards)
    return f"shard {numbers} of {of}"
