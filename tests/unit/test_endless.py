"""A count without a horizon."""

from __future__ import annotations

import math

import pytest

from panprivacy.counters import shapes
from panprivacy.counters.endless import Endless
from panprivacy.counters.mechanism import variances
from tests.unit.test_counters import ONE


@pytest.mark.parametrize("steps", [256, 2_000])
def test_not_to_know_the_horizon_costs_about_a_fifth_more_error(steps):
    known, unknown = (
        variances(mechanism, steps).mean()
        for mechanism in (shapes.mixed_radix(steps, ONE), Endless(ONE))
    )
    assert 1 < math.sqrt(unknown / known) < 1.28
