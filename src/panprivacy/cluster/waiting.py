"""Waits for Ray, which takes its time on a crowded machine; the journal says so once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from panprivacy.service.journal import JOURNAL, Event

_PAUSE: Final = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the start of a cluster waits for Ray.

    Args:
        seconds: from one answer of Ray to the next.
        clock: seconds, which nobody sets.
        sleep: waits for some seconds.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait_for(self, work: Callable[[], T], *errors: type[Exception]) -> T:
        """Repeat `work` while it raises one of these errors, and return what it returns.

        Raises:
            Exception: the last of these errors, when the time is over.
        """
        until = self.clock() + self.seconds
        waits = False
        while True:
            try:
                return work()
            except errors:
                if self.clock() >= until:
                    raise
            if not waits:
                waits = True
                JOURNAL.warning(Event.waiting_for_ray)
            self.sleep(_PAUSE)
