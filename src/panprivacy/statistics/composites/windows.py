"""What was released at the ends of windows, as a table, with sums over windows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, SupportsIndex, overload

import pyarrow as pa

from panprivacy.errors import PanPrivacyError
from panprivacy.statistics.frames import (
    MOST_SHOWN,
    SHOWN,
    Rows,
    Tabular,
    as_html,
    as_table,
    as_text,
)
from panprivacy.statistics.totals import total_of

_MOMENT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Window:
    """The public result of one window.

    Args:
        start: when it began, in UTC; the first one begins when counting does.
        end: when it ended.
        complete: whether it was counted from its start to its end on the grid, by one process.
        release: what was released then; None if nothing was.
    """

    start: datetime
    end: datetime
    complete: bool
    release: Any


class Windows(Rows):
    """The results of ended windows, oldest first.

    Args:
        windows: in order.
        lasting: whether their answers are of a statistic that goes on from window to window.
    """

    __slots__ = ("_lasting", "_windows")

    def __init__(self, windows: Iterable[Window], *, lasting: bool = False) -> None:
        self._windows, self._lasting = tuple(windows), lasting

    @overload
    def __getitem__(self, place: int) -> Window: ...

    @overload
    def __getitem__(self, place: slice) -> Windows: ...

    def __getitem__(self, place: int | slice) -> Window | Windows:
        """Return the window at a place, or some of them.

        Raises:
            TypeError: it is no place; says how answers are found.
        """
        known: object = place
        if not isinstance(known, (SupportsIndex, slice)):
            message = (
                "windows are found by their places, such as windows[-1]; answers in the release of "
                "one, such as windows[-1].release"
            )
            raise TypeError(message)
        found = self._windows[place]
        if isinstance(found, Window):
            return found
        return Windows(found, lasting=self._lasting)

    def __len__(self) -> int:
        return len(self._windows)

    def __iter__(self) -> Iterator[Window]:
        return iter(self._windows)

    def to_arrow(self) -> pa.Table:
        """A row for each answer of each window: `start`, `end`, `complete` and those of answers.

        The windows have released answers, as statistics do.
        """
        rows = [
            {"start": window.start, "end": window.end, "complete": window.complete, **row}
            for window in self._windows
            if window.release is not None
            for row in window.release.rows()
        ]
        return as_table(rows, start=_MOMENT, end=_MOMENT, complete=pa.bool_())

    def total(self, *, confidence: float = 0.95) -> Any:
        """Return the sum of the answers of all windows, with an interval for the sum.

        Windows have independent noise. Who comes in several of them counts in each. For a mean
        over windows, divide the sum and both ends by their number.

        Args:
            confidence: probability that the interval covers the sum of the truths.

        Raises:
            PanPrivacyError: an answer is lost, they are of several questions, or they go on from
                window to window, as those of a running count.
        """
        if self._lasting:
            message = "these answers go on from window to window: the last one is of all of them"
            raise PanPrivacyError(message)
        return total_of(self._tables(), confidence)

    def _tables(self) -> Iterator[tuple[Hashable, Any]]:
        """Each answer, with what tells its table from others."""
        for window in self._windows:
            if window.release is not None:
                for name, one in window.release.answers().items():
                    yield (window.start, name.statistic, name.group), one

    def table_lines(self) -> Iterator[tuple[str, ...]]:
        """The cells of a small table for people, line by line, from the titles on."""
        yield "start", "end", "complete", *SHOWN
        for window in self._windows[-MOST_SHOWN:]:
            began, ended = (f"{at:%Y-%m-%d %H:%M} UTC" for at in (window.start, window.end))
            for line in _lines_of(window.release):
                yield began, ended, "yes" if window.complete else "no", *line

    def __str__(self) -> str:
        """A table for people, of the last windows."""
        if not self._windows:
            return "no windows have ended"
        hidden = max(len(self) - MOST_SHOWN, 0)
        more = f"\n... after {hidden:,} earlier windows" if hidden else ""
        return as_text(list(self.table_lines())) + more

    def _repr_html_(self) -> str:
        """A small table for a notebook."""
        return as_html(self.table_lines())

    def __repr__(self) -> str:
        return f"<Windows {', '.join(f'{one.start:%Y-%m-%d %H:%M}' for one in self._windows)}>"


def _lines_of(release: object) -> Iterator[tuple[str, ...]]:
    """The cells of what one window released, which need not be answers."""
    if isinstance(release, Tabular):
        yield from islice(release.table_lines(), 1, None)
    else:
        said = "no answer" if release is None else type(release).__name__
        yield "", said, *("" for _ in SHOWN[2:])
