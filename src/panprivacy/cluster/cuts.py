"""The cuts of one stream of a cluster: when windows end and releases are due, and their marks.

A cut is recorded before any queue has its mark, so that a coordinator that continues from the
record marks the same cut again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from panprivacy.cluster.marks import WindowRelease
from panprivacy.cluster.queues import Position
from panprivacy.cluster.record import Cut, RecordFile, StreamRecord
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.payment import new_payer
from panprivacy.statistics.grid import Grid

_PROMPT: Final = 1.0
"""Seconds after the end of a window within which its queues are normally marked."""


class WindowCuts:
    """The windows of one stream, and the cuts that end them or lie within them.

    Args:
        name: the name of the stream.
        config: the configuration of the stream.
        record: the record of the coordinator.
        shards: number of shards.
        mark: marks the cut of a release in each queue, and returns its positions; see `put_marks`.
        broken: returns when the process was last suspended, or its clock was last set.
        clock: seconds since 1970 in UTC.

    Attributes:
        through: positions of the last cut; empty if that was not made by this process.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        record: RecordFile,
        shards: int,
        mark: Callable[[WindowRelease], Sequence[Position]],
        *,
        broken: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._name, self._config, self._file, self._shards = name, config, record, shards
        self._mark, self._broken, self._clock = mark, broken, clock
        self._grid = Grid(config.window_seconds, config.zone)
        self._since = self._whole_since = clock()
        self._broken_last = broken()
        self.through: Sequence[Position] = ()

    @property
    def own(self) -> StreamRecord:
        """Return the record of this stream."""
        return self._file.record.streams[self._name]

    @property
    def left(self) -> int:
        """Number of releases left in the current window."""
        return self._config.releases - self.own.number + 1

    def begin(self) -> None:
        """Start the intake: a window that began before is incomplete."""
        self._since = self._whole_since = self._clock()

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: some of its events were not counted."""
        behind = math.nextafter(self.own.window, math.inf)
        self._whole_since = max(self._whole_since, behind)

    def scheduled(self) -> float:
        """Return when the next release within the window is due; infinity if none is."""
        every, own = self._config.every_seconds, self.own
        if every is None or self.left <= 1:
            return float("inf")
        grid = self._grid.within(own.window, every)
        return grid.around(max(own.last_release, own.window))[1]

    def make_due(self) -> None:
        """Begin the releases of windows that have ended, and one that is due within a window."""
        now = self._clock()
        self._note_what_broke()
        if self._passed(now) or self.scheduled() <= now:
            with self._file.changing():
                while passed := self._passed(now):
                    self.make(now, passed)
                if self.scheduled() <= now:
                    self.make(now)

    def make(self, now: float, passed: tuple[float, float] | None = None) -> Cut:
        """Begin a release: at the end of a window if it has passed, or else within one."""
        own = self.own
        ended, next_start = passed or (max(now, own.window), own.window)
        whole = self._grid.around(own.window) == (own.window, ended)
        cut = Cut(
            window=own.window,
            ends=own.ends,
            until=min(ended, own.ends),
            number=own.number,
            last=passed is not None,
            next_start=next_start,
            complete=passed is not None and whole and own.window >= self._whole_since,
            made=now,
            payer=new_payer(),
            held=list(range(self._shards)),
        )
        own.cuts.append(cut)
        own.number += 1
        own.last_release = now
        if cut.last:
            own.window, own.number = cut.next_start, 1
            own.ends = self._grid.around(own.window)[1]
        return cut

    def mark(self) -> None:
        """Mark each new cut in the queues: messages that the broker has by then belong to it.

        Rows that came between the cut and its mark belong to the earlier window. If that took long,
        neither of the two windows is complete.
        """
        for cut in list(self.own.cuts):
            if cut.through:
                continue
            through = self.through = self._mark(cut.name)
            with self._file.changing():
                cut.through = [(position.born, position.sequence) for position in through]
                if cut.last and self._clock() - cut.until > _PROMPT:
                    self._spoil(cut)

    def _spoil(self, ended: Cut) -> None:
        """Mark a window incomplete, and the next one, which may have been cut already."""
        ended.complete = False
        for cut in self.own.cuts:
            if cut.window == ended.next_start:
                cut.complete = False
        behind = math.nextafter(ended.next_start, math.inf)
        self._whole_since = max(self._whole_since, behind)

    def late(self, cut: Cut) -> float:
        """Return the seconds a release has waited; from its beginning if the clock was set back."""
        now = self._clock()
        self._since = min(self._since, now)
        if now < cut.made:
            with self._file.changing():
                cut.made = now
        return now - max(cut.made, self._since)

    def _passed(self, now: float) -> tuple[float, float] | None:
        """Return `Grid.passed` of the current window, which a clock set back does not end."""
        own = self.own
        return self._grid.passed(own.window, own.ends, max(now, own.window))

    def _note_what_broke(self) -> None:
        """Mark windows incomplete in which the process was suspended, or its clock was set."""
        broken = self._broken()
        if broken != self._broken_last:
            self._broken_last = broken
            self._whole_since = max(broken, math.nextafter(self.own.window, math.inf))
