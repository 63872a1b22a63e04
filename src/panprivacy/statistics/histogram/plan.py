"""The plan of a `Histogram`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.guarantee import Guarantee
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.histogram.nodes import BinNodes
from panprivacy.statistics.histogram.questions import HistogramQuery
from panprivacy.statistics.histogram.release import UNITS, names_of
from panprivacy.statistics.notes import format_number
from panprivacy.statistics.plan import guarantee_of
from panprivacy.statistics.release import Name
from panprivacy.statistics.running.stepwise.event_plan import EventPlan
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.counters.shapes import largest_deviation
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.edges import Edges
from panprivacy.tables.planning.request import Request, Split

_SHOWN = 0.5, 0.95, 0.99
"""Percentiles whose errors are predicted."""
_TAKEN_BACK = "an event that takes one back is an event, too"


@dataclass(frozen=True, slots=True)
class HistogramPlan(EventPlan):
    """The parameters of a `Histogram`.

    Args:
        edges: of the bins.
        horizon: how many steps there are, each with an answer.
        signed: whether an event may take back an earlier one.
        per_user: how many events a user has at most, for what they lose; None if that is not said.
        expected: the number of events for which errors are predicted.
        request: epsilon and what it covers; its releases are the horizon.
        split: all of epsilon is the state's.
        forest: a tree of steps for each bin; the state may be seen within a step.
    """

    edges: Edges
    horizon: int
    signed: bool
    per_user: int | None
    expected: int
    request: Request
    split: Split
    forest: Forest

    proofs = ("histogram", "running")
    checks = ("unit/test_histogram", "statistical/test_histogram")
    reads_ids = False
    reads_values = True
    measure = "the events: how far a median is off in rank"
    unit = "events"
    limits = (math.inf, math.inf)  # how many events come is not known
    key_bytes = 0
    bound = 1

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        when = "" if self.horizon == 1 else f", at the end of each of up to {self.horizon:,} steps"
        return f"how many events have a value in each of {self.edges.bins:,} bins{when}?"

    @property
    def table(self) -> BinNodes:  # type: ignore[override]
        """The layout of the stored table."""
        return BinNodes(self.forest)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee for each event; that of a crash is as for one running count."""
        epsilon = self.request.epsilon
        found = guarantee_of(self, crash=2 * epsilon, crash_again=epsilon)
        if self.signed and self.per_user is not None:
            found = found.on_condition(_TAKEN_BACK)
        return replace(found, events_per_user=self.per_user)

    def unit_of(self, question: str) -> str:
        """Return the unit of the answers to a question."""
        return UNITS.get(question, self.unit)

    def address(self, key: bytes) -> Any:  # noqa: ARG002
        """Nobody has a cell."""
        return None

    def check_deltas(self, deltas: Deltas) -> None:
        """Raise `InputError` for a delta that is not one event."""
        if self.signed:
            refuse_deltas(abs(deltas) > 1, "delta must be 1, or -1 to take an event back")
        else:
            refuse_deltas(
                (deltas != 1) & (deltas != 0),
                "delta must be 1: signed= lets an event take back an earlier one",
            )

    def names(self, query: HistogramQuery) -> tuple[Name, ...]:
        """Return the name of each answer."""
        return names_of(self.edges, query)

    def truth(self, name: Name, states: NDArray[Any], last: NDArray[Any]) -> float:
        """Return the exact answer, from the value and the delta of each event."""
        values, inverse = np.unique(states, return_inverse=True)
        counts = np.bincount(inverse, last, len(values))
        numbers = [number for _, number in name.arguments]
        if name.question == "count":
            return float(counts[self._between(values, *numbers)].sum())
        events = counts.sum()
        if not events:
            return math.nan
        if name.question == "mean":
            return float(
                np.clip(values, self.edges.inner[0], self.edges.inner[-1]) @ counts / events
            )
        if name.question == "share_below":
            return float(counts[values < numbers[0]].sum() / events)
        reached = np.cumsum(counts) >= numbers[0] * events
        return float(values[np.argmax(reached)])

    def _between(self, values: NDArray[Any], low: float, high: float) -> NDArray[np.bool_]:
        """Return which values a bin holds; the last of closed edges holds its high end too."""
        last = not self.edges.is_open and high == self.edges.inner[-1]
        return (values >= low) & ((values <= high) if last else (values < high))

    @property
    def deviation(self) -> float:
        """The standard deviation of the count of a bin at the worst step, in events."""
        return largest_deviation(self.forest)

    @property
    def largest(self) -> float:
        """The number of events for which errors are predicted."""
        return float(self.expected)

    def rank_error(self, share: float) -> float:
        """Return the standard deviation of the rank of a quantile, in events.

        With about this share of all bins before it: the noise of each of these counts with
        `1 - share`, that of the others with `share`.

        Args:
            share: 0 to 1.
        """
        return self.deviation * math.sqrt(self.edges.bins * share * (1 - share))

    def absolute_error(self) -> float:
        """Return the standard deviation of the rank of a median, in events, at the worst step."""
        return self.rank_error(0.5)

    def absolute_margin(self, confidence: float, truth: float | None = None) -> float:  # noqa: ARG002
        """Return the bound on the error of the rank of a median at this probability, in events."""
        return noise_quantile(confidence, 1.0 / self.edges.bins) * self.absolute_error()

    @property
    def remarks(self) -> tuple[str, ...]:
        """The width of bins, and the predicted errors of counts and percentiles."""
        wide = self.edges.widest
        each = f"{100 * wide:.2g} %" if self.edges.is_log else format_number(wide, "value")
        quantile = noise_quantile(0.95, 1.0 / self.edges.bins)
        ranks = "; ".join(
            f"p{100 * share:g}: ±{100 * quantile * self.rank_error(share) / self.expected:.2g}"
            for share in _SHOWN
        )
        return (
            (
                f"a bin is up to {each} wide, and its count has a standard deviation of "
                f"{self.deviation:.3g} events"
            ),
            (
                f"rank of a percentile of {self.expected:,} events, in percentiles, at 95 %: "
                f"{ranks}; its value is known to the bin"
            ),
        )
