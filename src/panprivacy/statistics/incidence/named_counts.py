"""Named statistics as counts of cells: one weighted count for each query.

A user moves such a count by at most the range of its weights, so it needs far less noise than a
histogram of all cell values, as long as only a few are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.decoders.intervals import discrete_laplace_variance
from panprivacy.statistics.incidence.decoder import Estimates, StateModel
from panprivacy.statistics.incidence.linear_queries import LinearQuery
from panprivacy.statistics.release import Name

_MOST_SCALE, _MOST_SUM = 1 << 52, 1 << 62


@dataclass(frozen=True, slots=True)
class NamedCounts:
    """One weighted count of cells for each query; a user moves each by at most its range.

    Args:
        queries: what is asked.
        scores: int64[queries, M], what a cell of each value counts.
        scales: of the discrete Laplace noise on each count; they share epsilon equally.
        model: reads the counts.
        epsilon: of the release.
    """

    queries: Sequence[LinearQuery]
    scores: NDArray[np.int64]
    scales: Sequence[Fraction]
    model: StateModel
    epsilon: Fraction

    @classmethod
    def of(
        cls, model: StateModel, queries: Sequence[LinearQuery], epsilon: Fraction
    ) -> NamedCounts:
        """The counts that answer these queries."""
        rows = [model.scores(query) for query in queries]
        scales = [len(rows) * Fraction(int(np.ptp(row))) / epsilon for row in rows]
        return cls(queries, np.array(rows, np.int64), scales, model, epsilon)

    def is_better(self) -> bool:
        """Whether these counts have less output noise than the histogram, and fit in 64 bits."""
        largest = int(np.abs(self.scores).max()) * self.model.cells
        if max(self.scales) > _MOST_SCALE or largest > _MOST_SUM:
            return False
        histogram = discrete_laplace_variance(float(2 / self.epsilon))
        if not histogram:  # too little noise for a float: then all answers are exact
            return True
        ratios = [
            self.model.named_noise(discrete_laplace_variance(float(scale)))
            / self.model.whole_noise(query, histogram)
            for query, scale in zip(self.queries, self.scales, strict=True)
        ]
        return float(np.mean(ratios)) < 1

    def answers(self, counts: NDArray[np.int64]) -> Mapping[Name, tuple[LinearQuery, Estimates]]:
        """The answers by name, from the noised counts."""
        noised = zip(self.queries, counts.tolist(), self.scales, strict=True)
        return {
            query.name: (query, self._estimate(query, count, scale))
            for query, count, scale in noised
        }

    def _estimate(self, query: LinearQuery, count: int, scale: Fraction) -> Estimates:
        return self.model.named(query, count, discrete_laplace_variance(float(scale)))
