"""Which law and how many counters an incidence count takes."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.testing import SeededCoins


@pytest.mark.parametrize(
    "make",
    [
        lambda: pp.Incidence(universe=10**6, bound=10**6, epsilon="1e-18"),
        lambda: pp.DistinctCount(deletions=True, bound=10**6, epsilon="1e-18"),
        lambda: pp.Incidence(universe=10, bound=2, epsilon=2, budget=pp.Budget(1, 1e-20)),
    ],
)
def test_an_epsilon_that_leaves_no_signal_is_refused(make):
    with pytest.raises(pp.PlanError, match="too small"):
        make()


@pytest.mark.parametrize("weights", [[2, 1, 2, 1], [1] * 7])
def test_a_law_whose_noise_cannot_be_undone_is_refused(weights):
    with pytest.raises(pp.PlanError, match="cannot be undone"):
        pp.Incidence(universe=10, bound=3, epsilon=1, law=pp.Law.of(weights))


@pytest.mark.parametrize("weights", [[1, 0, 1], [1, -3, 1], [1.5, 2], [[1, 2]], [3]])
def test_a_law_is_checked_however_it_is_made(weights):
    with pytest.raises(pp.PlanError, match="weights"):
        pp.Law("mine", np.array(weights))


def test_small_bounds_get_the_law_with_the_smallest_error():
    plan = pp.Incidence(universe=100_000, bound=5, epsilon=4).plan
    budget = pp.Budget("3.9", "0.1")
    others = [pp.Law.flat(7, "3.9"), pp.Law.singer(13, "3.9")]
    for law in others:
        other = pp.Incidence(universe=100_000, bound=5, epsilon=4, law=law, budget=budget).plan
        assert plan.absolute_error(8) < other.absolute_error(8)


@pytest.mark.parametrize(
    ("arguments", "users"),
    [
        ({"expected": 50_000, "bound": 5, "epsilon": 1}, 1_000_000),
        ({"expected": 10_000, "bound": 1, "epsilon": 2}, 100_000),
        ({"cells": 3_000, "bound": 5, "epsilon": 6}, 30_000),
    ],
)
def test_a_table_that_is_too_full_is_refused(arguments, users):
    """A single frequency of pure noise passes once in 400 tables; three tables pass for no one."""
    refused = 0
    for seed in range(3):
        visits = pp.Incidence(**arguments, coins=SeededCoins(seed))
        visits.update(np.arange(users), np.arange(users) % arguments["bound"] + 1)
        try:
            visits.release()
        except pp.LostReleaseError as error:
            refused += "too full" in str(error)
    assert refused == 3


@pytest.mark.parametrize(
    "arguments",
    [
        {"bound": 2, "epsilon": 20, "expected": 4_000_000, "cells": 1_000_000},
        {"bound": 1, "epsilon": 2, "expected": 80_000_000, "cells": 20_000_000},
    ],
)
def test_loads_whose_logarithm_is_not_unique_are_refused(arguments):
    with pytest.raises(pp.PlanError, match="take more cells"):
        pp.Incidence(**arguments)


def test_a_universe_gets_a_counter_each_as_far_as_memory_reaches():
    """Wider counters of a better law are not worth a sample of the users."""
    plan = pp.plan("incidence", universe=60_000_000, bound=100, epsilon=1)
    assert plan.cells == 60_000_000
    assert plan.table.nbytes <= 1 << 26
