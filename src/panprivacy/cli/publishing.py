"""Schedule of answers: at the end, every so many seconds, or at the end of each clock window."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from operator import attrgetter
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from panprivacy.cli.demonstration import Demonstration
from panprivacy.cli.output import LossOverWindows, Printed
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.hygiene.wiping import wipe_traces
from panprivacy.ground.validation import positive_integer
from panprivacy.intake.programs.counting import Counting
from panprivacy.intake.programs.intake import Intake
from panprivacy.intake.sources import Skips, Source
from panprivacy.statistics.composites.windowed import LONGEST, Windowed
from panprivacy.statistics.composites.windows import Window
from panprivacy.statistics.release import Answers

_LONG_BYTES = 1 << 26
_MOST_SECONDS = 1_000_000_000


@dataclass(frozen=True)
class Schedule:
    """Schedule of the answers.

    Args:
        releases: number of answers that the budget covers; the last one is at the end of the input.
        every: seconds between the others; None to make only the last one.
        window: seconds of a clock window; None for one count of everything.
        windows: number of windows over which a user's loss is summed; None for those of a year.
        zone: name of the time zone whose clock cuts windows; None for UTC.
        moves: minimum change of the number before an answer other than the last is published; it is
            compared every `every` seconds.
    """

    releases: int
    every: float | None
    window: float | None
    windows: int | None = None
    zone: str | None = None
    moves: Fraction | None = None

    def __post_init__(self) -> None:
        if self.windows is not None:
            positive_integer(windows=self.windows)
        message = ""
        if self.windows is not None and self.window is None:
            message = "--windows is for --window"
        elif self.zone is not None and self.window is None:
            message = "--zone is for --window"
        elif self.window is not None and self.window > LONGEST:
            message = f"--window must be at most {LONGEST // 86_400:,} days"
        elif self.moves is not None and self.every is None:
            message = "--moves needs --every: how often to look whether the number has moved"
        elif (
            self.window is not None
            and self.moves is None
            and (self.every is not None or self.releases > 1)
        ):
            message = "--window makes one answer a window: leave out --every and --releases"
        elif self.every is not None and not 0 < self.every <= _MOST_SECONDS:
            message = f"--every must be a number of seconds, above 0 and at most {_MOST_SECONDS:,}"
        elif self.every is not None and self.releases < 2:
            message = "--every needs --releases of at least 2: the last answer comes at the end"
        if message:
            raise PlanError(message)


class Timed:
    """One count of everything, with an answer at the end and perhaps some before it.

    Args:
        counting: the statistics.
        schedule: the schedule of the answers.
        confidence: confidence level of all intervals.
        demonstration: stores the truth, for public data.
    """

    def __init__(
        self,
        counting: Counting,
        schedule: Schedule,
        confidence: float,
        demonstration: Demonstration | None,
    ) -> None:
        self._counting, self._schedule, self._confidence = counting, schedule, confidence
        self._demonstration = demonstration
        self._start, self._next = time.monotonic(), 1

    def counting(self) -> Counting:
        """Return the statistics."""
        return self._counting

    def deadline(self) -> float | None:
        """Return when the next answer but the last is due, or the next comparison."""
        if self._schedule.every is None or not self._follow():
            return None
        return self._start + self._next * self._schedule.every

    def _follow(self) -> int:
        """Return how many answers may still be published before the last."""
        if self._counting.internals.releasing.stands is not None:
            return self._counting.internals.releasing.left
        return max(self._schedule.releases - self._next, 0)

    def due(self) -> Iterable[Printed]:
        """Return an answer for a deadline that has passed; none if the number has not moved."""
        deadline = self.deadline()
        if deadline is None or time.monotonic() < deadline:
            return []
        self._next += 1
        answers = self._counting.internals.releasing.check(confidence=self._confidence)
        return [] if answers is None else [self._of(answers)]

    def last(self, *, complete: bool = True) -> Iterable[Printed]:  # noqa: ARG002
        """Return one answer of each statistic."""
        return [self._of(self._counting.release(confidence=self._confidence))]

    def _of(self, answers: Answers) -> Printed:
        return _printed(self._counting, answers, self._confidence, self._demonstration)


class InWindows:
    """A fresh count for each clock window, with an answer at its end, and whenever it has moved.

    Args:
        make: makes the statistics of one window.
        schedule: the schedule, with the length of a window.
        confidence: confidence level of all intervals.
    """

    def __init__(self, make: Callable[[], Counting], schedule: Schedule, confidence: float) -> None:
        self._every, self._confidence = schedule.every, confidence
        self._start, self._next = time.monotonic(), 1
        self._windowed = Windowed(
            make,
            every=timedelta(seconds=schedule.window or 0),
            zone=schedule.zone or "UTC",
            release=self._end,
            answers=attrgetter("answers"),
        )
        promise, windows = self._windowed.current.guarantee, schedule.windows
        length = schedule.window or 0
        self._loss = LossOverWindows(
            *(promise.year(length) if windows is None else (windows, promise.over(windows)))
        )

    def counting(self) -> Counting:
        """Return the statistics of the current window."""
        return self._windowed.current

    def deadline(self) -> float | None:
        """Return the end of the current window, or the next comparison before it."""
        end = time.monotonic() + self._windowed.ends.timestamp() - time.time()
        return end if self._every is None else min(end, self._start + self._next * self._every)

    def due(self) -> Iterable[Printed]:
        """Yield the releases of windows that have passed, and a current answer that has moved."""
        self._windowed.advance()
        yield from map(self._of, self._windowed.take())
        counting = self._windowed.current
        if self._every is None:
            return
        passed = int((time.monotonic() - self._start) / self._every)
        if passed < self._next:
            return
        self._next = passed + 1
        answers = counting.internals.releasing.check(confidence=self._confidence)
        if answers is not None:
            now = max(datetime.now(UTC), self._windowed.began)  # the clock may have been set back
            printed = _printed(counting, answers, self._confidence)
            yield self._of(Window(self._windowed.began, now, complete=False, release=printed))

    def last(self, *, complete: bool = True) -> Iterable[Printed]:  # noqa: ARG002
        """Return the same, and the release of the current window, which ends early."""
        self._windowed.close()
        return map(self._of, self._windowed.take())

    def _end(self, counting: Counting) -> Printed:
        answers = counting.release(confidence=self._confidence)
        return _printed(counting, answers, self._confidence)

    def _of(self, window: Window) -> Printed:
        printed: Printed = window.release
        return replace(printed, window=window, zone=self._windowed.grid.zone, loss=self._loss)


class AnswerPublisher(Protocol):
    """Publisher of answers, with their deadlines."""

    def counting(self) -> Counting:
        """Return the current statistics."""

    def deadline(self) -> float | None:
        """Return when the next answer but the last is due."""

    def due(self) -> Iterable[Printed]:
        """Return the answers that are due now."""

    def last(self, *, complete: bool = True) -> Iterable[Printed]:
        """Return the answers at the end of the input, or at its early end."""


def publish(
    source: Source,
    intake: Intake,
    publisher: AnswerPublisher,
    notice: Callable[[], None] = lambda: None,
) -> Iterator[Printed]:
    """Count the input, and yield answers when they are due; the last ones at the end of the input.

    Args:
        source: the input.
        intake: converts its batches.
        publisher: makes the answers when they are due.
        notice: called between two batches, and when the source is woken.
    """
    rows, came = 0, False  # of a file; a running count of a pipe's rows would be state
    name: str | None = ""  # no file has this one, so that the first batch begins a file
    skips: Skips | None = None
    with _progress(source) as advance, _rows_of(source):
        try:
            for batch in source.batches_or_ticks(publisher.deadline):
                yield from publisher.due()
                notice()
                if batch is None:
                    continue
                if source.name != name:
                    rows, name = 0, source.name
                    skips = source.skips and source.skips.part(name)
                came |= intake.take(publisher.counting(), batch, rows, skips)
                wipe_traces()
                rows += batch.num_rows if source.counted else 0
                del batch  # ids are not held while a pipe is silent
                advance()
        except InputError as error:
            # Data read from a pipe does not come again; before the first row there is none.
            if source.size is None and (came or (error.row or 1) > 1):
                yield from _last(publisher, interrupted=True)
                reason = f"{error.reason}; the last answer is of all rows before it"
                raise InputError(reason, row=error.row) from None
            raise
    if source.skips and source.skips.rows and not came:
        message = f"no row can be read: {source.skips}"
        raise InputError(message)
    yield from _last(publisher, interrupted=source.stopped)


def _last(publisher: AnswerPublisher, *, interrupted: bool) -> Iterator[Printed]:
    """Yield the answers at the end of the input, or at its early end."""
    *past, last = publisher.last(complete=not interrupted)
    yield from past
    yield replace(last, interrupted=interrupted)


def _printed(
    counting: Counting,
    answers: Answers,
    confidence: float,
    demonstration: Demonstration | None = None,
) -> Printed:
    """Return the answers of one moment."""
    facts = demonstration.facts(counting.statistics, answers) if demonstration else None
    guarantee, size = counting.guarantee, counting.internals.memory.state_bytes
    learns = any(one.internals.windows.expects for one in counting.statistics.values())
    return Printed(answers, guarantee, size, confidence, learns, facts=facts)


@contextmanager
def _rows_of(source: Source) -> Iterator[None]:
    """Add the file and the line to an error about a row, and where rows are counted from."""
    try:
        yield
    except InputError as error:
        reason, row = error.reason, error.row
        if row is not None and not source.counted:
            reason += " (the rows of a pipe are counted in each block that arrives)"
    else:
        return
    line = None if row is None else source.line_of(row)
    raise InputError(reason, row=row, line=line, file=source.name)


@contextmanager
def _progress(source: Source) -> Iterator[Callable[[], None]]:
    """Show a progress bar in bytes, on a terminal, for large input."""
    if source.size is None or source.size < _LONG_BYTES or not sys.stderr.isatty():
        yield lambda: None
        return
    columns = BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=source.size)
        yield lambda: progress.update(task, completed=source.position)
