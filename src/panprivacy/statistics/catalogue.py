"""The statistics there are: every program reads them here, and knows no other.

A statistic is one folder and one line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from panprivacy.errors import PlanError
from panprivacy.statistics.cropped.statistic import CroppedSum
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.distinct.statistic import DistinctCount
from panprivacy.statistics.heavy.statistic import HeavyHitterCount
from panprivacy.statistics.incidence.statistic import Incidence
from panprivacy.statistics.inner.statistic import InnerProduct
from panprivacy.statistics.moment.statistic import FrequencyMoment
from panprivacy.statistics.running.statistic import RunningCount
from panprivacy.statistics.running_cropped.statistic import RunningCroppedSum
from panprivacy.statistics.running_distinct.statistic import RunningDistinct
from panprivacy.statistics.running_heavy.statistic import RunningHeavyHitters
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.threshold.statistic import ThresholdCount

StatisticType = type[Statistic[Any, Any]]

KINDS: list[StatisticType] = [
    DistinctCount,
    Density,
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
]


def kinds() -> Mapping[str, StatisticType]:
    """All statistics, by name."""
    return {kind.name: kind for kind in KINDS}


def summary(kind: StatisticType) -> str:
    """What a statistic tells, in one sentence: that of its sizes."""
    return " ".join((kind.sizes_type.__doc__ or "").split()).removesuffix(".")


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
    *most, last = known
    close = get_close_matches(str(name), known, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(most)} and {last}"
    message = f"there is no statistic of that name: {hint}"
    raise PlanError(message)
