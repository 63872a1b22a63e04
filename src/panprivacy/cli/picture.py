"""The picture of a run: of what has steps as they come, of all else at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from panprivacy.cli.output import Printed
from panprivacy.programs.counting import Counting, steps_of
from panprivacy.statistics.specification import Specification

_MOST_DRAWN: Final = 10_000
"""Steps of a picture, the last ones."""
_REDRAWN: Final = 5.0
"""Seconds between two pictures of what runs on: it takes half of one to draw."""


class Picture:
    """Draws answers, each time over the picture before.

    Args:
        path: of the picture.
        counting: the statistics that count at the moment.
        specifications: what is counted.
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
        """Know one more answer, and draw it now if more of them follow for long."""
        self._history.append((datetime.now(UTC), printed))
        del self._history[:-_MOST_DRAWN]
        if self._runs_on and time.monotonic() >= self._drawn + _REDRAWN:
            self.draw()
            self._drawn = time.monotonic()

    def draw(self) -> None:
        """Draw what is not lost: of what has steps, each of them, else the last answers."""
        from panprivacy.programs.pictures import plot_answers, plot_steps  # noqa: PLC0415 - slow

        counted = self._counting().statistics
        if any(one.sizes.steps for one in counted.values()):
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
