"""Statistics over a stream of sensitive events, from memory that can be seized.

>>> import panprivacy as pp
>>> visitors = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000))
>>> visitors.update(["ada", "grace", "ada"])
>>> answer = visitors.release()
"""

from panprivacy._version import VERSION
from panprivacy.cells import Law
from panprivacy.checkpoint import Checkpoint
from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import BudgetError, InputError, LostReleaseError, PanPrivacyError, PlanError
from panprivacy.guarantee import Budget, Guarantee, Ledger
from panprivacy.planning import (
    CroppedPlan,
    DensityPlan,
    DistinctPlan,
    HeavyPlan,
    IncidencePlan,
    NetDistinctPlan,
    ThresholdPlan,
    plan,
)
from panprivacy.statistics import (
    CroppedSum,
    Density,
    DistinctCount,
    Grouped,
    HeavyHitterCount,
    Incidence,
    IncidenceRelease,
    Release,
    ThresholdCount,
    Window,
    Windowed,
)

__version__ = VERSION

__all__ = [
    "Budget",
    "BudgetError",
    "Checkpoint",
    "Coins",
    "CroppedPlan",
    "CroppedSum",
    "Density",
    "DensityPlan",
    "DistinctCount",
    "DistinctPlan",
    "Grouped",
    "Guarantee",
    "HeavyHitterCount",
    "HeavyPlan",
    "Incidence",
    "IncidencePlan",
    "IncidenceRelease",
    "InputError",
    "Law",
    "Ledger",
    "LostReleaseError",
    "NetDistinctPlan",
    "PanPrivacyError",
    "PlanError",
    "Release",
    "SystemCoins",
    "ThresholdCount",
    "ThresholdPlan",
    "Window",
    "Windowed",
    "plan",
]
