"""Scheduled work: releases, and the sealed checkpoint; one thread does both.

The checkpoint is written at fixed intervals and after each release, before anybody sees the
release, even if nothing came, and soon after a batch whose sender waits for it: so its times show
when such batches came, which is public, and its size shows nothing. A batch is on disk with the
first checkpoint that begins after it was counted: its sender waits for that one, and so do all
others that have come by then (group commit).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from panprivacy.ground.hygiene.wiping import wipe_traces
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.served import Tell
from panprivacy.service.stream import Stream
from panprivacy.statistics.checkpoint import Checkpoint

_HURRY = 0.1
"""Seconds to the next checkpoint while the service stops."""
SOON = 0.05
"""Minimum seconds between a checkpoint and the next one that a sender waits for; or the duration of
the last one, so that the disk is idle for half of the time.
"""
_LONGEST_WAIT = 1.0
_STOP_SECONDS = 15.0
"""Seconds after which clocks are read again: the wall clock may be set."""
_ENDED = "the service has stopped"


class Keeper:
    """Scheduler of the streams.

    Args:
        streams: all streams.
        checkpoint: the checkpoint of their states; None to keep them in memory only.
        every: seconds from one checkpoint to the next.
        looks: checks to run every second, by name; a check raises if something is wrong.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        checkpoint: Checkpoint | None,
        every: float = 1.0,
        *,
        looks: Mapping[str, Callable[[], None]] = MappingProxyType({}),
    ) -> None:
        self._streams, self._checkpoint, self._every = streams, checkpoint, every
        self._looks = looks
        self._stopping, self._wake = threading.Event(), threading.Event()
        self._hurried = False
        self._thread = threading.Thread(target=self._run, name="panprivacy-keeper", daemon=True)
        self._lock = threading.Lock()
        self._waiting: list[Tell] = []
        self._soonest = 0.0
        self._troubles = Troubles()
        self._written: float | None = None
        self._ended = False

    @property
    def durable(self) -> bool:
        """Whether there are checkpoints."""
        return self._checkpoint is not None

    @property
    def written(self) -> float | None:
        """Time at which the last checkpoint was on disk, in seconds since 1970."""
        return self._written

    @property
    def troubles(self) -> dict[str, str]:
        """The current troubles, by name."""
        return self._troubles.known

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write the last checkpoint; without checkpoints, release what is due.

        The checkpoint comes first, so that a release store that hangs does not prevent it. Releases
        that are due by then are made after a restart. Nothing is done if the thread was not
        started.
        """
        if self._thread.ident is None:
            return
        self._stopping.set()
        self._wake.set()
        self._thread.join()
        self.write()
        until = time.monotonic() + _STOP_SECONDS
        for stream in self._streams:
            if time.monotonic() < until:
                work = stream.publish if self.durable else stream.close
                self.attempt(f"stream {stream.name}", work)
        with self._lock:
            self._ended, waiting, self._waiting = True, self._waiting, []
        self._tell(waiting, _ENDED)

    def hurry(self) -> None:
        """Write within a second, and again: the service stops, and requests wait for it."""
        self._hurried = True  # no event: a signal may come while one is being set

    def after_next(self, tell: Tell, since: float) -> None:  # noqa: ARG002
        """Call `tell` once, about the next checkpoint that has not begun."""
        with self._lock:
            if not self._ended:
                self._waiting.append(tell)
                self._wake.set()
                return
        tell(_ENDED)

    def advance(self, stream: Stream) -> None:
        """Make the releases of a stream that are due, with the checkpoints for which they wait.

        Raises:
            StoreError: the store cannot be used now; try again.
        """
        stream.advance()
        while stream.unkept and self.write() is None and not self._stopping.is_set():
            stream.advance()

    def write(self) -> str | None:
        """Write one checkpoint, and notify its waiters; return None, or why there is none."""
        if self._checkpoint is None:
            return None
        checkpoint = self._checkpoint
        with self._lock:  # requests from here on wait for the next checkpoint
            waiting, self._waiting = self._waiting, []
        began = time.monotonic()
        trouble = self.attempt("checkpoint", lambda: checkpoint.write(self._streams))
        if trouble is None:
            self._written = time.time()
        ended = time.monotonic()
        self._soonest = ended + max(SOON, ended - began)
        self._tell(waiting, trouble)
        for stream in self._streams:
            if trouble is None:
                stream.mark_stored()
            else:
                stream.mark_not_stored()
        return trouble

    def _run(self) -> None:
        next_write = time.monotonic()
        while True:
            for stream in self._streams:  # each may wait for the store
                if not self._stopping.is_set():
                    self.attempt(f"stream {stream.name}", partial(self.advance, stream))
                if time.monotonic() >= self._due(next_write):
                    self.write()
                    passed = (time.monotonic() - next_write) // self._every
                    next_write += (passed + 1) * self._every
            self.attempt("wiping", wipe_traces)
            for what, look in self._looks.items():
                self.attempt(what, look)
            self._wait(next_write)
            if self._stopping.is_set():
                return
            if self._hurried:
                next_write = min(next_write, time.monotonic() + _HURRY)

    def _due(self, next_write: float) -> float:
        """Return when a checkpoint is due: at its time, or sooner if a sender waits for it."""
        return min(next_write, self._soonest) if self._waiting else next_write

    def _wait(self, next_write: float) -> None:
        """Sleep until something is due; the first sender that waits for a checkpoint ends it."""
        self._wake.wait(self._pause(next_write))
        self._wake.clear()
        if self._waiting:
            self._stopping.wait(self._pause(self._due(next_write)))

    def _pause(self, next_write: float) -> float:
        """Return the seconds until something is due."""
        due = [
            one.deadline() - time.time()
            for one in self._streams
            if f"stream {one.name}" not in self._troubles.known  # it is tried again after a pause
        ]
        return max(0.0, min(*due, next_write - time.monotonic(), _LONGEST_WAIT))

    def _tell(self, waiting: list[Tell], trouble: str | None) -> None:
        for tell in waiting:  # a failure must not keep the others from being notified
            self.attempt("acknowledging", partial(tell, trouble))

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Run a task, and store the reason if it fails: the service continues."""
        return self._troubles.attempt(what, work)
