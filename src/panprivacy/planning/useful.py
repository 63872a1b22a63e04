"""Whether the answers of a plan say anything, and if not, what would."""

from __future__ import annotations

from fractions import Fraction

from panprivacy.errors import PlanError
from panprivacy.planning.cropped import CroppedPlan
from panprivacy.planning.density import DensityPlan
from panprivacy.planning.distinct import DistinctPlan
from panprivacy.planning.heavy import HeavyPlan
from panprivacy.planning.incidence import IncidencePlan
from panprivacy.planning.net import NetDistinctPlan
from panprivacy.planning.search import (
    SIZES,
    Maker,
    Searched,
    default_memory,
    maker,
    share_of_error,
    ways_to,
)
from panprivacy.planning.threshold import ThresholdPlan

AnyPlan = Searched | NetDistinctPlan | IncidencePlan

_USEFUL = 0.5

_NAMES = {
    DistinctPlan: "distinct",
    DensityPlan: "density",
    CroppedPlan: "cropped-sum",
    ThresholdPlan: "threshold",
    HeavyPlan: "heavy-hitters",
}
_LIMITS = {
    DistinctPlan: (1.0, 0.5),
    DensityPlan: (_USEFUL, _USEFUL / 2),
    CroppedPlan: (0.25, 0.2),
    ThresholdPlan: (0.25, 0.2),
    HeavyPlan: (0.25, 0.2),
}
"""Standard deviations from which on answers are noise, and what would do, as `share_of_error`.

A block plan is for one count, whose interval at a quarter covers all that there can be.
"""


def check_useful(
    planned: AnyPlan, parts: Fraction = Fraction(1), memory: int | None = None
) -> None:
    """Refuse a plan whose answers would be noise, saying what would do better.

    Args:
        planned: the plan.
        parts: into how many such parts the epsilon is split that can be changed.
        memory: bytes that the table was allowed; None if nobody said.

    Raises:
        PlanError: the standard deviation exceeds the number of users over the whole expected
            range; or half of the universe, a quarter for a threshold; or a quarter of the largest
            sum, or of k.
    """
    if isinstance(planned, IncidencePlan | NetDistinctPlan):
        _check_counters(planned)
        return
    most, good = _LIMITS[type(planned)]
    found = share_of_error(planned)
    if found < most:
        return

    def useful(candidate: Searched) -> bool:
        return share_of_error(candidate) < good

    statistic, make = _maker_of(planned)
    bits = isinstance(planned, DensityPlan | DistinctPlan)  # they take all the memory they may
    within = planned.table.nbytes if bits else memory or default_memory(statistic)
    ways = ways_to(make, planned.request.epsilon, within, useful, parts)
    message = (
        f"this plan gives a standard deviation of {found:.2g} {_unit(planned)}: the answer would "
        f"be noise; {ways}"
    )
    raise PlanError(message)


def _maker_of(planned: Searched) -> tuple[str, Maker]:
    """What makes plans for the same problem, and its name."""
    statistic, request = _NAMES[type(planned)], planned.request
    given = {name: getattr(planned, name) for name in SIZES[statistic]}
    return statistic, maker(statistic, given, request.releases, request.intrusions)


def _unit(planned: Searched) -> str:
    """What a standard deviation is measured in."""
    if isinstance(planned, CroppedPlan):
        return f"times the largest sum, {planned.most:,.0f}"
    if isinstance(planned, HeavyPlan):
        return "times k"
    return "universes" if isinstance(planned, DensityPlan | ThresholdPlan) else "times the count"


def _check_counters(planned: IncidencePlan | NetDistinctPlan) -> None:
    if isinstance(planned, NetDistinctPlan):
        relative, most = planned.best_error(), 1.0
    else:
        users = planned.universe or planned.expected or planned.cells
        relative, most = planned.error() / users, _USEFUL
    if relative < most:
        return
    full = isinstance(planned, IncidencePlan) and planned.cells == planned.universe
    ways = "a larger epsilon" if full else "more memory, a larger epsilon"
    message = (
        f"this plan gives a standard deviation of {relative:.2g} times the users: the answer would "
        f"be noise; {ways} or more users would do"
    )
    raise PlanError(message)
