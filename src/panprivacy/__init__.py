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
    from panprivacy.cells import Law
    from panprivacy.checkpoint import Checkpoint
    from panprivacy.coins import Coins, SystemCoins
    from panprivacy.errors import (
        BudgetError,
        InputError,
        LostReleaseError,
        PanPrivacyError,
        PlanError,
    )
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

_HOMES = {
    "cells": ["Law"],
    "checkpoint": ["Checkpoint"],
    "coins": ["Coins", "SystemCoins"],
    "errors": ["BudgetError", "InputError", "LostReleaseError", "PanPrivacyError", "PlanError"],
    "guarantee": ["Budget", "Guarantee", "Ledger"],
    "planning": [
        "CroppedPlan",
        "DensityPlan",
        "DistinctPlan",
        "HeavyPlan",
        "IncidencePlan",
        "NetDistinctPlan",
        "ThresholdPlan",
        "plan",
    ],
    "statistics": [
        "CroppedSum",
        "Density",
        "DistinctCount",
        "Grouped",
        "HeavyHitterCount",
        "Incidence",
        "IncidenceRelease",
        "Release",
        "ThresholdCount",
        "Window",
        "Windowed",
    ],
}
"""The module of each name. It is imported when the name is first asked for, because NumPy and Arrow
take longer to import than a command takes that only shows its help.
"""


def __getattr__(name: str) -> Any:
    """A name of the public interface, or the module of one."""
    if name in _HOMES:
        return import_module(f"{__name__}.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f"{__name__}.{home}"), name))
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=import_module(__name__))


def __dir__() -> list[str]:
    """What there is, imported or not."""
    return sorted({*globals(), *__all__})
