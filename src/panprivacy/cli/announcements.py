"""Word that somebody has seen the memory of a count that runs: a signal, SIGUSR1.

What is counted is in memory alone, so nothing can go back to a state of before the announcement:
it needs no file that says that it was made. A service has one; see `panprivacy announce`.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Self

from panprivacy.errors import BudgetError, PlanError
from panprivacy.programs.counting import Counting
from panprivacy.sources import Source


class SignalledAnnouncements:
    """Announces an intrusion for each SIGUSR1, between two batches; none if none are planned for.

    Args:
        source: what is counted.
        counting: what counts, at the moment.
        planned: how many may be announced.

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
        self._came = True  # and no more: what it interrupts may be in the middle of a batch
        self._source.wake()

    def take(self) -> None:
        """Announce what came, and say so: until then the state may not be seen again."""
        if not self._came:
            return
        self._came = False
        counting = self._counting()
        try:
            counting.announce_intrusion()
        except BudgetError as error:
            said = f"nothing was announced: {error}"
        else:
            said = f"announced {counting.announced:,} of {self._planned:,} intrusions; "
            said += "the state may be seen once more"
        sys.stderr.write(f"panprivacy: {said}\n")
