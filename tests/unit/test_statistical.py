"""Statistical queries: whom they ask, and how many they take."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers import local
from panprivacy.papers.local.response import GRID, ShareResponse
from panprivacy.privacy.coins import SystemCoins


def test_a_plan_says_how_many_users_it_takes():
    t = math.tanh(0.5)
    needed = local.users_needed(0.05, 1, queries=3, failure=0.01)
    formula = math.log(6 / 0.01) / (2 * ((0.05 - 2**-17) * t) ** 2)
    assert needed == math.ceil(formula * (1 + 1e-9))
    oracle = local.LROracle(np.zeros(3 * needed - 1), 1, domain=1)
    with pytest.raises(pp.PlanError, match=f"3 queries take {3 * needed:,} users"):
        local.StatisticalQueries(oracle, tolerance=0.05, queries=3, failure=0.01)


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
    oracle = local.LROracle(np.arange(2_000) % 10, 8, domain=10)
    return local.StatisticalQueries(oracle, tolerance=0.1, queries=2, failure=1e-6)


def test_there_are_as_many_queries_as_planned(asked):
    for _ in range(2):
        answer = asked.ask(lambda held: held / 9)
        assert abs(answer.value - 0.5) < 0.1
        assert answer.high - answer.low == pytest.approx(0.2)
    with pytest.raises(pp.BudgetError, match="all 2 queries were asked"):
        asked.ask(lambda held: held / 9)
    assert asked.oracle.spent(range(2_000)) == [8] * 2_000


def test_users_are_asked_in_an_order_drawn_at_random(asked):
    assert asked._order.tolist() != list(range(2_000))
    assert sorted(asked._order.tolist()) == list(range(2_000))


@pytest.mark.parametrize("query", [lambda held: held, lambda held: held / 9 - 1, lambda held: 0.5])
def test_a_query_gives_a_share_for_each_record(asked, query):
    with pytest.raises(pp.InputError, match="number of 0 to 1"):
        asked.ask(query)
    assert asked.oracle.spent(range(2_000)) == [0] * 2_000
    assert asked.ask(lambda held: held / 9).name.arguments == (("query", 1),)


class EachPairOfBytes:
    """Coins that give every pair of bytes once."""

    def categorical(self, weights, size):
        assert list(weights) == [1] * 256
        assert size == 2 << 16
        return np.concatenate([np.arange(1 << 16) >> 8, np.arange(1 << 16) & 255]).astype(np.uint32)


@pytest.mark.parametrize("share", [0, 0.3, 1e-5, 0.5, 1])
def test_the_coin_of_a_share_has_its_probability_exactly(share, monkeypatch):
    tossed, draw = [], local.RandomisedResponse._draw

    def noted(one, values, coins):
        tossed.append(values.sum())
        return draw(one, values, coins)

    class Both(EachPairOfBytes, SystemCoins):
        def categorical(self, weights, size):
            wide = len(weights) == 256
            return (EachPairOfBytes if wide else SystemCoins).categorical(self, weights, size)

    monkeypatch.setattr(local.RandomisedResponse, "_draw", noted)
    ShareResponse(1).randomise(np.full(1 << 16, round(share * GRID)), Both())
    assert tossed == [round(share * GRID)]
