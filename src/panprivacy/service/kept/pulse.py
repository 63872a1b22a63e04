"""Detection of pauses of the process, and of changes of its clock.

A stopped process, a sleeping laptop and a paused machine count nothing, and are not notified of it.
But clocks show it afterwards: a thread reads them every second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from panprivacy.service.journal import JOURNAL, Event

TOLERANCE = 5.0
"""Seconds that may be missing: a busy machine is late, and queues hold the data until then."""
_TICK_SECONDS = 1.0


def since_boot() -> float:
    """Return the seconds on a clock that cannot be set, and that runs while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Pulse:
    """Detector of time in which the process was not running, and of changes of the clock.

    Args:
        wall: seconds since 1970 in UTC.
        since_boot: seconds on a clock that cannot be set.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        since_boot: Callable[[], float] = since_boot,
    ) -> None:
        self._wall, self._since_boot = wall, since_boot
        self._lock = threading.Lock()
        self._last: tuple[float, float] | None = None
        self._latest, self._behind = 0.0, False
        self._broken = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="panprivacy-pulse", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._last = self._wall(), self._since_boot()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, if it was started."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def broken(self) -> float:
        """Check the clocks; return the time of the last detection, in seconds since 1970, or 0.

        Call it before a window is declared complete: after a pause, any thread may run first.
        """
        with self._lock:
            if self._last is not None:
                self._look(*self._last)
            return self._broken

    def _look(self, wall: float, since_boot: float) -> None:
        self._last = now, running = self._wall(), self._since_boot()
        missing = max(now - wall, running - since_boot)
        if missing > TOLERANCE or now - wall < -TOLERANCE:
            self._broken = now
        if missing > TOLERANCE:
            JOURNAL.warning(Event.stood_still, seconds=round(missing))
        if self._behind and now >= self._latest:
            self._behind = False
            JOURNAL.warning(Event.clock_right)
        elif not self._behind and now < self._latest - TOLERANCE:
            self._behind = True
            JOURNAL.warning(Event.clock_back, seconds=round(self._latest - now))
        self._latest = max(self._latest, now)

    def _run(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            self.broken()
