"""One question, one file."""

from panprivacy.statistics.density import Density
from panprivacy.statistics.distinct_count import DistinctCount
from panprivacy.statistics.incidence import Incidence
from panprivacy.statistics.incidence_release import IncidenceRelease
from panprivacy.statistics.table import Release, Statistic

__all__ = ["Density", "DistinctCount", "Incidence", "IncidenceRelease", "Release", "Statistic"]
