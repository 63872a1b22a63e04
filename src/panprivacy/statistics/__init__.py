"""One question, one file."""

from panprivacy.statistics.density import Density
from panprivacy.statistics.distinct_count import DistinctCount
from panprivacy.statistics.table import Release, Statistic

__all__ = ["Density", "DistinctCount", "Release", "Statistic"]
