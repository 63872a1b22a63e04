"""Waiting for Ray, which may be slow on a crowded machine; the journal says so once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from panprivacy.errors import PlanError
from panprivacy.service.journal import JOURNAL, Event

_PAUSE: Final = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """Time that the start of a cluster waits for Ray.

    Args:
        seconds: maximum time from one answer of Ray to the next.
        clock: seconds on a clock that cannot be set.
        sleep: sleeps for a number of seconds.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait_for(self, work: Callable[[], T], *errors: type[Exception]) -> T:
        """Repeat `work` while it raises one of these errors, and return what it returns.

        Raises:
            PlanError: `work` has raised them until the time was over.
        """
        until = self.clock() + self.seconds
        waits = False
        while True:
            try:
                return work()
            except errors as error:
                if self.clock() >= until:
                    raise PlanError(self._ended(error)) from None
            if not waits:
                waits = True
                JOURNAL.warning(Event.waiting_for_ray)
            self.sleep(_PAUSE)

    def _ended(self, error: Exception) -> str:
        """Return the error message for the operator when the time is over."""
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        return (
            f"Ray does not answer within {self.seconds:g} seconds ({reason}): give this machine "
            "more processors, or raise start_patience in [cluster]"
        )
