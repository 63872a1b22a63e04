"""The bins of histograms that were published: rows of one release, put together again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from panprivacy.service.outgoing.records import Published
from panprivacy.tables.decoders.intervals import Floats

QUESTION = "count"
"""Question whose answers are the number of events in a bin."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishedBins:
    """The counts of all bins of one release, in the order of their values.

    Args:
        stream: name of the stream.
        statistic: name of the statistic.
        group: the group; None if events are not counted by group.
        released: when it was published.
        confidence: how often all intervals hold together.
        edges: of the bins, float64[bins + 1]; the first is -inf and the last inf if bins are open.
        estimates: the noised count of each bin, which may be below 0, float64[bins].
        low: lower end of the interval of each count, float64[bins].
        high: upper end of it, float64[bins].
    """

    stream: str
    statistic: str
    group: str | None
    released: datetime
    confidence: float
    edges: Floats
    estimates: Floats
    low: Floats
    high: Floats

    @property
    def margin(self) -> float:
        """How far a count may be off: half the length of an interval that is not cut at 0."""
        cut = self.high <= 0
        return float(np.where(cut, 0.0, self.high - self.estimates).max())

    @property
    def inner(self) -> Floats:
        """The edges that are finite."""
        return self.edges[np.isfinite(self.edges)]

    def possible(self) -> NDArray[np.int64]:
        """Return whole counts that events can have, none below 0, int64[bins].

        Of all counts with the same sum and none below 0 these are nearest to the noised ones, the
        projection on a simplex. They are a function of what was published. Each by itself is
        biased, as noise below 0 is taken from the others.
        """
        total = max(float(self.estimates.sum()), 0.0)
        falling = np.sort(self.estimates)[::-1]
        over = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
        kept = np.flatnonzero(falling > over)
        shift = float(over[kept[-1]]) if len(kept) else math.inf
        cumulative = np.rint(np.cumsum(np.maximum(self.estimates - shift, 0.0)))
        return np.diff(cumulative, prepend=0.0).astype(np.int64)

    def total(self, counts: NDArray[np.int64]) -> float:
        """Return the sum of the values, each that of the middle of its bin.

        Args:
            counts: of the bins. Those of bins without an end count at their finite edge.
        """
        ends = np.clip(self.edges, self.inner[0], self.inner[-1])
        return float(counts @ ((ends[:-1] + ends[1:]) / 2))


def published_bins(rows: Iterable[Published]) -> list[PublishedBins]:
    """Return the newest histogram of each stream, statistic and group.

    Args:
        rows: published answers; of other questions, and of earlier releases, there may be some.

    Returns:
        Those whose bins are all there.
    """
    found: dict[tuple[str, str, str | None], list[Published]] = {}
    for row in rows:
        if is_bin(row):
            found.setdefault((row.stream, row.statistic, row.group), []).append(row)
    return [bins for each in found.values() if (bins := _joined(_newest(each))) is not None]


def is_bin(row: Published) -> bool:
    """Whether an answer is the number of events in a bin."""
    return row.question == QUESTION and bin_ends(row.arguments) is not None


def bin_ends(arguments: str) -> tuple[float, float] | None:
    """Return both ends of a bin; None if these are not the arguments of an answer about one."""
    named = dict(part.split("=", 1) for part in arguments.split(",") if "=" in part)
    try:
        return (float(named["low"]), float(named["high"])) if len(named) == 2 else None
    except (KeyError, ValueError):
        return None


def _newest(rows: list[Published]) -> list[Published]:
    """Return those of the last release."""
    last = max(rows, key=lambda row: row.released)
    return [row for row in rows if (row.start, row.number) == (last.start, last.number)]


def _joined(rows: list[Published]) -> PublishedBins | None:
    """Return the bins of rows of one release; None if one is missing, or there is no finite one."""
    placed = sorted((ends, row) for row in rows if (ends := bin_ends(row.arguments)) is not None)
    lows, highs = (np.array([ends[side] for ends, _ in placed]) for side in (0, 1))
    edges = np.append(lows, highs[-1])
    told = np.array(
        [
            [math.nan if one is None else one for one in (row.estimate, row.low, row.high)]
            for _, row in placed
        ]
    )
    whole = np.array_equal(lows[1:], highs[:-1]) and bool((edges[1:] > edges[:-1]).all())
    if not whole or np.isnan(told).any() or np.isfinite(edges).sum() < 2:
        return None
    one = rows[0]
    names = one.stream, one.statistic, one.group, one.released, one.confidence
    return PublishedBins(*names, edges, *told.T)
