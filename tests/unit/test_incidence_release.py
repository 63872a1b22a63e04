"""Answers about states, read off one release."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.frames import COLUMNS
from panprivacy.testing import SeededCoins


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


def activity(seed=1, **asked):
    """The answers about 60,000 users of 100,000, hardly without noise."""
    visits = pp.Incidence(universe=100_000, bound=30, below=0, epsilon=100, coins=SeededCoins(seed))
    states = np.minimum(np.random.default_rng(1).geometric(0.3, 60_000), 30)
    visits.update(np.arange(60_000), states)
    return states, visits.release(**asked)


def test_quantiles_a_mean_and_ranges_are_answered_by_name():
    states, answer = activity(quantile=(0.5, 0.9), mean=True, histogram=(1, 3, 10), distinct=True)
    assert [str(name) for name in answer] == [
        "distinct", "between 1 to 2", "between 3 to 9", "at least 10",
        "quantile 0.5", "quantile 0.9", "mean",
    ]  # fmt: skip
    assert len(answer) == 7
    truths = [60_000, (states < 3).sum(), ((states > 2) & (states < 10)).sum(), (states > 9).sum()]
    truths += [*np.quantile(states, (0.5, 0.9), method="inverted_cdf"), states.mean()]
    for one, truth in zip(answer.values(), truths, strict=True):
        assert one.low <= truth <= one.high
    assert answer["mean"].value == pytest.approx(states.mean(), rel=1e-3)
    assert answer["mean"].high - answer["mean"].low < 0.01
    assert answer["quantile 0.9"].name.columns()["arguments"] == "share=0.9"
    assert answer["mean"].unit == "events per user"
    assert answer.mean().value == answer["mean"].value


def test_a_plan_knows_the_truth_and_the_names_of_these():
    visits = pp.Incidence(universe=100, bound=9, epsilon=9, coins=SeededCoins(1))
    asked = {"quantile": (0.5,), "mean": True, "histogram": (2, 5)}
    names = tuple(visits.release(**asked))
    query = visits.internals.releasing.query(asked)
    assert [name.question for name in visits.plan.names(query)] == [one.question for one in names]
    states = np.array([1, 2, 4, 9])
    truths = [visits.plan.truth(name, states, states) for name in names]
    assert truths == [2, 1, 2, 4]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"quantile": 0}, "strictly between 0 and 1"),
        ({"quantile": "1"}, "strictly between 0 and 1"),
        ({"quantile": 7}, "share from 0 to 1"),
        ({"histogram": (3, 3)}, "rising states"),
        ({"histogram": (0, 3)}, "must lie within 1 to 9"),
        ({"histogram": 99}, "raise the bound"),
        ({"mean": 1}, "mean must be True or False"),
    ],
)
def test_questions_about_users_that_make_no_sense_cost_nothing(asked, reason):
    visits = pp.Incidence(universe=100, bound=9, epsilon=9, coins=SeededCoins(1))
    spent = visits.ledger.spent
    with pytest.raises(pp.PlanError, match=reason):
        visits.release(**asked)
    assert visits.ledger.spent == spent


def test_shards_answer_quantiles_together():
    key = bytes(16)
    shards = [
        pp.Incidence(expected=2_000, bound=9, below=0, epsilon=20, key=key, coins=SeededCoins(one))
        for one in (1, 2)
    ]
    for place, one in enumerate(shards):
        one.update(np.arange(1_000) + 1_000 * place, np.full(1_000, 2 + 4 * place))
    parts = [one.contribute(quantile=(0.25, 0.75), mean=True) for one in shards]
    answer = pp.merge(parts)
    assert [one.value for one in answer.values()][:2] == [2, 6]
    assert answer["mean"].value == pytest.approx(4, abs=0.2)
