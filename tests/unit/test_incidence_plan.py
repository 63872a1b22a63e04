"""The plan of an incidence count."""

from __future__ import annotations

import contextlib
from contextvars import Context

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.plan import smallest_error
from panprivacy.statistics.useful import check_useful
from panprivacy.testing import SeededCoins
from tests.unit.test_incidence_statistic import fewest_users, releases_lost


@pytest.mark.long
@pytest.mark.parametrize(
    "bound", [1, *(pytest.param(bound, marks=pytest.mark.slow) for bound in (2, 5)), 30]
)
def test_a_plan_at_the_limit_is_hardly_ever_lost(bound):
    """One in 1,000 is allowed; of 300, more than 8 with a probability below 1e-10."""
    users, lost = fewest_users(bound), 0
    for seed in range(300):
        coins = SeededCoins(seed)
        visits = pp.Incidence(epsilon=1, expected=users, bound=bound, coins=coins)
        visits.update(np.arange(users))
        try:
            visits.release()
        except pp.LostReleaseError:
            lost += 1
    assert lost <= 8


@pytest.mark.long
@pytest.mark.parametrize(("bound", "load"), [(1, 2.2), (2, 3), (6, 2.8)])
def test_a_plan_near_pi_is_hardly_ever_lost(bound, load):
    """The most users of these cells that the plan takes; the limits are those of the test above."""
    arguments = {"epsilon": 5, "bound": bound, "cells": 100_000}
    for users in np.linspace(load, 0.2, 200) * 100_000:
        with contextlib.suppress(pp.PlanError):
            pp.Incidence(**arguments, expected=int(users))
            break
    assert releases_lost(100, int(users), **arguments, expected=int(users)) <= 5


def test_a_bad_plan_says_how_bad_it_is():
    bad = pp.DistinctCount(epsilon="0.2", expected=(10, 30), memory=256, deletions=True, bound=3)
    found = f"{smallest_error(bad.plan):.2g} times the number of users"
    with pytest.raises(pp.PlanError, match=found):
        Context().run(check_useful, bad.internals.memory.sizes, bad.plan.request)
