"""A count without a horizon."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from panprivacy.tables.counters import shapes
from panprivacy.tables.counters.endless import _SUM_SHARE, Endless
from panprivacy.tables.counters.mechanism import variances
from panprivacy.tables.counters.tree import SHARES
from tests.unit.test_counters import ONE


@pytest.mark.parametrize("steps", [256, 2_000])
def test_not_to_know_the_horizon_costs_about_a_fifth_more_error(steps):
    known, unknown = (
        variances(mechanism, steps).mean()
        for mechanism in (shapes.mixed_radix(steps, ONE), Endless(ONE))
    )
    assert 1 < math.sqrt(unknown / known) < 1.28


def test_within_the_first_tree_nothing_has_ended():
    """Then an answer errs as that of a tree of so many steps."""
    one = Endless(ONE)
    _, tree = one._trees(3)
    inner = replace(tree, radices=tree.radices[:-1], shares=tree.shares[:-1])
    left = SHARES / (SHARES - _SUM_SHARE)
    alone = left * shapes.largest_deviation(inner)
    assert one.largest_deviation(4) == pytest.approx(alone, rel=1e-12)
