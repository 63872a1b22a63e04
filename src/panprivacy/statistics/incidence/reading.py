"""How a release of an `Incidence` is made: by named counts, or by the histogram of cell values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.guarantee import float_above
from panprivacy.statistics.incidence.decoder import SharedModel, SharedModels, StateModel
from panprivacy.statistics.incidence.linear_queries import LinearQuery
from panprivacy.statistics.incidence.release import IncidenceRelease, UserPopulation, WholeHistogram
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.decoders.intervals import discrete_laplace_variance

_MOST_SCALE, _MOST_SUM = 1 << 52, 1 << 62


@dataclass(frozen=True, slots=True)
class NamedReading:
    """One weighted count of cells for each query; a user moves each by at most its range.

    It needs far less noise than a histogram of all cell values, as long as only a few are asked
    for.

    Args:
        population: of the statistic.
        model: reads the counts.
        queries: what is asked.
        scores: int64[queries, M], what a cell of each value counts.
        epsilon: of the release.
    """

    population: UserPopulation
    model: StateModel
    queries: Sequence[LinearQuery]
    scores: NDArray[np.int64]
    epsilon: Fraction

    @classmethod
    def of(
        cls,
        population: UserPopulation,
        model: StateModel,
        queries: Sequence[LinearQuery],
        epsilon: Fraction,
    ) -> NamedReading:
        """The counts that answer these queries."""
        scores = np.array([model.scores(query) for query in queries], np.int64)
        return cls(population, model, queries, scores, epsilon)

    @property
    def scales(self) -> list[Fraction]:
        """They share epsilon equally."""
        ranges = np.ptp(self.scores, axis=1).tolist()
        return [len(ranges) * Fraction(most) / self.epsilon for most in ranges]

    @property
    def size(self) -> int:
        """A count for each query."""
        return len(self.queries)

    def fits(self) -> bool:
        """Whether the sums of all cells fit in 64 bits."""
        return int(np.abs(self.scores).max()) * self.model.all_cells <= _MOST_SUM

    def is_better(self) -> bool:
        """Whether these counts have less output noise than the histogram, and fit in 64 bits."""
        if max(self.scales) > _MOST_SCALE or not self.fits():
            return False
        histogram = discrete_laplace_variance(float(2 / self.epsilon))
        if not histogram:  # too little noise for a float: then all answers are exact
            return True
        ratios = [
            self.model.named_noise(discrete_laplace_variance(float(scale)))
            / self.model.histogram_noise(query, histogram)
            for query, scale in zip(self.queries, self.scales, strict=True)
        ]
        return float(np.mean(ratios)) < 1

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """The weighted counts of cells."""
        sums: NDArray[np.int64] = cells.weighted(table, self.scores)
        return sums

    def answer(self, counts: NDArray[np.int64], confidence: float) -> IncidenceRelease:
        """An answer for each count."""
        numbers = tuple(counts.tolist())
        answers = {}
        for query, count, scale in zip(self.queries, numbers, self.scales, strict=True):
            noise = discrete_laplace_variance(float(scale))
            answers[query.name] = query, self.model.named(query, count, noise)
        return IncidenceRelease(
            self.population, numbers, confidence, float_above(self.epsilon), answers
        )


@dataclass(frozen=True, slots=True)
class HistogramReading:
    """The number of cells that hold each value; a user moves two of these counts by one.

    Args:
        population: of the statistic.
        model: reads the histogram.
        queries: what is asked of it; nothing for the histogram itself.
        epsilon: of the release.
        shares: the quantiles that are asked.
        mean: whether the mean is.
    """

    population: UserPopulation
    model: StateModel | SharedModel | SharedModels
    queries: Sequence[LinearQuery]
    epsilon: Fraction
    shares: tuple[float, ...] = ()
    mean: bool = False

    @property
    def scales(self) -> tuple[Fraction]:
        """One for all counts."""
        return (2 / self.epsilon,)

    @property
    def size(self) -> int:
        """A count for each value of a cell."""
        return self.population.states.modulus

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """The histogram of cell values."""
        return cells.histogram(table)

    def answer(self, counts: NDArray[np.int64], confidence: float) -> IncidenceRelease:
        """Return the answers to the query, or the complete histogram.

        Raises:
            LostReleaseError: the cells are too full: the answer would be noise.
        """
        model, variance = self.model, discrete_laplace_variance(float(2 / self.epsilon))
        if not isinstance(model, StateModel):
            model.check_readable(counts, variance)
        answers = {
            query.name: (query, model.from_histogram(query, counts, variance))
            for query in self.queries
        }
        further = bool(self.shares) or self.mean
        whole = WholeHistogram(model, variance) if further or not answers else None
        epsilon, numbers = float_above(self.epsilon), tuple(counts.tolist())
        read = self.population, numbers, confidence, epsilon, answers, whole
        return IncidenceRelease(*read, shares=self.shares, asks_mean=self.mean)
