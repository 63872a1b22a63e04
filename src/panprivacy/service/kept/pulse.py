"""Whether the process ran all the time, and its clock went on evenly.

A process that is stopped, a laptop that sleeps and a machine that is paused count nothing, and none
of them is told. But clocks tell it afterwards: a thread looks at them every second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from panprivacy.service.journal import JOURNAL, Event

TOLERANCE = 5.0
"""Seconds that may be missing: a busy machine is late, and queues hold what comes meanwhile."""
_TICK_SECONDS = 1.0


def since_boot() -> float:
    """Seconds on a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Pulse:
    """Notices when more time has passed than the process was running, or the clock was set.

    Args:
        wall: seconds since 1970 in UTC.
        since_boot: seconds on a clock that nobody sets.
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
        """Begin to look."""
        self._last = self._wall(), self._since_boot()
        self._thread.start()

    def stop(self) -> None:
        """End; nothing is done if nothing has begun."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def broken(self) -> float:
        """Look now; when something was noticed last, in seconds since 1970, or 0.

        Whoever is about to call a window complete asks: after a pause, any thread may be the first.
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
