"""Data of charts from rows of the release store: lines over time, bars by number and by group."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from panprivacy.service.outgoing.histograms import QUESTION, bin_ends, is_bin
from panprivacy.service.outgoing.records import Published

MOST_POINTS: Final = 600
"""Maximum number of points of a line: about the number of pixels side by side."""
_FEWEST_BARS: Final = 3
"""Minimum number of bars; fewer answers to one question are displayed as numbers."""


class SeriesName(NamedTuple):
    """Question of an answer; its parts are columns of the release store."""

    statistic: str
    question: str
    arguments: str
    group: str | None

    @classmethod
    def of(cls, row: Published) -> SeriesName:
        """Return the series of a row."""
        return cls(row.statistic, row.question, row.arguments, row.group)

    @property
    def is_bin(self) -> bool:
        """Whether the answers are the number of events in a bin."""
        return self.question == QUESTION and bin_ends(self.arguments) is not None

    def __str__(self) -> str:
        """Return a text such as "visits: exactly 3"; without its group."""
        ends = bin_ends(self.arguments)
        if self.question == QUESTION and ends is not None:
            return f"{self.statistic}: {ends[0]:g} to {ends[1]:g}"
        numbers = _numbers(self.arguments)
        question = self.question.replace("_", " ")
        if question == self.statistic.replace("-", " ").replace("_", " ") and not numbers:
            return question
        return " ".join([f"{self.statistic}: {question}", *([numbers] if numbers else [])])


class ChartPoint(NamedTuple):
    """An answer in a chart.

    Args:
        at: end of the counting that it covers, in seconds since 1970.
        value: the answer; NaN if it is lost.
        low: lower end of its interval.
        high: upper end of its interval; it may be infinite.
        complete: whether a complete window was counted.
        of: number of answers that it represents.
    """

    at: float
    value: float
    low: float
    high: float
    complete: bool = True
    of: int = 1

    @classmethod
    def from_row(cls, row: Published) -> ChartPoint:
        """Return the point of a row."""
        moment = row.end or row.released
        value, low, high = (
            math.nan if one is None else one for one in (row.value, row.low, row.high)
        )
        return cls(moment.timestamp(), value, low, high, row.complete)

    @property
    def is_lost(self) -> bool:
        """Whether there is no number to draw."""
        return not math.isfinite(self.value)


POINT: Final = np.dtype(
    [("at", "f8"), ("value", "f8"), ("low", "f8"), ("high", "f8"), ("complete", "?"), ("of", "i8")]
)
"""Data type of an array of points, which may be long; its fields are those of `ChartPoint`."""
ChartPoints = NDArray[np.void]
"""An array of `POINT`, oldest first."""


def thinned(points: ChartPoints, most: int = MOST_POINTS) -> list[ChartPoint]:
    """Return so few points that each has a place of its own.

    Each represents the same number of neighbours: it is the last of them that is not lost, and its
    interval contains theirs, so that no outlier is hidden.

    Args:
        points: oldest first.
        most: maximum number of points.
    """
    if len(points) <= most:
        return [ChartPoint(*one) for one in points.tolist()]
    starts = len(points) * np.arange(most) // most
    ends = np.append(starts[1:], len(points))
    told = np.maximum.accumulate(
        np.where(np.isfinite(points["value"]), np.arange(len(points)), -1)
    )[ends - 1]
    joined = points[np.where(told >= starts, told, ends - 1)]
    joined["low"] = np.fmin.reduceat(points["low"], starts)
    joined["high"] = np.fmax.reduceat(points["high"], starts)
    joined["complete"] = np.logical_and.reduceat(points["complete"], starts)
    joined["of"] = np.add.reduceat(points["of"], starts)
    return [ChartPoint(*one) for one in joined.tolist()]


class Bar(NamedTuple):
    """One of several answers side by side.

    Args:
        label: its number or its group.
        point: the answer.
    """

    label: str
    point: ChartPoint


def histograms(newest: Iterable[Published]) -> dict[SeriesName, list[Bar]]:
    """Return the questions that a release answers for several numbers, such as "exactly 0, 1, 2".

    Args:
        newest: the rows of a release.

    Returns:
        Bars in the order of their numbers, by question without its arguments.
    """
    found: dict[SeriesName, list[tuple[int, Bar]]] = {}
    for row in newest:
        if row.argument is not None:
            asked = SeriesName.of(row)._replace(arguments="")
            label = _numbers(row.arguments)
            found.setdefault(asked, []).append((row.argument, Bar(label, ChartPoint.from_row(row))))
    return {
        asked: [bar for _, bar in sorted(bars, key=lambda one: one[0])]
        for asked, bars in found.items()
        if len(bars) >= _FEWEST_BARS
    }


def by_group(newest: Iterable[Published]) -> dict[SeriesName, list[Bar]]:
    """Return the answers of one release by group, largest first, for each question.

    Args:
        newest: the rows of a release.
    """
    found: dict[SeriesName, list[Bar]] = {}
    for row in newest:
        if row.group is not None and not is_bin(row):
            asked = SeriesName.of(row)._replace(group=None)
            found.setdefault(asked, []).append(Bar(row.group, ChartPoint.from_row(row)))

    def height(bar: Bar) -> float:
        return -math.inf if bar.point.is_lost else bar.point.value

    return {asked: sorted(bars, key=height, reverse=True) for asked, bars in found.items()}


def _numbers(arguments: str) -> str:
    """Return the numbers of a question: a range of states, or a power."""
    between = " to " if arguments.startswith("first=") else "**"
    return between.join(part.rpartition("=")[2] for part in arguments.split(",") if part)
