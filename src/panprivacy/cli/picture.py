"""Picture of a run: statistics with steps as they come, all others at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from panprivacy.cli.output import Printed
from panprivacy.intake.programs.counting import Counting, steps_of
from panprivacy.statistics.specification import Specification

_MOST_DRAWN: Final = 10_000
"""Maximum number of steps of a picture, the last ones."""
_REDRAWN: Final = 5.0
"""Seconds between two pictures of a running count: drawing takes half of one."""


class Picture:
    """Drawer of answers, which replaces the previous picture each time.

    Args:
        path: path of the picture.
        counting: returns the current statistics.
        specifications: the specifications of the statistics.
    """

    def __init__(
        self,
        path: Path,
        counting: Callable[[], Counting],
        specifications: Sequence[Specification],
    ) -> None:
        self._path, self._counting = path, counting
        self._runs_on = bool(steps_of(specifications))
        self._history: list[tuple[datetime, Printed]] = []
        self._drawn = -_REDRAWN

    def add(self, printed: Printed) -> None:
        """Add one more answer, and draw it now if more of them will follow for long."""
        self._history.append((datetime.now(UTC), printed))
        del self._history[:-_MOST_DRAWN]
        if self._runs_on and time.monotonic() >= self._drawn + _REDRAWN:
            self.draw()
            self._drawn = time.monotonic()

    def draw(self) -> None:
        """Draw the answers that are not lost: each step of statistics with steps, else the last."""
        from panprivacy.intake.programs.pictures import plot_answers, plot_steps  # noqa: PLC0415 - slow

        counted = self._counting().statistics
        if any(one.internals.memory.sizes.steps for one in counted.values()):
            steps = [
                (moment, one.answers, one.facts.truth if one.facts else {})
                for moment, one in self._history
            ]
            plot_steps(self._path, counted, steps)
            return
        _, printed = self._history[-1]
        found = {name.statistic for name, one in printed.answers.items() if one is not None}
        statistics = {label: one for label, one in counted.items() if label in found}
        truths = printed.facts.truth if printed.facts else None
        if statistics:
            plot_answers(self._path, statistics, printed.answers, truths)
