"""A learner of one cut."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers import local


@pytest.mark.parametrize("cuts", [[], [[]], [[float("nan")]]])
def test_a_learner_needs_cuts(cuts):
    with pytest.raises(pp.PlanError, match="cuts"):
        local.learn_stump(local.LROracle(np.zeros((9, 2)), 1, domain=[(0, 0)]), cuts, 0.1)


def test_the_opposite_rule_is_found_where_it_errs_less():
    age = np.arange(40_000) % 100
    records = np.column_stack([age % 7, age, age < 30])
    oracle = local.LROracle(records, 4, domain=np.unique(records, axis=0))
    learned = local.learn_stump(oracle, [[3], [10, 30, 50]], 0.1, failure=1e-6)
    assert learned.stump == local.Stump(1, 30, 0)
    assert learned.error.low <= 0 <= learned.error.high
