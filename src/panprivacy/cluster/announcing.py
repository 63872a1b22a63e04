"""How an intrusion that people announce comes to all shards of a stream.

A shard that has to contribute to a release of before re-randomises its state with that, and holds
what it contributed until the answer is in the store: so an announcement is confirmed once nothing
is held that it does not change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from panprivacy.cluster.asking import Asking
from panprivacy.cluster.record import Cut, RecordFile, StreamRecord, utc
from panprivacy.cluster.vault import Told
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.announcements import digest_of, next_number
from panprivacy.service.outgoing.records import Announcement, StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Announced

PATIENCE: Final = 30.0
"""Seconds that a request waits for its release, or its announcement, to be made."""
_REPEAT: Final = "repeat it with the same Idempotency-Key before the memory may be seen again"


class Announcing:
    """Announces intrusions to the shards of one stream; safe for several threads.

    Args:
        name: of the stream.
        config: what is counted.
        record: what must not be forgotten.
        store: where announcements go.
        asking: asks the shards.
        shards: how many there are.
        made: is notified when a release is made, or no shard holds anything of it.
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
        self.told: Mapping[int, Told] = {}
        """What each shard has told last of this stream, if it has."""

    @property
    def _own(self) -> StreamRecord:
        return self._file.record.streams[self._name]

    def total(self) -> int:
        """How many intrusions people have announced to the current window.

        Raises:
            StoreError: the store cannot be read now.
        """
        return self._store.announced(self._name, utc(self._own.window))

    def announce(self, key: bytes) -> Announced:
        """Announce to the current window that somebody has seen the memory of the cluster.

        When it returns, all shards have re-randomised their states, and none holds a contribution
        that it made before.

        Args:
            key: what the caller names it. Of two calls with one name the second changes nothing.

        Raises:
            BudgetError: none is left. Nothing was changed.
            StoreError: it cannot be written down, or not all shards have taken it, or one holds
                what was there before: call again with that key. Where it could, it took effect.
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
        """Announce to shards what they do not know yet, as after a crash."""
        if not self._config.intrusions:
            return
        total, window = self.total(), self._own.window
        for shard, one in self.told.items():
            knows = one["window"] != window or one["announced"] >= total
            if not knows and not self._has_to_contribute(shard):
                self._asking.again((window, shard), "announce", window, total)

    def _note_before_it(self, announced: int) -> None:
        """Have slices contribute from the epoch of the cut, if some have not when one is announced.

        That is on the disk before the announcement is.
        """
        with self._file.changing():
            for cut in self._own.cuts:
                if cut.window == self._own.window and cut.announced is None:
                    cut.announced = announced

    def _has_to_contribute(self, shard: int) -> bool:
        """Whether a release within the current window waits for a shard, which re-randomises it."""
        return any(
            cut.window == self._own.window and self._waits_for(cut, shard)
            for cut in list(self._own.cuts)
        )

    def _waits_for(self, cut: Cut, shard: int) -> bool:
        """Whether a shard is not known to have contributed to a release."""
        told = self.told.get(shard)
        return told is None or has_not_contributed(cut, told)

    def _announce_to(self, shards: Iterable[int], window: float, total: int) -> list[int]:
        """Have shards re-randomise their states, but for those that have to contribute before.

        Returns:
            Those.

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
        """Until no shard has a contribution, or a window, of before: nothing re-randomises that."""
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


def has_not_contributed(cut: Cut, told: Told) -> bool:
    """Whether a shard has not contributed yet, as it was missing."""
    if cut.name in told["pending"]:
        return False
    return told["window"] == cut.window and told["released"] == cut.number - 1


def named(shards: Sequence[int], of: int) -> str:
    """Shards as people call them."""
    numbers = ", ".join(str(one + 1) for one in shards)
    return f"shard {numbers} of {of}"
