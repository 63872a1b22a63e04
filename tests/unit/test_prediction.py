"""Errors of set operations before any table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.errors import PlanError
from panprivacy.statistics.overlaps import operations, prediction
from panprivacy.statistics.overlaps.patterns import CellLayout, PatternCounts
from panprivacy.statistics.overlaps.prediction import predict, two_windows
from tests.unit.overlap_cases import ABSENT, PRESENT, model, noise


def test_two_windows_have_four_patterns():
    assert two_windows(100, 200, 0.3).tolist() == [0, 70, 170, 30]
    with pytest.raises(PlanError, match=r"0\.5 of 100 users are more than the 20"):
        two_windows(100, 20, 0.5)
    for wrong in ((0, 10, 0.5), (10, 10, 1.5), (10, 10, -0.1), (math.inf, 1, 0.1)):
        with pytest.raises(PlanError, match="needs a user or more"):
            two_windows(*wrong)


def test_predicted_errors_are_those_of_the_counts_that_are_expected():
    layout, users = CellLayout(30_000), two_windows(10_000, 12_000, 0.4)
    exact = model(layout)
    law = exact.noise.law(exact.empty(exact.unions(users)))
    observed = PatternCounts(layout, np.rint(30_000 * law).astype(int), ABSENT[:2], PRESENT[:2])
    errors = predict(layout, exact.noise, users)
    for question in ("union", "intersection", "return_rate", "jaccard"):
        answer = getattr(operations, question)(observed)
        assert answer.standard_error == pytest.approx(getattr(errors, question), rel=0.01)
    rate = operations.return_rate(observed)
    assert rate.estimate == pytest.approx(0.4, abs=0.01)
    assert (rate.high - rate.low) / 2 == pytest.approx(1.96 * errors.return_rate, rel=0.02)


def test_a_share_of_nobody_has_no_error():
    nobody = np.zeros(4)
    assert math.isinf(prediction.predict(CellLayout(100), noise(2), nobody).return_rate)
