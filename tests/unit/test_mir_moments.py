"""Moments by weighted counters: sizes that do not go together, and states that go on."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.papers.published import (
    CroppedFirstMoment,
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tau": 0},
        {"tau": 1.5},
        {"universe": 0},
        {"grid": 6},
        {"grid": 256},
        {"grid": 0},
        {"bound": 0},
        {"bound": 385},
        {"tau": 40_000},
        {"releases": 0},
        {"epsilon": 1e-12},
    ],
)
def test_sizes_of_a_first_moment_that_do_not_go_together(wrong):
    with pytest.raises(pp.PlanError):
        CroppedFirstMoment(**{"tau": 3, "universe": 50, "epsilon": 1, **wrong})


def test_a_first_moment_goes_on_from_its_state_with_its_weights():
    first, second = (CroppedFirstMoment(tau=3, universe=50, epsilon=1) for _ in range(2))
    first.update([1, 2], [3, 4])
    second.resume(first.state())
    for one in (first, second):
        one.update([2, 7], [-1, 5])
    assert first.state() == second.state()
