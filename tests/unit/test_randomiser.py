"""The local model: what is refused, who pays, and what is read off reports."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import EnumeratedCoins
from panprivacy.papers import local
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
    monkeypatch.setattr("panprivacy.papers.local.randomiser.PIECE", 50)
    randomiser = local.UnaryEncoding(10, 20)
    values = np.arange(33) % 10
    reports = randomiser.randomise(values)
    bits = np.unpackbits(reports, axis=1, count=10, bitorder="little")
    others = bits.copy()
    others[np.arange(33), values] = 0
    assert others.sum() == 0  # but for a chance of 1e-6: each is 1 once in e**20
    assert randomiser.estimate(reports).counts == tuple(bits.sum(axis=0).tolist())


# Which encoding


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


# The oracle


# Statistical queries


class Calls(SeededCoins):
    """Coins that note what they are asked for."""

    def __init__(self):
        super().__init__(1)
        self.calls = []

    def bernoulli(self, probability, size):
        self.calls.append((probability, size))
        return super().bernoulli(probability, size)

    def categorical(self, weights, size):
        self.calls.append((tuple(weights), size))
        return super().categorical(weights, size)


UNEQUAL = local.MatrixRandomiser([["1/2", "1/2"], ["3/8", "5/8"]], 1)
"""Two laws whose weights are of different sizes."""


@pytest.mark.parametrize("randomiser", [*EACH, UNEQUAL], ids=lambda one: type(one).__name__)
def test_what_is_drawn_does_not_depend_on_the_values(randomiser):
    """How long a report takes would tell its value."""
    found = set()
    for value in range(min(randomiser.values, 20)):
        coins = Calls()
        reports = randomiser.randomise([value, 0, value], coins)
        found.add((tuple(coins.calls), reports.shape, reports.dtype))
    assert len(found) == 1
