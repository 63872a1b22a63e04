"""The answers of a `Histogram`: functions of released counts and public parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.ground.validation import proportion
from panprivacy.statistics.histogram.decoder import BinsModel
from panprivacy.statistics.histogram.questions import HistogramQuery
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.quantiles import read_shares
from panprivacy.statistics.release import Label, Name, Named, Release
from panprivacy.tables.edges import Edges

EVENTS, SHARE, VALUE = "events", "share of the events", "value"
"""Units of answers."""


UNITS = {"count": EVENTS, "share_below": SHARE, "quantile": VALUE, "mean": VALUE}
"""Unit of the answers to each question."""


def names_of(edges: Edges, query: HistogramQuery) -> tuple[Name, ...]:
    """Return the name of each answer to a query, in order."""
    names = [_quantile_name(share) for share in query.quantile]
    names += [_MEAN] * query.mean
    if query.cumulative:
        names += [Name("", "share_below", (("edge", edge),)) for edge in edges.highs[:-1].tolist()]
    if query.of_counts:
        ends = zip(edges.lows.tolist(), edges.highs.tolist(), strict=True)
        names += [Name("", "count", (("low", low), ("high", high))) for low, high in ends]
    return tuple(names)


_MEAN = Name("", "mean")


def _quantile_name(share: float) -> Name:
    return Name("", "quantile", (("share", share),))


@dataclass(frozen=True, eq=False, repr=False)
class HistogramRelease(Named[Release]):
    """Noised counts of bins, and what follows from them; all of it is public.

    As a mapping it has what was asked: without any question, the count of each bin. These intervals
    hold together with the probability `confidence`. A method reads more off the same counts, at no
    further cost; its intervals hold with that probability by themselves.

    Args:
        model: the counts, and the law of their noise.
        query: what was asked.
        counts: the noised numbers that left.
        confidence: probability that all intervals of the mapping hold.
        statistic: name of the statistic.
        group: the group; None if events are not counted by group.
    """

    model: BinsModel
    query: HistogramQuery
    counts: tuple[int, ...]
    confidence: float
    statistic: str = ""
    group: Label | None = None

    @property
    def edges(self) -> Edges:
        """The edges of the bins."""
        return self.model.edges

    def bins(self) -> list[Release]:
        """Return the number of events in each bin; the intervals hold together."""
        return list(self._bins(self.confidence))

    def cumulative(self) -> list[Release]:
        """Return the share of events below the end of each bin but the last, in one band."""
        return list(self._shares(self.confidence))

    def quantile(self, share: float) -> Release:
        """Return the smallest value that so large a share of events does not exceed.

        Args:
            share: 0 to 1; 0.5 for the median.
        """
        return self.quantiles(share)[0]

    def quantiles(self, *shares: float) -> list[Release]:
        """Return the same of several shares; the intervals hold together.

        Args:
            shares: each 0 to 1.
        """
        if not shares:
            message = "name a share, such as quantiles(0.5, 0.95)"
            raise PlanError(message)
        wanted = read_shares("quantile", shares)
        return [self._quantile(one, _each(self.confidence, len(wanted))) for one in wanted]

    def mean(self) -> Release:
        """Return the mean of the values, each cut to the first and the last edge."""
        return self._mean(self.confidence)

    def events(self) -> Release:
        """Return the number of events."""
        low, high = self.model.events(self.confidence)
        error = math.sqrt(self.edges.bins * self.model.variance)
        note = note_on(low, high, value=self.model.total)
        return self._release(Name("", "events"), self.model.total, low, high, EVENTS, note, error)

    def at(self, confidence: float) -> HistogramRelease:
        """Return the same with other intervals.

        Args:
            confidence: probability that they hold together, 0 to 1.
        """
        return replace(self, confidence=proportion(confidence=confidence))

    def under(self, statistic: str | None = None, group: Label | None = None) -> HistogramRelease:
        """Return the same answers under the name of a statistic, of a group, or both."""
        name = Name(self.statistic, "", group=self.group).under(statistic, group)
        return replace(self, statistic=name.statistic, group=name.group)

    def answers(self, most: int | None = None) -> dict[Name, Release]:
        """Return everything that was asked, or the counts of all bins.

        Args:
            most: of the answers only so many first ones; None for all.
        """
        found: dict[Name, Release] = {}
        for one in self._asked():
            if most is not None and len(found) >= most:
                break
            found[one.name] = one
        return found

    def __len__(self) -> int:
        return len(names_of(self.edges, self.query))

    def _asked(self) -> Iterator[Release]:
        """Yield the answers to the query; its questions share what may go wrong equally."""
        asked, level = self.query, _each(self.confidence, self.query.families)
        for share in asked.quantile:
            yield self._quantile(share, level)
        if asked.mean:
            yield self._mean(level)
        if asked.cumulative:
            yield from self._shares(level)
        if asked.of_counts:
            yield from self._bins(level)

    def _bins(self, level: float) -> Iterator[Release]:
        low, high = self.model.counts(level)
        ends = zip(self.edges.lows, self.edges.highs, strict=True)
        each = zip(ends, self.model.values, low, high, strict=True)
        for (start, end), value, least, most in each:
            name = Name("", "count", (("low", float(start)), ("high", float(end))))
            note = note_on(least, most, unit=EVENTS, value=value)
            yield self._release(name, value, least, most, EVENTS, note, self.model.deviation)

    def _shares(self, level: float) -> Iterator[Release]:
        found = zip(self.edges.highs[:-1], *self.model.shares(level), strict=True)
        for edge, value, low, high in found:
            name = Name("", "share_below", (("edge", float(edge)),))
            yield self._release(name, value, low, high, SHARE)

    def _quantile(self, share: float, level: float) -> Release:
        value, (low, high) = self.model.quantile(share, level)
        edges = self.edges
        unknown = low == edges.lows[0] and high == edges.highs[-1] and edges.bins > 1
        note = "more noise than signal: any value is possible" if unknown else None
        return self._release(_quantile_name(share), value, low, high, VALUE, note)

    def _mean(self, level: float) -> Release:
        measured, (low, high) = self.model.mean(level)
        value, error, bias = measured
        note = "values beyond the outer edges are cut to them" if self.edges.is_open else None
        return self._release(_MEAN, value, low, high, VALUE, note, error, bias)

    def _release(
        self,
        name: Name,
        value: float,
        low: float,
        high: float,
        unit: str,
        note: str | None = None,
        error: float = math.nan,
        bias: float = 0.0,
    ) -> Release:
        named = name.under(self.statistic, self.group)
        value, low, high = float(value), float(low), float(high)
        numbers = value, low, high, self.confidence, 0.0, self.counts
        return Release(*numbers, named, unit, note, value, error, bias)


def _each(confidence: float, questions: int) -> float:
    """Return the level of each of some questions, so that all hold with `confidence`."""
    return 1 - (1 - confidence) / max(questions, 1)


def counts_of(released: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, ...]:
    """Return the noised numbers that left, bin by bin."""
    return tuple(released.ravel().tolist())
