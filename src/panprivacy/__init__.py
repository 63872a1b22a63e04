"""Statistics over a stream of sensitive events, from memory that can be seized.

>>> import panprivacy as pp
>>> visitors = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000))
>>> visitors.update(["ada", "grace", "ada"])
>>> answer = visitors.release()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from panprivacy._version import VERSION

if TYPE_CHECKING:
    from panprivacy import cluster as cluster
    from panprivacy import continual as continual
    from panprivacy import federated as federated
    from panprivacy import local as local
    from panprivacy import online as online
    from panprivacy import queries as queries
    from panprivacy.cells.law import Law
    from panprivacy.checkpoint import Checkpoint
    from panprivacy.coins import Coins, SystemCoins
    from panprivacy.errors import (
        BudgetError,
        InputError,
        LostReleaseError,
        PanPrivacyError,
        PlanError,
        WeakEpsilonWarning,
    )
    from panprivacy.guarantee import Budget, Guarantee, Ledger, PrivacyLoss
    from panprivacy.merging import merge
    from panprivacy.statistics.cropped.statistic import CroppedSum
    from panprivacy.statistics.density.statistic import Density
    from panprivacy.statistics.distinct.statistic import DistinctCount
    from panprivacy.statistics.grouped import Grouped
    from panprivacy.statistics.heavy.statistic import HeavyHitterCount
    from panprivacy.statistics.incidence.release import IncidenceRelease
    from panprivacy.statistics.incidence.statistic import Incidence
    from panprivacy.statistics.inner.statistic import InnerProduct
    from panprivacy.statistics.moment.statistic import FrequencyMoment
    from panprivacy.statistics.moving import Continual
    from panprivacy.statistics.planner import plan
    from panprivacy.statistics.release import Answers, Name, Release
    from panprivacy.statistics.running.statistic import RunningCount
    from panprivacy.statistics.running_cropped.statistic import RunningCroppedSum
    from panprivacy.statistics.running_distinct.statistic import RunningDistinct
    from panprivacy.statistics.running_heavy.statistic import RunningHeavyHitters
    from panprivacy.statistics.threshold.statistic import ThresholdCount
    from panprivacy.statistics.together import Together
    from panprivacy.statistics.windowed import Windowed
    from panprivacy.statistics.windows import Window, Windows

__version__ = VERSION

__all__ = [
    "Answers",
    "Budget",
    "BudgetError",
    "Checkpoint",
    "Coins",
    "Continual",
    "CroppedSum",
    "Density",
    "DistinctCount",
    "FrequencyMoment",
    "Grouped",
    "Guarantee",
    "HeavyHitterCount",
    "Incidence",
    "IncidenceRelease",
    "InnerProduct",
    "InputError",
    "Law",
    "Ledger",
    "LostReleaseError",
    "Name",
    "PanPrivacyError",
    "PlanError",
    "PrivacyLoss",
    "Release",
    "RunningCount",
    "RunningCroppedSum",
    "RunningDistinct",
    "RunningHeavyHitters",
    "SystemCoins",
    "ThresholdCount",
    "Together",
    "WeakEpsilonWarning",
    "Window",
    "Windowed",
    "Windows",
    "merge",
    "plan",
]

_HOMES = {
    "cells.law": ["Law"],
    "checkpoint": ["Checkpoint"],
    "coins": ["Coins", "SystemCoins"],
    "errors": [
        "BudgetError",
        "InputError",
        "LostReleaseError",
        "PanPrivacyError",
        "PlanError",
        "WeakEpsilonWarning",
    ],
    "guarantee": ["Budget", "Guarantee", "Ledger", "PrivacyLoss"],
    "merging": ["merge"],
    "statistics.cropped.statistic": ["CroppedSum"],
    "statistics.density.statistic": ["Density"],
    "statistics.distinct.statistic": ["DistinctCount"],
    "statistics.grouped": ["Grouped"],
    "statistics.heavy.statistic": ["HeavyHitterCount"],
    "statistics.incidence.release": ["IncidenceRelease"],
    "statistics.incidence.statistic": ["Incidence"],
    "statistics.inner.statistic": ["InnerProduct"],
    "statistics.moment.statistic": ["FrequencyMoment"],
    "statistics.moving": ["Continual"],
    "statistics.planner": ["plan"],
    "statistics.release": ["Answers", "Name", "Release"],
    "statistics.running.statistic": ["RunningCount"],
    "statistics.running_cropped.statistic": ["RunningCroppedSum"],
    "statistics.running_distinct.statistic": ["RunningDistinct"],
    "statistics.running_heavy.statistic": ["RunningHeavyHitters"],
    "statistics.threshold.statistic": ["ThresholdCount"],
    "statistics.together": ["Together"],
    "statistics.windowed": ["Windowed"],
    "statistics.windows": ["Window", "Windows"],
}
"""The module of each name. It is imported when the name is first asked for, because NumPy and Arrow
take longer to import than a command takes that only shows its help.
"""

_FOLDERS = ("cluster", "continual", "federated", "local", "online", "queries")
"""Parts of the interface that are asked for by the name of their module."""


if not TYPE_CHECKING:  # to a type checker it would make whatever is misspelt an Any

    def __getattr__(name: str) -> Any:
        """A name of the public interface, or the module of one."""
        if name in _FOLDERS or any(home.partition(".")[0] == name for home in _HOMES):
            return import_module(f"{__name__}.{name}")
        for home, names in _HOMES.items():
            if name in names:
                return globals().setdefault(
                    name, getattr(import_module(f"{__name__}.{home}"), name)
                )
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=import_module(__name__))


def __dir__() -> list[str]:
    """What there is, imported or not."""
    return sorted({*globals(), *__all__})
