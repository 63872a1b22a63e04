"""How a release of an `Incidence` is made: by named counts, or by the histogram of cell values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.cells.protocol import Table
from panprivacy.decoders.intervals import discrete_laplace_variance
from panprivacy.errors import LostReleaseError
from panprivacy.noise import wipe
from panprivacy.statistics.incidence.decoder import SharedModel, StateModel
from panprivacy.statistics.incidence.linear_queries import LinearQuery
from panprivacy.statistics.incidence.named_counts import NamedCounts
from panprivacy.statistics.incidence.release import IncidenceRelease, Population, Whole


class IncidenceReading(Protocol):
    """One of the two."""

    @property
    def scales(self) -> Sequence[Fraction]:
        """Of the noise on each sum, or one for all of them."""

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """What is to be noised."""

    def answer(self, counts: NDArray[np.int64], confidence: float) -> IncidenceRelease:
        """What noised sums say."""


@dataclass(frozen=True, slots=True)
class NamedReading:
    """One weighted count of cells for each query, with much less noise than the histogram.

    Args:
        population: of the statistic.
        named: the counts.
    """

    population: Population
    named: NamedCounts

    @property
    def scales(self) -> Sequence[Fraction]:
        """They share epsilon equally."""
        return self.named.scales

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """The weighted counts of cells."""
        histogram = cells.histogram(table)
        sums: NDArray[np.int64] = self.named.scores @ histogram
        wipe(histogram)
        return sums

    def answer(self, counts: NDArray[np.int64], confidence: float) -> IncidenceRelease:
        """An answer for each count."""
        epsilon, answers = float(self.named.epsilon), self.named.answers(counts)
        numbers = tuple(counts.tolist())
        return IncidenceRelease(self.population, numbers, confidence, epsilon, answers)


@dataclass(frozen=True, slots=True)
class HistogramReading:
    """How many cells hold each value; a user moves two of these counts by one.

    Args:
        population: of the statistic.
        model: reads the histogram.
        queries: what is asked of it; nothing for the histogram itself.
        epsilon: of the release.
    """

    population: Population
    model: StateModel | SharedModel
    queries: Sequence[LinearQuery]
    epsilon: Fraction

    @property
    def scales(self) -> tuple[Fraction]:
        """One for all counts."""
        return (2 / self.epsilon,)

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """The histogram of cell values."""
        histogram: NDArray[np.int64] = cells.histogram(table)
        return histogram

    def answer(self, counts: NDArray[np.int64], confidence: float) -> IncidenceRelease:
        """What is asked, or the whole histogram.

        Raises:
            LostReleaseError: the cells are too full: the answer would be noise.
        """
        model, variance = self.model, discrete_laplace_variance(float(2 / self.epsilon))
        if isinstance(model, SharedModel) and model.is_full(counts, variance):
            message = (
                f"the {model.cells:,} hashed counters are too full to be read: this release is "
                "lost; plan for more users with expected=, or cells="
            )
            raise LostReleaseError(message)
        answers = {
            query.name: (query, model.whole(query, counts, variance)) for query in self.queries
        }
        whole = None if answers else Whole(model, variance)
        epsilon, numbers = float(self.epsilon), tuple(counts.tolist())
        return IncidenceRelease(self.population, numbers, confidence, epsilon, answers, whole)
