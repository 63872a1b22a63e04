"""From rows of the release store to what is drawn: lines over time, bars by number and by group."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from panprivacy.service.outgoing.records import Published

MOST_POINTS: Final = 600
"""Of a line: there are about as many places for them side by side."""
_FEWEST_BARS: Final = 3
"""Fewer answers to one question are told as numbers."""


class SeriesName(NamedTuple):
    """Which question an answer belongs to; its parts are columns of the release store."""

    statistic: str
    question: str
    arguments: str
    group: str | None

    @classmethod
    def of(cls, row: Published) -> SeriesName:
        """That of a row."""
        return cls(row.statistic, row.question, row.arguments, row.group)

    def __str__(self) -> str:
        """In words, such as "visits: exactly 3"; without its group."""
        numbers = "**".join(part.rpartition("=")[2] for part in self.arguments.split(",") if part)
        question = self.question.replace("_", " ")
        if question == self.statistic.replace("-", " ").replace("_", " ") and not numbers:
            return question
        return " ".join([f"{self.statistic}: {question}", *([numbers] if numbers else [])])


class Point(NamedTuple):
    """An answer as it is drawn.

    Args:
        at: when the counting ended that it tells of, in seconds since 1970.
        value: the answer; NaN if it is lost.
        low: lower end of its interval.
        high: upper end of its interval; it may be infinite.
        complete: whether a whole window was counted.
        of: for how many answers it stands.
    """

    at: float
    value: float
    low: float
    high: float
    complete: bool = True
    of: int = 1

    @classmethod
    def from_row(cls, row: Published) -> Point:
        """That of a row."""
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
"""Of an array of points, which may be long; the fields of `Point`, in their order."""
Points = NDArray[np.void]
"""An array of `POINT`, oldest first."""


def thinned(points: Points, most: int = MOST_POINTS) -> list[Point]:
    """So few points that each has a place of its own.

    One stands for as many neighbours as all others: it is the last of them that is not lost, and
    its interval holds theirs, so that nothing that stuck out is hidden.

    Args:
        points: oldest first.
        most: how many there may be.
    """
    if len(points) <= most:
        return [Point(*one) for one in points.tolist()]
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
    return [Point(*one) for one in joined.tolist()]


class Bar(NamedTuple):
    """One of several answers side by side.

    Args:
        label: the number or the group that it belongs to.
        point: the answer.
    """

    label: str
    point: Point


def histograms(newest: Iterable[Published]) -> dict[SeriesName, list[Bar]]:
    """The questions that one release answers for several numbers, such as "exactly 0, 1, 2".

    Args:
        newest: the rows of a release.

    Returns:
        Bars in the order of their numbers, by question without its arguments.
    """
    found: dict[SeriesName, list[tuple[int, Bar]]] = {}
    for row in newest:
        if row.argument is not None:
            asked = SeriesName.of(row)._replace(arguments="")
            label = "**".join(part.rpartition("=")[2] for part in row.arguments.split(","))
            found.setdefault(asked, []).append((row.argument, Bar(label, Point.from_row(row))))
    return {
        asked: [bar for _, bar in sorted(bars, key=lambda one: one[0])]
        for asked, bars in found.items()
        if len(bars) >= _FEWEST_BARS
    }


def by_group(newest: Iterable[Published]) -> dict[SeriesName, list[Bar]]:
    """The answers of one release by group, largest first, for each question without its group.

    Args:
        newest: the rows of a release.
    """
    found: dict[SeriesName, list[Bar]] = {}
    for row in newest:
        if row.group is not None:
            asked = SeriesName.of(row)._replace(group=None)
            found.setdefault(asked, []).append(Bar(row.group, Point.from_row(row)))

    def height(bar: Bar) -> float:
        return -math.inf if bar.point.is_lost else bar.point.value

    return {asked: sorted(bars, key=height, reverse=True) for asked, bars in found.items()}
