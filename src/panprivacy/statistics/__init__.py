"""One question, one file."""

from panprivacy.statistics.cropped_sum import CroppedSum
from panprivacy.statistics.density import Density
from panprivacy.statistics.distinct_count import DistinctCount
from panprivacy.statistics.grouped import Grouped, Label
from panprivacy.statistics.heavy_hitter_count import HeavyHitterCount
from panprivacy.statistics.incidence import Incidence
from panprivacy.statistics.incidence_release import IncidenceRelease
from panprivacy.statistics.release import Release
from panprivacy.statistics.table import Statistic
from panprivacy.statistics.threshold_count import ThresholdCount
from panprivacy.statistics.windowed import Window, Windowed

__all__ = [
    "CroppedSum",
    "Density",
    "DistinctCount",
    "Grouped",
    "HeavyHitterCount",
    "Incidence",
    "IncidenceRelease",
    "Label",
    "Release",
    "Statistic",
    "ThresholdCount",
    "Window",
    "Windowed",
]
