"""Announcement of intrusions to a running count, by the signal SIGUSR1.

The count is only in memory, so it cannot return to a state from before the announcement: it needs
no record of the announcement. A service has one; see `panprivacy announce`.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Self

from panprivacy.errors import BudgetError, PlanError
from panprivacy.intake.programs.counting import Counting
from panprivacy.intake.sources import Source


class SignalledAnnouncements:
    """Announcer of an intrusion for each SIGUSR1, between two batches, if any are planned.

    Args:
        source: the input.
        counting: returns the current statistics.
        planned: maximum number of announced intrusions.

    Raises:
        PlanError: the input is a file, which is counted at once, and can be counted again.
    """

    def __init__(self, source: Source, counting: Callable[[], Counting], planned: int) -> None:
        if planned and source.size is not None:
            message = "--intrusions is for a pipe: a file is counted at once; if somebody has seen "
            raise PlanError(message + "the memory meanwhile, count it again")
        self._source, self._counting, self._planned = source, counting, planned
        self._came = False

    def __enter__(self) -> Self:
        if self._planned:
            self._before = signal.signal(signal.SIGUSR1, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._planned:
            signal.signal(signal.SIGUSR1, self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True  # nothing else: the interrupted code may be in the middle of a batch
        self._source.wake()

    def take(self) -> None:
        """Announce what came, and print that: until then the state may not be seen again."""
        if not self._came:
            return
        self._came = False
        counting = self._counting()
        try:
            counting.announce_intrusion()
        except BudgetError as error:
            said = f"nothing was announced: {error}"
        else:
            announced = counting.internals.memory.announced
            said = f"announced {announced:,} of {self._planned:,} intrusions; "
            said += "the state may be seen once more"
        sys.stderr.write(f"panprivacy: {said}\n")
