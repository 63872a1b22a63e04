"""Counters lose no more than they claim, on every outcome of every coin."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss

LARGE = pp.Budget(state=1, release=Fraction(3, 2))
"""Output noise of a small scale, so that few outcomes are many of all."""


class Named:
    """An incidence count whose releases name their statistics."""

    def __init__(self, coins, questions, **arguments):
        self._inner = pp.Incidence(coins=coins, **arguments)
        self._questions = questions

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def release(self):
        answer = self._inner.release(**self._questions)
        assert len(answer.counts) == len(answer.named), "the histogram was released"
        return answer


def named(modulus, questions, universe=1, budget=LARGE, releases=1, **arguments):
    total = budget.total(releases=releases, intrusions=0)
    law = pp.Law.flat(modulus, budget.state)
    return lambda coins: Named(
        coins,
        questions,
        law=law,
        epsilon=total,
        budget=budget,
        releases=releases,
        **{"universe": universe, "bound": modulus - 1, **arguments},
    )


def whole(modulus=3, universe=1, budget=LARGE, releases=1, intrusions=0, **arguments):
    return lambda coins: pp.Incidence(
        coins=coins,
        universe=universe,
        bound=(modulus - 1) // (2 if arguments.get("signed") else 1),
        law=pp.Law.flat(modulus, budget.state),
        epsilon=budget.total(releases=releases, intrusions=intrusions),
        budget=budget,
        releases=releases,
        intrusions=intrusions,
        **arguments,
    )


HISTORIES = {
    "appears once": ([[0]], [[]]),
    "appears again and again": ([[0, 0], [0]], [[], []]),
    "comes and goes": ([[(0, 1)], [(0, -1)], [(0, 2)]], [[], [], []]),
    "appears once less": ([[0], [0]], [[0], []]),
    "appears before and after a release": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "comes and goes around a release": ([[(0, 2)], RELEASE, [(0, -1)]], [[], RELEASE, []]),
    "appears after a release": ([[], RELEASE, [(0, 2)]], [[], RELEASE, []]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("modulus", [3, 7, 11])
def test_a_named_count_keeps_its_claim(history, modulus):
    stream, neighbour = HISTORIES[history]
    loss = exact_loss(named(modulus, {"exactly": (1,)}), stream, neighbour)
    assert loss.within(LARGE.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.parametrize(
    "questions",
    [
        {"at_least": (2,)},
        {"cropped_sum": (2,)},
        {"distinct": True},
        {"exactly": (0, 2)},
    ],
    ids=str,
)
def test_every_kind_of_named_count_keeps_its_claim(questions):
    stream, neighbour = [[(0, 1)], RELEASE, [(0, 1)]], [[], RELEASE, []]
    loss = exact_loss(named(7, questions), stream, neighbour, coins=EnumeratedCoins(tail=4))
    assert loss.within(LARGE.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 2)


@pytest.mark.slow
def test_two_named_releases_keep_their_claim():
    stream = [[0], RELEASE, [(0, 2)], RELEASE]
    make = named(7, {"exactly": (1,)}, releases=2)
    loss = exact_loss(make, stream, [[], RELEASE, [], RELEASE])
    assert loss.within(LARGE.total(releases=2, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.parametrize("user", range(3))
def test_a_named_count_of_signed_states_in_a_sample_keeps_its_claim(user):
    stream, neighbour = [[(user, -2)], RELEASE, [(user, 1)]], [[], RELEASE, []]
    make = named(3, {"exactly": (-1,)}, universe=3, cells=2, bound=1, signed=True)
    loss = exact_loss(make, stream, neighbour)
    assert loss.within(LARGE.total(releases=1, intrusions=0))


@pytest.mark.parametrize("history", HISTORIES)
def test_a_histogram_keeps_its_claim(history):
    stream, neighbour = HISTORIES[history]
    loss = exact_loss(whole(), stream, neighbour, coins=EnumeratedCoins(tail=2))
    assert loss.within(LARGE.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.slow
def test_two_histograms_keep_their_claim():
    stream = [[0], RELEASE, [0], RELEASE]
    make = whole(releases=2, budget=pp.Budget(state=1, release=3))
    loss = exact_loss(make, stream, [[], RELEASE, [], RELEASE], coins=EnumeratedCoins(tail=1))
    assert loss.within(7)
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.parametrize("users", [[5], [5, 6], [5, 5, 7]])
def test_hashed_counters_that_users_share_keep_their_claim(users, monkeypatch):
    """Two counters are too few to be read; what is published is the same."""
    monkeypatch.setattr("panprivacy.decoders.modular._MOST_STRAIN_OF_FEW", math.inf)
    others = [user for user in users if user != 5]
    make = whole(universe=None, cells=2, budget=pp.Budget(state=1, release=3))
    stream, neighbour = [users, RELEASE, [5]], [others, RELEASE, []]
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=1))
    assert loss.within(4)
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.parametrize("intrusions", [1, 2])
def test_counters_keep_their_claim_after_announced_intrusions(intrusions):
    stream = [[0], *[ANNOUNCE, [(0, 1)]] * intrusions]
    neighbour = [[], *[ANNOUNCE, []] * intrusions]
    budget = pp.Budget(state=Fraction(1, 2), release=1)
    loss = exact_loss(whole(budget=budget, intrusions=intrusions), stream, neighbour)
    assert loss.within((intrusions + 1) * Fraction(1, 2))


def test_the_state_of_a_counter_spends_all_that_its_budget_allows():
    loss = exact_loss(whole(7), [[0]], [[]])
    assert loss.epsilon == pytest.approx(1, abs=1e-6)
    assert loss.within(1)


def net(**arguments):
    plan = {"epsilon": 1, "expected": (1, 4), "memory": 2, "deletions": True, "bound": 2}
    return lambda coins: pp.DistinctCount(coins=coins, **{**plan, **arguments})


@pytest.mark.parametrize(
    ("stream", "neighbour"),
    [
        ([[(5, 1)], [(5, -1)], [(5, 2)]], [[], [], []]),
        ([[(5, 1), (6, 1)], [(5, -1)]], [[(6, 1)], []]),
        ([[(5, 1)], RELEASE, [(5, -1)]], [[], RELEASE, []]),
        ([[(5, 2), (6, 1)], RELEASE, [(5, -2)]], [[(6, 1)], RELEASE, []]),
    ],
)
@pytest.mark.parametrize("bound", [1, 2])
def test_a_distinct_count_with_deletions_keeps_its_claim(stream, neighbour, bound):
    rows = [row for step in stream if step != RELEASE for row in step]
    if max(abs(delta) for _, delta in rows) > bound:
        pytest.skip("the deltas need the larger bound")
    budget = pp.Budget(state=1, release=3)
    make = net(bound=bound, epsilon=4, budget=budget)
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=3))
    assert loss.within(4)
    assert loss.set_aside < Fraction(1, 2)


def test_a_law_that_loses_more_than_the_state_may_is_refused():
    with pytest.raises(pp.PlanError, match="loss"):
        pp.Incidence(universe=1, bound=2, law=pp.Law.flat(3, 2), epsilon=1)
