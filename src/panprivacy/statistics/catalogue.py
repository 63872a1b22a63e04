"""The statistics there are: every program reads them here, and knows no other.

A statistic is one folder and one line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from panprivacy.errors import PlanError
from panprivacy.statistics.both.statistic import BothCount
from panprivacy.statistics.cropped.statistic import CroppedSum
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.distinct.statistic import DistinctCount
from panprivacy.statistics.heavy.statistic import HeavyHitterCount
from panprivacy.statistics.histogram.statistic import Histogram
from panprivacy.statistics.incidence.statistic import Incidence
from panprivacy.statistics.inner.statistic import InnerProduct
from panprivacy.statistics.moment.statistic import FrequencyMoment
from panprivacy.statistics.running.count import RunningCount
from panprivacy.statistics.running.cropped import RunningCroppedSum
from panprivacy.statistics.running.distinct import RunningDistinct
from panprivacy.statistics.running.heavy import RunningHeavyHitters
from panprivacy.statistics.sketch.statistic import OverlapSketch
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.threshold.statistic import ThresholdCount

StatisticType = type[Statistic[Any, Any]]

KINDS: list[StatisticType] = [
    DistinctCount,
    Density,
    OverlapSketch,
    BothCount,
    Incidence,
    CroppedSum,
    ThresholdCount,
    HeavyHitterCount,
    FrequencyMoment,
    InnerProduct,
    RunningCount,
    RunningDistinct,
    RunningCroppedSum,
    RunningHeavyHitters,
    Histogram,
]


def kinds() -> Mapping[str, StatisticType]:
    """All statistics, by name."""
    return {kind.entry.name: kind for kind in KINDS}


def kind_of(name: object) -> StatisticType:
    """The statistic of a name, or the one that is given itself.

    Raises:
        PlanError: there is none; says which there are.
    """
    known = kinds()
    if isinstance(name, type) and issubclass(name, Statistic) and name in known.values():
        return name
    if isinstance(name, str) and name in known:
        return known[name]
    if isinstance(name, Statistic):
        message = (
            "a plan is of a class, not of a statistic that counts, which has a .plan: write "
            f"pp.plan(pp.{type(name).__name__}, ...)"
        )
        raise PlanError(message)
    if isinstance(name, type):
        message = f"name a statistic or its class, such as DistinctCount, not {name.__name__}"
        raise PlanError(message)
    *most, last = known
    close = get_close_matches(name, known, 1) if isinstance(name, str) else []
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(most)} and {last}"
    message = f"there is no statistic of that name: {hint}"
    raise PlanError(message)
