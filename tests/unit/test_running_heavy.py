"""Running counts of heavy hitters: what is planned and refused."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from tests.unit.test_running_cropped import HEAVY


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"total": 99}, "must be at least 2 k"),
        ({"cells": 99}, "must be at least 2 k"),
        ({"memory": 99}, "memory must be larger: 100 cells"),
        ({"intrusions": 1}, "no intrusion can be announced to a running count of heavy hitters"),
        ({"independence": 3}, "independence must be at least 4"),
    ],
)
def test_what_heavy_hitters_cannot_be_planned(wrong, said):
    with pytest.raises(pp.PlanError, match=said):
        pp.RunningHeavyHitters(**{**HEAVY, **wrong})


@pytest.mark.parametrize("changed", [{}, {"k": 10, "total": 1_000, "epsilon": 1}, {"bound": 40}])
def test_the_worst_stream_of_heavy_hitters_has_all_users_where_noise_counts_most(changed):
    plan = pp.RunningHeavyHitters(**{**HEAVY, **changed}).plan
    empty, *others = plan.inner.variance(np.arange(2 * plan.high, dtype=float))
    users = plan.total / np.arange(1, 2 * plan.high)  # all in one state, whichever
    worst = plan.cells * empty + max(0.0, (users * (np.array(others) - empty)).max())
    predicted = plan.cells * plan.model_of(0.0).over_cells.variance * plan.full**2
    assert predicted == pytest.approx(worst, rel=1e-3)
