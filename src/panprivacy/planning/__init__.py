"""Sizes and budgets, chosen before anything is collected.

A plan is a function of public numbers only: epsilon, the expected number of users or the
universe, memory, how many releases and announced intrusions there will be. It predicts the error
with the same model that later decodes the counts, and equal requests share one cached plan.
"""

from panprivacy.planning.cropped import CroppedPlan, plan_cropped
from panprivacy.planning.cropped_levels import plan_cropped_levels
from panprivacy.planning.density import DensityPlan, plan_density
from panprivacy.planning.distinct import DistinctPlan, plan_distinct
from panprivacy.planning.heavy import HeavyPlan, plan_heavy
from panprivacy.planning.incidence import IncidencePlan, plan_incidence
from panprivacy.planning.net import NetDistinctPlan, plan_net_distinct
from panprivacy.planning.request import Request, Split
from panprivacy.planning.search import Searched, plan, share_of_margin
from panprivacy.planning.threshold import ThresholdPlan, plan_threshold
from panprivacy.planning.useful import AnyPlan, check_useful

__all__ = [
    "AnyPlan",
    "CroppedPlan",
    "DensityPlan",
    "DistinctPlan",
    "HeavyPlan",
    "IncidencePlan",
    "NetDistinctPlan",
    "Request",
    "Searched",
    "Split",
    "ThresholdPlan",
    "check_useful",
    "plan",
    "plan_cropped",
    "plan_cropped_levels",
    "plan_density",
    "plan_distinct",
    "plan_heavy",
    "plan_incidence",
    "plan_net_distinct",
    "plan_threshold",
    "share_of_margin",
]
