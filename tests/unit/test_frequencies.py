"""Frequencies and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.local.frequencies import Spread, intervals
from tests.unit.test_randomiser import EACH


def test_an_interval_ends_where_the_estimate_is_just_not_surprising():
    spread = Spread(*(np.array([one]) for one in (300.0, 5_000.0, 2.0, 3.0)))
    low, high = intervals(spread, 10_000, 0.95)
    for end, sign in ((low[0], 1), (high[0], -1)):
        reach = 1.959964 * math.sqrt(5_000 + 2 * end) + 1.5
        assert end + sign * reach == pytest.approx(300, abs=1e-3)


def test_answers_are_a_table_under_their_names():
    randomiser = EACH[0]
    answer = randomiser.estimate(randomiser.randomise([0] * 1_000)).under("browser")
    assert len(answer) == 5
    table = answer.to_arrow()
    assert table["argument"].to_pylist() == [0, 1, 2, 3, 4]
    assert set(table["statistic"].to_pylist()) == {"browser"}
    assert answer[answer.of(3).name] == answer.of(3)
    assert all(one.low <= one.value <= one.high for one in answer.values())
    with pytest.raises(pp.PlanError, match="values are 0 to 4"):
        answer.of(5)
