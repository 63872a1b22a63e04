"""Statistics over a stream of sensitive events, from memory that can be seized.

>>> import panprivacy as pp
>>> visitors = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000))
>>> visitors.update(["ada", "grace", "ada"])
>>> answer = visitors.release()
"""

from panprivacy._version import VERSION
from panprivacy.cells.law import Law
from panprivacy.checkpoint import Checkpoint
from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import BudgetError, InputError, LostReleaseError, PanPrivacyError, PlanError
from panprivacy.guarantee import Budget, Guarantee, Ledger
from panprivacy.statistics.cropped.statistic import CroppedSum
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.distinct.statistic import DistinctCount
from panprivacy.statistics.grouped import Grouped
from panprivacy.statistics.heavy.statistic import HeavyHitterCount
from panprivacy.statistics.incidence.release import IncidenceRelease
from panprivacy.statistics.incidence.statistic import Incidence
from panprivacy.statistics.planner import plan
from panprivacy.statistics.release import Answers, Name, Release
from panprivacy.statistics.threshold.statistic import ThresholdCount
from panprivacy.statistics.together import Together
from panprivacy.statistics.windowed import Window, Windowed, Windows

__version__ = VERSION

__all__ = [
    "Answers",
    "Budget",
    "BudgetError",
    "Checkpoint",
    "Coins",
    "CroppedSum",
    "Density",
    "DistinctCount",
    "Grouped",
    "Guarantee",
    "HeavyHitterCount",
    "Incidence",
    "IncidenceRelease",
    "InputError",
    "Law",
    "Ledger",
    "LostReleaseError",
    "Name",
    "PanPrivacyError",
    "PlanError",
    "Release",
    "SystemCoins",
    "ThresholdCount",
    "Together",
    "Window",
    "Windowed",
    "Windows",
    "plan",
]
