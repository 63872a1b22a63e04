"""Answers about states, read off one release."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.frames import COLUMNS


def test_quantiles_of_signed_states_count_from_the_lowest():
    visits = pp.Incidence(universe=4_000, bound=5, epsilon=50, signed=True)
    visits.update(np.arange(4_000), np.repeat([-2, -1, 1, 3], 1_000))
    answer = visits.release()
    assert [answer.quantile(share).value for share in (0.2, 0.4, 0.6, 0.9)] == [-2, -1, 1, 3]


def test_an_answer_that_was_not_asked_for_is_refused():
    answer = pp.Incidence(universe=100, bound=3, epsilon=1).release(exactly=1)
    for ask in (lambda: answer.exactly(2), answer.distinct, lambda: answer.quantile(0.5)):
        with pytest.raises(pp.PlanError, match="this release answers exactly 1"):
            ask()


def test_cropped_moments_are_sums_of_powers():
    visits = pp.Incidence(universe=200, bound=5, epsilon=200, releases=3)
    visits.update([1, 2, 3, 3], [1, 2, 2, 3])
    one = visits.release(cropped_moment=(4, 2))
    assert one.cropped_moment(4, 2).value == pytest.approx(1 + 4 + 16, abs=0.1)
    assert [str(name) for name in one.answers()] == ["cropped moment 4**2"]
    both = visits.release(cropped_moment=[(2, 3), (5, 1)], cropped_sum=5)
    assert both.cropped_moment(2, 3).value == pytest.approx(1 + 8 + 8, abs=0.1)
    assert both.cropped_moment(5, 1).value == pytest.approx(both.cropped_sum(5).value, abs=0.1)
    assert visits.release().cropped_moment(4, 2).value == pytest.approx(21, abs=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (5, "pair"),
        ("52", r"powers, such as 10\*\*2"),
        ((1, 2, 3), "pair"),
        ([(1, 2), 3], "pair"),
        ([(1, 2, 3)], "pair"),
        ((9, 2), "cropped_moment must lie within 1 to 5"),
        ((0, 2), "cropped_moment must lie within 1 to 5"),
        ((2, 0), "power"),
        ((2, 9), "power"),
        ((2, 1.5), "power"),
    ],
)
def test_moments_that_cannot_be_asked(wrong, message):
    visits = pp.Incidence(universe=200, bound=5, epsilon=1)
    with pytest.raises(pp.PlanError, match=message):
        visits.release(cropped_moment=wrong)
    assert visits.ledger.spent == visits.ledger.total - visits.internals.releasing.release_epsilon
    wide = pp.Incidence(universe=200, bound=2_000, epsilon=1)
    with pytest.raises(pp.PlanError, match=r"tau\*\*power must be at most"):
        wide.release(cropped_moment=(2_000, 4))


def test_a_cropped_mean_is_the_sum_over_the_universe():
    visits = pp.Incidence(universe=200, bound=3, epsilon=100)
    visits.update([1, 1, 2])
    answer = visits.release(cropped_sum=(1, 3))
    assert answer.cropped_mean(3).value == pytest.approx(3 / 200, abs=1e-4)
    assert answer.cropped_mean(1).value == pytest.approx(2 / 200, abs=1e-4)
    hashed = pp.Incidence(expected=20_000, bound=3, epsilon=3).release()
    with pytest.raises(pp.PlanError, match="universe"):
        hashed.cropped_mean(3)


@pytest.mark.parametrize(("share", "most"), [(0.25, 1), (0.5, 2), (0.9, 4)])
def test_quantiles_of_activity_are_those_of_the_users_that_came(share, most):
    visits = pp.Incidence(universe=4_000, bound=9, epsilon=50)
    states = np.repeat([0, 1, 2, 3, 4], 800)
    visits.update(np.arange(4_000), states)
    answer = visits.release().quantile(share)
    assert (answer.low, answer.value, answer.high) == (answer.low, most, answer.high)
    assert answer.low <= most <= answer.high


def test_tables_come_as_arrow_and_as_pandas():
    visits = pp.Incidence(universe=4_000, bound=3, epsilon=2, signed=True, releases=2)
    whole = visits.release().to_pandas()
    assert whole["argument"].tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert ((whole["low"] <= whole["value"]) & (whole["value"] <= whole["high"])).all()
    named = visits.release(exactly=(1,), distinct=True).to_arrow()
    assert named.column_names == list(COLUMNS)
    assert named["question"].to_pylist() == ["exactly", "distinct"]
    assert named["argument"].to_pylist() == [1, None]
