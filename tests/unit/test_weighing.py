"""Weights of patterns and levels: unbiased, and as good as can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.statistics.overlaps.intervals import SetQuery
from panprivacy.statistics.overlaps.occupancy import OccupancyModel
from panprivacy.statistics.overlaps.patterns import CellLayout, PatternCounts
from panprivacy.statistics.overlaps.prediction import standard_error
from panprivacy.statistics.overlaps.unions import UnionEstimates
from panprivacy.statistics.overlaps.weighing import MOST_JOINT, weigh
from tests.unit.overlap_cases import ABSENT, LEVELLED, MANY, PRESENT, model, noise, outcomes


@pytest.mark.parametrize("layout", [CellLayout(4, universe=4), CellLayout(2, universe=4)])
def test_one_user_a_cell_is_unbiased_and_errs_as_predicted(layout):
    users, query = [0, 1, 1, 2], SetQuery(np.array([0, 0, 0.0, 1]))
    values, laws = [], []
    for counts, law in outcomes(layout, users):
        estimator = UnionEstimates(PatternCounts(layout, counts, ABSENT[:2], PRESENT[:2]))
        values.append(estimator.model.weights(query.chosen) @ estimator.unions)
        laws.append(law)
    mean = np.average(values, weights=laws)
    assert mean == pytest.approx(2)
    exact = model(layout)
    variance = weigh(exact, np.array(users), query.chosen).variance
    variance -= exact.fixed(np.array(users), query.chosen)
    assert np.average((np.array(values) - mean) ** 2, weights=laws) == pytest.approx(variance)
    error = standard_error(layout, noise(2), np.array(users), query)
    assert error == pytest.approx(math.sqrt(variance))


def test_the_share_of_hashed_cells_errs_as_predicted_to_first_order():
    layout, users = CellLayout(3), np.array([0, 1, 1, 1])
    exact = model(layout)
    shares, laws = [], []
    for counts, law in outcomes(layout, users):
        shares.append(exact.noise.debias(counts[0] / 3)[3])
        laws.append(law)
    mean = np.average(shares, weights=laws)
    assert mean == pytest.approx((2 / 3) ** 3)
    variance = np.average((np.array(shares) - mean) ** 2, weights=laws)
    slope = exact.slopes(exact.empty(exact.unions(users)))[0, 3]
    anyone = np.array([0, 1.0, 1, 1])
    predicted = weigh(exact, users, anyone).variance - exact.fixed(users, anyone)
    assert variance == pytest.approx(slope**2 * predicted, rel=0.05)  # of three cells; it is O(1/m)


@pytest.mark.parametrize("levels", [1, 4])
def test_influence_is_unbiased_and_varies_as_it_says(levels):
    exact = OccupancyModel(CellLayout(200, levels=levels), LEVELLED.noise)
    chosen = np.array([0, 0, 0, 1.0, 0, 1, 1, 1])
    weighing = weigh(exact, MANY, chosen)
    law = exact.noise.law(exact.empty(exact.unions(MANY)))
    mean = (law * weighing.influence).sum(axis=-1)
    spread = (law * weighing.influence**2).sum(axis=-1) - mean**2
    assert spread.sum() / 200 == pytest.approx(weighing.variance)
    step = np.random.default_rng(6).normal(size=8) * 1e-4
    step[0] = 0
    moved = exact.noise.law(exact.empty(exact.unions(MANY + step))) - law
    assert (moved * weighing.influence).sum() == pytest.approx(chosen @ step, rel=1e-3)
    assert exact.weights(chosen) @ weighing.along == pytest.approx(weighing.variance)


def test_joint_weights_are_never_worse_than_those_of_a_level_alone(monkeypatch):
    gains = []
    for chosen in np.eye(8)[1:]:
        jointly = weigh(LEVELLED, MANY, chosen).variance
        monkeypatch.setattr("panprivacy.statistics.overlaps.weighing.MOST_JOINT", 0)
        alone = weigh(LEVELLED, MANY, chosen).variance
        monkeypatch.setattr("panprivacy.statistics.overlaps.weighing.MOST_JOINT", MOST_JOINT)
        gains.append(float(alone / jointly))
    assert min(gains) > 1 - 1e-9
    assert max(gains) > 1.02


def test_joint_weights_reach_the_limit_of_cramer_and_rao():
    chosen, step = np.array([0, 0, 0, 1.0, 0, 0, 0, 1]), 1e-3
    laws = [
        LEVELLED.noise.law(LEVELLED.empty(LEVELLED.unions(MANY + sign * step * np.eye(8)[s])))
        for s in range(1, 8)
        for sign in (1, -1)
    ]
    slopes = np.array(
        [(up - down) / (2 * step) for up, down in zip(laws[::2], laws[1::2], strict=True)]
    )
    law = LEVELLED.noise.law(LEVELLED.empty(LEVELLED.unions(MANY)))
    information = 200 * np.einsum("alx,blx->ab", slopes / law, slopes)
    limit = chosen[1:] @ np.linalg.solve(information, chosen[1:])
    assert weigh(LEVELLED, MANY, chosen).variance == pytest.approx(limit, rel=1e-5)
