"""What happens by the clock: releases, and the sealed checkpoint; one thread does both.

The checkpoint is written at fixed intervals and after each release, before anybody sees that,
whether or not anything came: so neither its times nor its size tell anything. A batch is on disk
with the first checkpoint that begins after it was counted: who wants to know waits for that one
(group commit).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from panprivacy.checkpoint import Checkpoint
from panprivacy.hygiene.wiping import wipe_traces
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.served import Tell
from panprivacy.service.stream import Stream

_HURRY = 0.1
"""Seconds to the next checkpoint while the service stops."""
_LONGEST_WAIT = 1.0
_STOP_SECONDS = 15.0
"""Seconds after which clocks are looked at again: the one on the wall may be set."""
_ENDED = "the service has stopped"


class Keeper:
    """Keeps the streams' appointments.

    Args:
        streams: all of them.
        checkpoint: where their states go; None to keep them in memory only.
        every: seconds from one checkpoint to the next.
        looks: what is looked at every second, by what it is; it raises if something is wrong.
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
        self._stopping = threading.Event()
        self._hurried = False
        self._thread = threading.Thread(target=self._run, name="panprivacy-keeper", daemon=True)
        self._lock = threading.Lock()
        self._waiting: list[Tell] = []
        self._troubles = Troubles()
        self._written: float | None = None
        self._ended = False

    @property
    def durable(self) -> bool:
        """Whether there are checkpoints."""
        return self._checkpoint is not None

    @property
    def written(self) -> float | None:
        """When the last checkpoint was on disk, in seconds since 1970."""
        return self._written

    @property
    def troubles(self) -> dict[str, str]:
        """What does not work at the moment, by what it is."""
        return self._troubles.known

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Write the last checkpoint; without checkpoints release what there is.

        The checkpoint comes first, so that a release store that hangs does not keep it from the
        disk. What is due by then is released after a restart. Nothing is done if nothing has begun.
        """
        if self._thread.ident is None:
            return
        self._stopping.set()
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
        """Be told, once, about the next checkpoint that has not begun."""
        with self._lock:
            if not self._ended:
                self._waiting.append(tell)
                return
        tell(_ENDED)

    def advance(self, stream: Stream) -> None:
        """Have a stream release what is due, with the checkpoints for which its releases wait.

        Raises:
            StoreError: the store cannot be used now; try again.
        """
        stream.advance()
        while stream.unkept and self.write() is None and not self._stopping.is_set():
            stream.advance()

    def write(self) -> str | None:
        """One checkpoint, and the word to those who wait for it; None, or why there is none."""
        if self._checkpoint is None:
            return None
        checkpoint = self._checkpoint
        with self._lock:  # from here on others are too late for this one
            waiting, self._waiting = self._waiting, []
        trouble = self.attempt("checkpoint", lambda: checkpoint.write(self._streams))
        if trouble is None:
            self._written = time.time()
        self._tell(waiting, trouble)
        for stream in self._streams:
            if trouble is None:
                stream.kept()
            else:
                stream.not_kept()
        return trouble

    def _run(self) -> None:
        next_write = time.monotonic()
        while True:
            for stream in self._streams:  # each may wait for the store
                if not self._stopping.is_set():
                    self.attempt(f"stream {stream.name}", partial(self.advance, stream))
                if time.monotonic() >= next_write:
                    self.write()
                    passed = (time.monotonic() - next_write) // self._every
                    next_write += (passed + 1) * self._every
            self.attempt("wiping", wipe_traces)
            for what, look in self._looks.items():
                self.attempt(what, look)
            if self._stopping.wait(self._pause(next_write)):
                return
            if self._hurried:
                next_write = min(next_write, time.monotonic() + _HURRY)

    def _pause(self, next_write: float) -> float:
        """Seconds until something is due."""
        due = [
            one.deadline() - time.time()
            for one in self._streams
            if f"stream {one.name}" not in self._troubles.known  # it is tried again after a pause
        ]
        return max(0.0, min(*due, next_write - time.monotonic(), _LONGEST_WAIT))

    def _tell(self, waiting: list[Tell], trouble: str | None) -> None:
        for tell in waiting:  # one that fails must not keep the word from the others
            self.attempt("acknowledging", partial(tell, trouble))

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Do something, and keep the reason if it fails: the service goes on."""
        return self._troubles.attempt(what, work)
