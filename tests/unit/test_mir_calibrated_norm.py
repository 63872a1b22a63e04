"""Norms from a sketch with calibrated noise: what moves it, what is read, and how far it is off."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedNorm
from panprivacy.statistics.release import Name
from panprivacy.testing import SeededCoins


def norm(**given):
    sizes = {"columns": [[1, 0], [0, 1], [1, 1]], "modulus": 7, "norm": 1, "epsilon": 60}
    return CalibratedNorm(**{**sizes, "coins": SeededCoins(1), **given})


def test_with_a_huge_epsilon_the_least_norm_is_read():
    """A state of 1 and 1 in the first two columns is as well 1 in the third."""
    with pytest.warns(pp.WeakEpsilonWarning):
        made = norm()
    made.update([0, 1])
    answer = made.release()
    assert answer.value == pytest.approx(1, abs=0.1)
    made.forget()


def test_a_state_as_large_as_the_modulus_is_none():
    with pytest.warns(pp.WeakEpsilonWarning):
        made = norm()
    made.update([2], [7])
    assert made.release().value == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"modulus": 1},
        {"norm": 3},
        {"universe": 1},
        {"universe": 5, "norm": 2},
    ],
)
def test_sizes_of_a_norm_that_do_not_go_together(wrong):
    with pytest.raises(pp.PlanError):
        CalibratedNorm(**{"columns": [[1], [2]], "modulus": 5, "epsilon": 1, **wrong})


def test_a_map_that_loses_nothing_is_told_on_both_sides():
    plans = [
        CalibratedNorm(columns=columns, modulus=5, epsilon=1).plan
        for columns in ([[1, 0], [0, 1]], [[1, 1], [1, 2]], [[1, 0], [0, 1], [1, 1]], [[1, 2]])
    ]
    assert [plan.model(0).exact for plan in plans] == [True, True, False, True]


def test_users_who_share_a_column_are_told_from_below_alone():
    plan = CalibratedNorm(columns=[[1, 0], [0, 1]], modulus=5, universe=3, epsilon=1).plan
    assert not plan.model(0).exact
    assert plan.model(0).answer([1], 0.9)[2] == 3


def test_the_reach_of_errors_is_the_smallest_that_is_exceeded_so_rarely():
    """Against the law of the sum itself, on a line long enough."""
    model = CalibratedNorm(columns=[[1], [3]], modulus=31, norm=1, epsilon=2).plan.model(0)
    far = np.arange(-4_000, 4_001)
    laplace = np.exp(-np.abs(far) / model.scale)
    law = np.convolve(laplace / laplace.sum(), model.chances)
    tails = law[::-1].cumsum()[::-1]
    for beyond in (0.4, 0.05, 0.001):
        reach = model.reach(beyond)
        place = reach + 4_000  # where errors of `reach` stand
        assert tails[place + 1] <= beyond < tails[place]


@pytest.mark.parametrize(("norm", "truth"), [(0, 2), (1, 4), (2, 10**0.5)])
def test_the_truth_is_the_norm_of_states_modulo_m(norm, truth):
    plan = CalibratedNorm(columns=[[1], [2], [3]], modulus=7, norm=norm, epsilon=1).plan
    states = np.array([3, 6, 7])
    assert plan.truth(plan.name, states, states) == pytest.approx(truth)
    assert plan.name == Name("", "norm", (("power", norm),))


@pytest.mark.parametrize(
    ("norm", "unit", "largest"),
    [(0, "users", 3), (1, "sum of states", 9), (2, "root of a sum of squares", 27**0.5)],
)
def test_each_norm_has_its_unit_and_its_largest(norm, unit, largest):
    plan = CalibratedNorm(columns=[[1], [2], [3]], modulus=7, norm=norm, epsilon=1).plan
    assert plan.unit == unit
    assert plan.largest == pytest.approx(largest)
    model = plan.model(0)
    assert model.estimate([-5]) == 0
    assert model.estimate([10**6]) == pytest.approx(largest)


def test_a_lattice_that_is_too_large_has_the_norm_that_enumerates_nothing_for_another():
    for norm, named in ((1, True), (0, False)):
        with pytest.raises(pp.PlanError, match="too large to enumerate") as refused:
            CalibratedNorm(columns=[[1] * 20], modulus=5, norm=norm, epsilon=1)
        assert ("or LaplaceNorm" in str(refused.value)) is named
