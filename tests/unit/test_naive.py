"""Counts of which every step has noise of its own, and randomised responses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.privacy.guarantee import randomised_response
from panprivacy.tables.counters.mechanism import variances
from panprivacy.tables.counters.naive import RandomisedResponseCounter
from tests.contract.doubles import exact_law
from tests.unit.test_counters import ONE, taken


@pytest.mark.parametrize("bound", [1, 2])
def test_randomised_responses_add_up_without_bias(bound):
    """On every outcome of their coins; the predicted variance is theirs at a bound of 1."""
    mechanism, amounts = RandomisedResponseCounter(3, ONE, bound), [bound, 0, 1]
    law = exact_law(lambda coins: tuple(taken(mechanism, coins, amounts)[0][0]))
    for step, total in enumerate(np.cumsum(amounts)):
        mean = sum(float(chance) * values[step] for values, chance in law.items())
        assert mean == pytest.approx(total, abs=1e-9)
        spread = sum(float(chance) * (values[step] - total) ** 2 for values, chance in law.items())
        predicted = variances(mechanism)[step]
        assert spread == pytest.approx(predicted) if bound == 1 else spread < predicted * 1.001
    surest = randomised_response(ONE)
    assert float(surest / (1 - surest)) == pytest.approx(math.e)
