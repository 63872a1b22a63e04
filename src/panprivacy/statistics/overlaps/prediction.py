"""The error of a set operation before any table is collected.

It is that of the estimate of `intervals`, at numbers of users that are given:

>>> layout = CellLayout(cells_per_level=300_000)
>>> noise = BitNoise(absent=(0.269, 0.269), present=(0.731, 0.731))  # epsilon 1
>>> users = two_windows(100_000, 100_000, share=0.5)
>>> error = predict(layout, noise, users)
>>> round(error.return_rate, 4), round(error.intersection)
(0.0104, 1019)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.statistics.overlaps.intervals import SetQuery
from panprivacy.statistics.overlaps.occupancy import BitNoise, OccupancyModel
from panprivacy.statistics.overlaps.patterns import CellLayout, Floats, members
from panprivacy.statistics.overlaps.weighing import weigh


@dataclass(frozen=True, slots=True)
class OverlapErrors:
    """Predicted standard errors of what is asked of two tables or more.

    Args:
        union: of the number of users of any table.
        intersection: of all tables.
        return_rate: of the share of the users of the first table who are in all.
        jaccard: of the share of the users of any table who are in all.
    """

    union: float
    intersection: float
    return_rate: float
    jaccard: float


def two_windows(first: float, second: float, share: float) -> Floats:
    """Return the number of users of each pattern of two windows; float64[4].

    Args:
        first: users of the first window, 1 or more.
        second: users of the second one.
        share: the share of the users of the first one who are in the second one too, 0 .. 1.

    Raises:
        PlanError: fewer users are in the second one than return.
    """
    if not (math.isfinite(first) and math.isfinite(second) and 0 <= share <= 1 <= first):
        message = "a return rate needs a user or more in the first window, and a share from 0 to 1"
        raise PlanError(message)
    both = share * first
    if both > second:
        message = (
            f"{share:g} of {first:,.0f} users are more than the {second:,.0f} of the second window"
        )
        raise PlanError(message)
    return np.array([0.0, first - both, second - both, both])


def predict(layout: CellLayout, noise: BitNoise, users: Floats) -> OverlapErrors:
    """Return the predicted standard errors at these numbers of users.

    Accuracy: to first order in the error; of ratios, where the error of the whole is small beside
    it. [tests/statistical/test_overlaps.py]

    Args:
        layout: cells of all tables.
        noise: of the bits of each table.
        users: of each pattern of tables; float64[2**k].
    """
    sets = members(len(noise.absent))
    any_table, all_tables = sets.any(axis=0).astype(float), sets.all(axis=0).astype(float)

    def error(chosen: Floats, whole: Floats | None = None) -> float:
        return standard_error(layout, noise, users, SetQuery(chosen, whole))

    return OverlapErrors(
        error(any_table),
        error(all_tables),
        error(all_tables, sets[0].astype(float)),
        error(all_tables, any_table),
    )


def standard_error(layout: CellLayout, noise: BitNoise, users: Floats, query: SetQuery) -> float:
    """Return the predicted standard error of any question at these numbers of users.

    Args:
        layout: cells of all tables.
        noise: of the bits of each table.
        users: of each pattern of tables; float64[2**k].
        query: the question.

    Returns:
        The error; infinite for a share of no users.
    """
    counted = np.array(users, float)
    counted[0] = 0
    whole = 1.0 if query.whole is None else float(query.whole @ counted)
    if whole <= 0:
        return math.inf
    answer = np.array(float(query.chosen @ counted) / whole)
    chosen, _ = query.hypothesis(answer)
    model = OccupancyModel(layout, noise)
    variance = weigh(model, counted, chosen).variance - model.fixed(counted, chosen)
    return math.sqrt(max(float(variance), 0.0)) / whole
