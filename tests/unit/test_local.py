"""The local model: what is refused, who pays, and what is read off reports."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy import local
from panprivacy.audit import EnumeratedCoins
from panprivacy.local.frequencies import Spread, intervals
from panprivacy.testing import SeededCoins

EACH = [
    local.RandomisedResponse(5, 1),
    local.UnaryEncoding(5, 1),
    local.HadamardResponse(5, 1),
    local.MatrixRandomiser([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]], "0.7"),
]
KINDS = pytest.mark.parametrize("randomiser", EACH, ids=lambda one: type(one).__name__)


class NoCoins:
    """Coins that nobody may toss."""

    def __getattr__(self, name):
        raise AssertionError(name)


@KINDS
@pytest.mark.parametrize("values", [[0, 7], [-1], [0.5], [[0]], ["a"], [None], 1])
def test_what_is_no_value_is_refused_before_any_coin(randomiser, values):
    with pytest.raises(pp.InputError, match="whole number") as caught:
        randomiser.randomise(values, NoCoins())
    assert "7" not in str(caught.value)


def test_the_row_to_blame_is_named():
    with pytest.raises(pp.InputError, match="row 3 "):
        EACH[0].randomise([0, 1, 5, 9])


@KINDS
def test_what_is_no_report_is_refused(randomiser):
    reports = randomiser.randomise([0, 1, 1], SeededCoins(1))
    reports[1] = 255
    with pytest.raises(pp.InputError, match="row 2 "):
        randomiser.estimate(reports)


def test_rows_of_another_width_are_no_reports():
    with pytest.raises(pp.InputError, match="rows of 1 bytes"):
        EACH[1].estimate(np.zeros((3, 2), np.uint8))


@KINDS
def test_nobody_is_nothing(randomiser):
    reports = randomiser.randomise([])
    assert len(reports) == 0
    answer = randomiser.estimate(reports)
    assert answer.users == 0
    assert not answer.high.any()
    assert not answer.shares.any()


@pytest.mark.parametrize("kind", [local.RandomisedResponse, local.UnaryEncoding])
@pytest.mark.parametrize("values", [1, 0, 2.5, "3", (1 << 20) + 1])
def test_a_number_of_values_out_of_range_is_refused(kind, values):
    with pytest.raises(pp.PlanError, match="values must be"):
        kind(values, 1)


@KINDS
def test_a_report_is_as_long_as_it_says(randomiser):
    reports = randomiser.randomise(np.arange(500) % randomiser.values)
    if reports.ndim == 1:
        assert reports.max() < 1 << randomiser.bits
    else:
        assert reports.shape[1] == -(-randomiser.bits // 8)


@pytest.mark.parametrize("values", [2, 1 << 16])
@pytest.mark.parametrize(
    "kind", [local.RandomisedResponse, local.UnaryEncoding, local.HadamardResponse]
)
def test_the_smallest_epsilon_still_tells_something(kind, values):
    smallest = kind(values, "1e-6")
    assert 0 < smallest.loss <= 1e-6
    assert math.isfinite(smallest.variance)
    with pytest.raises(pp.PlanError, match="epsilon must be at least 1e-06"):
        kind(values, "9e-7")


def test_much_epsilon_is_warned_about():
    with pytest.warns(pp.WeakEpsilonWarning):
        local.RandomisedResponse(2, 21)


def test_lengths_of_reports():
    assert [local.RandomisedResponse(k, 1).bits for k in (2, 3, 256, 257)] == [1, 2, 8, 9]
    assert local.UnaryEncoding(257, 1).bits == 257
    assert [local.HadamardResponse(k, 1).bits for k in (3, 7, 8, 255)] == [2, 3, 4, 8]


def test_a_large_batch_is_drawn_in_pieces(monkeypatch):
    monkeypatch.setattr("panprivacy.local.randomiser.PIECE", 50)
    randomiser = local.UnaryEncoding(10, 20)
    values = np.arange(33) % 10
    reports = randomiser.randomise(values)
    bits = np.unpackbits(reports, axis=1, count=10, bitorder="little")
    others = bits.copy()
    others[np.arange(33), values] = 0
    assert others.sum() == 0  # but for a chance of 1e-6: each is 1 once in e**20
    assert randomiser.estimate(reports).counts == tuple(bits.sum(axis=0).tolist())


# Which encoding


@pytest.mark.parametrize("epsilon", [0.1, 1, 2, 4])
@pytest.mark.parametrize("values", [2, 4, 10, 30, 100, 300])
def test_the_best_encoding_has_the_smallest_error(values, epsilon):
    kinds = (local.RandomisedResponse, local.UnaryEncoding, local.HadamardResponse)
    best = local.best_encoding(values, epsilon)
    assert best.variance == min(kind(values, epsilon).variance for kind in kinds)
    edge = 3 * math.exp(epsilon) + 2
    if values < edge * 0.9:
        assert isinstance(best, local.RandomisedResponse)
    if values > edge * 1.2:
        assert isinstance(best, local.UnaryEncoding)


def test_with_short_reports_hadamard_response_is_best():
    best = local.best_encoding(1_000, 1, most_bits=32)
    assert isinstance(best, local.HadamardResponse)
    assert best.variance < 1.3 * local.UnaryEncoding(1_000, 1).variance
    with pytest.raises(pp.PlanError, match="has 10 bits or more"):
        local.best_encoding(1_000, 1, most_bits=9)


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_the_variances_are_those_of_the_formulas(epsilon):
    e, k = math.exp(epsilon), 1_000
    held = 1 / k  # what holders add is small where there are many values
    assert local.UnaryEncoding(k, epsilon).variance == pytest.approx(
        4 * e / (e - 1) ** 2 + held, rel=0.01
    )
    assert local.RandomisedResponse(k, epsilon).variance == pytest.approx(
        (e + k - 2) / (e - 1) ** 2, rel=0.02
    )


@KINDS
def test_the_variance_is_that_of_all_reports(randomiser):
    """By enumeration of all reports of one user, each value as likely."""
    total = 0.0
    for value in range(randomiser.values):
        coins, first, second = EnumeratedCoins(), 0.0, 0.0
        for _ in coins:
            share = randomiser.estimate(randomiser.randomise([value], coins)).estimates
            first = first + float(coins.probability) * share
            second = second + float(coins.probability) * share**2
        expected = np.eye(randomiser.values)[value]
        np.testing.assert_allclose(first, expected, atol=1e-9)  # unbiased
        total += float((second - first**2).mean()) / randomiser.values
    assert total == pytest.approx(randomiser.variance, rel=1e-9)


@pytest.mark.parametrize(
    "randomiser",
    [
        local.RandomisedResponse(5, 1),
        local.UnaryEncoding(3, 1),
        local.HadamardResponse(5, 1),
        local.HadamardResponse(6, 3),
    ],
    ids=str,
)
def test_the_spread_is_that_of_all_reports(randomiser):
    """Fixed and slope of a value, where two users hold another one and it, by enumeration."""
    values = [0, 1]
    coins, first, second, spread = EnumeratedCoins(), 0.0, 0.0, 0.0
    for _ in coins:
        reports = randomiser.randomise(values, coins)
        found = randomiser._spread(randomiser._scores(reports), len(values))
        chance = float(coins.probability)
        first, second = first + chance * found.estimates, second + chance * found.estimates**2
        held = np.bincount(values, minlength=randomiser.values)
        spread = spread + chance * (found.fixed + found.slope * held)
    np.testing.assert_allclose(spread, second - first**2, rtol=1e-9)


# Intervals


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


# The oracle


@pytest.fixture
def oracle():
    return local.LROracle([0, 1, 0, 1], 1)


def test_nobody_is_asked_where_one_cannot_pay(oracle):
    oracle.ask(local.RandomisedResponse(2, "2/3"), users=[2])
    with pytest.raises(pp.BudgetError, match="nobody was asked"):
        oracle.ask(local.RandomisedResponse(2, "1/2"), of=NoCoins())
    assert oracle.spent(range(4)) == [0, 0, Fraction(2, 3), 0]
    oracle.ask(local.RandomisedResponse(2, "1/3"))
    assert oracle.spent(range(4)) == [Fraction(1, 3)] * 2 + [1, Fraction(1, 3)]


def test_all_of_epsilon_can_be_spent_exactly(oracle):
    third = local.RandomisedResponse(2, "1/3")
    for _ in range(3):
        oracle.ask(third)
    assert oracle.spent([0]) == [1]
    with pytest.raises(pp.BudgetError):
        oracle.ask(local.RandomisedResponse(2, "1e-6"), users=[3])


@pytest.mark.parametrize("users", [[4], [-1], [0.5], [[0]], [1, 1]])
def test_users_that_do_not_exist_or_are_named_twice_are_refused(oracle, users):
    with pytest.raises(pp.InputError, match="user"):
        oracle.ask(EACH[0], users=users)
    assert oracle.spent(range(4)) == [0] * 4


def test_what_fails_after_it_was_paid_is_lost(oracle):
    with pytest.raises(pp.InputError):
        oracle.ask(local.RandomisedResponse(2, 1), of=lambda held: held + 7)
    assert oracle.spent([0]) == [1]


def test_records_need_users():
    with pytest.raises(pp.InputError, match="axis"):
        local.LROracle(3, 1)


def test_many_users_of_many_histories_are_counted_in_few_numbers():
    oracle = local.LROracle(np.zeros(100_000, int), 1)
    for part in range(8):
        oracle.ask(local.RandomisedResponse(2, "1/8"), users=np.arange(part * 10_000))
    assert len(oracle._sums) == 8
    assert oracle.spent([0, 10_000, 99_999]) == [Fraction(7, 8), Fraction(6, 8), 0]


# Statistical queries


def test_a_plan_says_how_many_users_it_takes():
    t = math.tanh(0.5)
    needed = local.users_needed(0.05, 1, queries=3, failure=0.01)
    formula = math.log(6 / 0.01) / (2 * ((0.05 - 2**-17) * t) ** 2)
    assert needed == math.ceil(formula * (1 + 1e-9))
    with pytest.raises(pp.PlanError, match=f"3 queries take {3 * needed:,} users"):
        local.StatisticalQueries(
            local.LROracle(np.zeros(3 * needed - 1), 1), tolerance=0.05, queries=3, failure=0.01
        )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tolerance": 0, "epsilon": 1, "failure": 0.1}, "tolerance"),
        ({"tolerance": 1e-6, "epsilon": 1, "failure": 0.1}, "tolerance must be at least"),
        ({"tolerance": 0.1, "epsilon": 1e-12, "failure": 0.1}, "epsilon must be at least"),
        ({"tolerance": 0.1, "epsilon": 1, "failure": 1}, "failure"),
        ({"tolerance": 0.1, "epsilon": 1, "failure": 0.1, "queries": 0}, "queries"),
    ],
)
def test_a_plan_out_of_range_is_refused(arguments, says):
    with pytest.raises(pp.PlanError, match=says):
        local.users_needed(**arguments)


@pytest.fixture
def asked():
    oracle = local.LROracle(np.arange(2_000) % 10, 8)
    return local.StatisticalQueries(oracle, tolerance=0.1, queries=2, failure=1e-6)


def test_there_are_as_many_queries_as_planned(asked):
    users = set()
    for _ in range(2):
        answer = asked.ask(lambda held: users.update(held) or held / 9)
        assert abs(answer.value - 0.5) < 0.1
        assert answer.high - answer.low == pytest.approx(0.2)
    with pytest.raises(pp.BudgetError, match="all 2 queries were asked"):
        asked.ask(lambda held: held / 9)
    assert asked.oracle.spent(range(2_000)) == [8] * 2_000


def test_users_are_asked_in_an_order_drawn_at_random(asked):
    assert asked._order.tolist() != list(range(2_000))
    assert sorted(asked._order.tolist()) == list(range(2_000))


@pytest.mark.parametrize("query", [lambda held: held, lambda held: held / 9 - 1, lambda held: 0.5])
def test_a_query_gives_a_share_for_each_user(asked, query):
    with pytest.raises(pp.InputError, match="number of 0 to 1"):
        asked.ask(query)


class EachPairOfBytes:
    """Coins that give every pair of bytes once."""

    def categorical(self, weights, size):
        assert list(weights) == [1] * 256
        assert size == 2 << 16
        return np.concatenate([np.arange(1 << 16) >> 8, np.arange(1 << 16) & 255]).astype(np.uint32)


@pytest.mark.parametrize("share", [0, 0.3, 1e-5, 0.5, 1])
def test_the_coin_of_a_share_has_its_probability_exactly(asked, share):
    asked.oracle._coins = EachPairOfBytes()
    tossed = asked._coins_of(np.full(1 << 16, share, float))
    assert tossed.sum() == round(share * (1 << 16))


@pytest.mark.parametrize("cuts", [[], [[]], [[float("nan")]]])
def test_a_learner_needs_cuts(cuts):
    with pytest.raises(pp.PlanError, match="cuts"):
        local.learn_stump(local.LROracle(np.zeros((9, 2)), 1), cuts, 0.1)


def test_the_opposite_rule_is_found_where_it_errs_less():
    age = np.arange(40_000) % 100
    oracle = local.LROracle(np.column_stack([age % 7, age, age < 30]), 4)
    learned = local.learn_stump(oracle, [[3], [10, 30, 50]], 0.1, failure=1e-6)
    assert learned.stump == local.Stump(1, 30, 0)
    assert learned.error.low <= 0 <= learned.error.high
