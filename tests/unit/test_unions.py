"""Estimates of unions, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.statistics.overlaps.occupancy import OccupancyModel
from panprivacy.statistics.overlaps.patterns import CellLayout, PatternCounts
from panprivacy.statistics.overlaps.unions import UnionEstimates
from tests.unit.overlap_cases import ABSENT, LEVELLED, MANY, PRESENT, model


def test_moments_are_the_maximum_of_the_likelihood_of_one_level():
    layout = CellLayout(1_000)
    exact = model(layout)
    counts = np.round(1_000 * exact.noise.law(exact.empty(exact.unions([0, 150, 100, 200]))))
    counts[0, 0] += 1_000 - counts.sum()
    observed = PatternCounts(layout, counts.astype(np.int64), ABSENT[:2], PRESENT[:2])
    found = UnionEstimates(observed).unions

    def likelihood(unions):
        return float((counts * np.log(exact.noise.law(exact.empty(unions)))).sum())

    best = likelihood(found)
    for step in np.random.default_rng(3).normal(size=(50, 4)):
        step[0] = 0
        assert likelihood(found + step) < best


@pytest.mark.parametrize("scale", [0.01, 1, 10])
def test_levels_that_are_as_expected_give_the_true_unions(scale):
    exact = OccupancyModel(CellLayout(2_000_000, levels=4), LEVELLED.noise)
    users = MANY * 5_000 * scale
    counts = np.rint(2_000_000 * exact.noise.law(exact.empty(exact.unions(users))))
    noise = exact.noise
    observed = PatternCounts(exact.layout, counts.astype(int), noise.absent, noise.present)
    found = UnionEstimates(observed)
    assert found.unions == pytest.approx(exact.unions(users), rel=2e-3, abs=30)
    assert found.users == pytest.approx(users, rel=0.02, abs=60)


def test_a_union_below_0_stays_there():
    for levels in (1, 3):
        counts = np.full((levels, 4), [1_000 - 3 * 50, 50, 50, 50])  # of nobody 1/4 would be a 1
        observed = PatternCounts(CellLayout(1_000, levels=levels), counts, (0.25,) * 2, (0.75,) * 2)
        found = UnionEstimates(observed)
        assert found.unions[1:].max() < -100
        assert found.users.tolist() == [0, 0, 0, 0]


def test_full_levels_are_not_told_to_be_fuller():
    counts = np.full((3, 4), [60, 190, 190, 560])
    observed = PatternCounts(CellLayout(1_000, levels=3), counts, (0.25,) * 2, (0.75,) * 2)
    found = UnionEstimates(observed)
    assert 4_000 < found.unions[3] < found.model.limit / 2
