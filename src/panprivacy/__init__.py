"""Statistics over a stream of sensitive events, from memory that can be seized.

>>> import panprivacy as pp
>>> visitors = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000))
>>> visitors.update(["ada", "grace", "ada"])
>>> answer = visitors.release()
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from panprivacy._version import VERSION

if not sys.platform.startswith("linux"):
    _says = (
        "panprivacy runs on Linux, where it can lock and overwrite memory: on macOS and Windows "
    )
    _says += "take a container or WSL"
    raise ImportError(_says)

if TYPE_CHECKING:
    from panprivacy import cluster as cluster
    from panprivacy import continual as continual
    from panprivacy.devices import federated as federated
    from panprivacy.errors import (
        BudgetError,
        InputError,
        LostReleaseError,
        NoiseError,
        PanPrivacyError,
        PlanError,
        WeakEpsilonWarning,
    )
    from panprivacy.papers import local as local
    from panprivacy.papers import online as online
    from panprivacy.papers import queries as queries
    from panprivacy.privacy.coins import Coins, SystemCoins
    from panprivacy.privacy.guarantee import Budget, Guarantee, Ledger, PrivacyLoss
    from panprivacy.statistics.both.statistic import BothCount
    from panprivacy.statistics.checkpoint import Checkpoint
    from panprivacy.statistics.composites.grouped import Grouped
    from panprivacy.statistics.composites.moving import ChangeTriggered
    from panprivacy.statistics.composites.together import Together
    from panprivacy.statistics.composites.windowed import Windowed
    from panprivacy.statistics.composites.windows import Window, Windows
    from panprivacy.statistics.cropped.statistic import CroppedSum
    from panprivacy.statistics.density.statistic import Density
    from panprivacy.statistics.distinct.statistic import DistinctCount
    from panprivacy.statistics.heavy.statistic import HeavyHitterCount
    from panprivacy.statistics.histogram.release import HistogramRelease
    from panprivacy.statistics.histogram.statistic import Histogram
    from panprivacy.statistics.incidence.release import IncidenceRelease
    from panprivacy.statistics.incidence.statistic import Incidence
    from panprivacy.statistics.inner.statistic import InnerProduct
    from panprivacy.statistics.merging import merge
    from panprivacy.statistics.moment.statistic import FrequencyMoment
    from panprivacy.statistics.overlaps.joining import join
    from panprivacy.statistics.overlaps.sets import Overlap, SketchSet, overlap
    from panprivacy.statistics.overlaps.sketch import Sketch
    from panprivacy.statistics.plan_search import plan
    from panprivacy.statistics.release import Answers, Name, Release
    from panprivacy.statistics.running.count import RunningCount
    from panprivacy.statistics.running.cropped import RunningCroppedSum
    from panprivacy.statistics.running.distinct import RunningDistinct
    from panprivacy.statistics.running.heavy import RunningHeavyHitters
    from panprivacy.statistics.sketch.released import SketchRelease
    from panprivacy.statistics.sketch.statistic import OverlapSketch
    from panprivacy.statistics.threshold.statistic import ThresholdCount
    from panprivacy.tables.cells.law import Law

__version__ = VERSION

__all__ = [
    "Answers",
    "BothCount",
    "Budget",
    "BudgetError",
    "ChangeTriggered",
    "Checkpoint",
    "Coins",
    "CroppedSum",
    "Density",
    "DistinctCount",
    "FrequencyMoment",
    "Grouped",
    "Guarantee",
    "HeavyHitterCount",
    "Histogram",
    "HistogramRelease",
    "Incidence",
    "IncidenceRelease",
    "InnerProduct",
    "InputError",
    "Law",
    "Ledger",
    "LostReleaseError",
    "Name",
    "NoiseError",
    "Overlap",
    "OverlapSketch",
    "PanPrivacyError",
    "PlanError",
    "PrivacyLoss",
    "Release",
    "RunningCount",
    "RunningCroppedSum",
    "RunningDistinct",
    "RunningHeavyHitters",
    "Sketch",
    "SketchRelease",
    "SketchSet",
    "SystemCoins",
    "ThresholdCount",
    "Together",
    "WeakEpsilonWarning",
    "Window",
    "Windowed",
    "Windows",
    "join",
    "merge",
    "overlap",
    "plan",
]

_HOMES = {
    "tables.cells.law": ["Law"],
    "statistics.checkpoint": ["Checkpoint"],
    "privacy.coins": ["Coins", "SystemCoins"],
    "errors": [
        "BudgetError",
        "InputError",
        "LostReleaseError",
        "NoiseError",
        "PanPrivacyError",
        "PlanError",
        "WeakEpsilonWarning",
    ],
    "privacy.guarantee": ["Budget", "Guarantee", "Ledger", "PrivacyLoss"],
    "statistics.merging": ["merge"],
    "statistics.cropped.statistic": ["CroppedSum"],
    "statistics.density.statistic": ["Density"],
    "statistics.distinct.statistic": ["DistinctCount"],
    "statistics.composites.grouped": ["Grouped"],
    "statistics.heavy.statistic": ["HeavyHitterCount"],
    "statistics.histogram.release": ["HistogramRelease"],
    "statistics.histogram.statistic": ["Histogram"],
    "statistics.incidence.release": ["IncidenceRelease"],
    "statistics.incidence.statistic": ["Incidence"],
    "statistics.both.statistic": ["BothCount"],
    "statistics.inner.statistic": ["InnerProduct"],
    "statistics.moment.statistic": ["FrequencyMoment"],
    "statistics.composites.moving": ["ChangeTriggered"],
    "statistics.plan_search": ["plan"],
    "statistics.release": ["Answers", "Name", "Release"],
    "statistics.running.count": ["RunningCount"],
    "statistics.running.cropped": ["RunningCroppedSum"],
    "statistics.running.distinct": ["RunningDistinct"],
    "statistics.running.heavy": ["RunningHeavyHitters"],
    "statistics.sketch.released": ["SketchRelease"],
    "statistics.overlaps.joining": ["join"],
    "statistics.overlaps.sets": ["Overlap", "SketchSet", "overlap"],
    "statistics.overlaps.sketch": ["Sketch"],
    "statistics.sketch.statistic": ["OverlapSketch"],
    "statistics.threshold.statistic": ["ThresholdCount"],
    "statistics.composites.together": ["Together"],
    "statistics.composites.windowed": ["Windowed"],
    "statistics.composites.windows": ["Window", "Windows"],
}
"""The module of each name. It is imported when the name is first asked for, because NumPy and Arrow
take longer to import than a command takes that only shows its help.
"""

_FOLDERS = {
    "cluster": "cluster",
    "continual": "continual",
    "errors": "errors",
    "federated": "devices.federated",
    "local": "papers.local",
    "online": "papers.online",
    "queries": "papers.queries",
}
"""The folder of each part of the interface that has a name of its own."""


if not TYPE_CHECKING:  # to a type checker it would make whatever is misspelt an Any

    def __getattr__(name: str) -> Any:
        """A name of the public interface, or the module of one."""
        if name in _FOLDERS:
            return import_module(f"{__name__}.{_FOLDERS[name]}")
        for home, names in _HOMES.items():
            if name in names:
                return globals().setdefault(
                    name, getattr(import_module(f"{__name__}.{home}"), name)
                )
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=import_module(__name__))


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__})
