"""The cropped sum loses no more than it claims, on every outcome of every coin."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss
from panprivacy.audit.suite.products import Unseen
from panprivacy.statistics.cropped import sizes
from panprivacy.statistics.cropped.decompounded import DecompoundedModel, DecompoundedPlan
from panprivacy.statistics.cropped.sizes import CroppedSizes
from panprivacy.statistics.incidence.strain import SharedSpectrum

BUDGET = pp.Budget(state=1, release=Fraction(3, 2))
"""Output noise of a small scale, so that few outcomes are many of all."""


def cropped(universe=1, releases=1, intrusions=0, budget=BUDGET, **arguments):
    """Counters modulo 6: tau is 2, and there are 3 blocks."""
    total = budget.total(releases=releases, intrusions=intrusions)
    covers = {"releases": releases, "intrusions": intrusions, "budget": budget}
    sizes = {"tau": 2, "bound": 4, "universe": universe, **arguments}
    return lambda coins: pp.CroppedSum(coins=coins, epsilon=total, **covers, **sizes)


HISTORIES = {
    "appears once": ([[0]], [[]]),
    "is cropped": ([[(0, 4)]], [[]]),
    "is in the middle of a block": ([[(0, 1)], [(0, 2)]], [[(0, 1)], []]),
    "goes far beyond and comes back": (
        [[(0, 8)], [(0, 8)], [(0, -8)], [(0, -7)]],
        [[], [], [], []],
    ),
    "goes below 0": ([[(0, -3)]], [[]]),
    "appears before and after a release": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "comes and goes around a release": ([[(0, 4)], RELEASE, [(0, -4)]], [[], RELEASE, []]),
    "appears after a release": ([[], RELEASE, [(0, 2)]], [[], RELEASE, []]),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_a_cropped_sum_keeps_its_claim(history):
    assert cropped()(None).plan.law.modulus == 6
    loss = exact_loss(cropped(), *HISTORIES[history])
    assert loss.within(BUDGET.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.long
def test_two_releases_keep_their_claim():
    stream, neighbour = [[0], RELEASE, [(0, 3)], RELEASE], [[], RELEASE, [], RELEASE]
    loss = exact_loss(cropped(releases=2), stream, neighbour)
    assert loss.within(BUDGET.total(releases=2, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.long
@pytest.mark.parametrize("user", range(3))
def test_a_cropped_sum_of_a_sample_keeps_its_claim(user):
    stream, neighbour = [[(user, 2)], RELEASE, [(user, 1)]], [[], RELEASE, []]
    loss = exact_loss(cropped(universe=3, cells=2), stream, neighbour)
    assert loss.within(BUDGET.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.long
def test_hashed_users_of_one_cell_keep_the_claim():
    arguments = {"universe": None, "expected": 1, "cells": 2, "tau": 1, "bound": 1}
    stream, neighbour = [[5, 6, 7], RELEASE, [5]], [[6, 7], RELEASE, []]
    loss = exact_loss(cropped(**arguments), stream, neighbour)
    assert loss.within(BUDGET.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.long
def test_a_sum_of_very_many_users_keeps_its_claim(monkeypatch):
    """Two counters are too few to be read; the counts that are published are the same."""
    monkeypatch.setattr(sizes, "_MANY_USERS", 1)
    monkeypatch.setattr(SharedSpectrum, "is_readable", lambda *_: True)
    monkeypatch.setattr(DecompoundedModel, "answer", lambda *_: (0.0, 0.0, 0.0))
    monkeypatch.setattr(DecompoundedPlan, "absolute_error", lambda *_: 0.0)
    budget = pp.Budget(state=1, release=3)
    make = cropped(universe=None, expected=1, cells=2, bound=2, budget=budget)
    assert isinstance(make(None).plan, DecompoundedPlan)
    stream, neighbour = [[5, 6], RELEASE, [5]], [[6], RELEASE, []]
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=2))
    assert loss.within(4)
    assert loss.set_aside < Fraction(9, 10)
    monkeypatch.setattr(DecompoundedPlan, "sensitivity", lambda *_: 1)
    assert not exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=2)).within(4)


@pytest.mark.long
@pytest.mark.parametrize("user", [5, 6, 9])
def test_users_of_levels_keep_the_claim(user, monkeypatch):
    """Two levels of a cell each; of each the number of cells that count is published."""
    plan = CroppedSizes.plan
    monkeypatch.setattr(
        CroppedSizes, "plan", lambda *given: replace(plan(*given), levels=2, cells=2)
    )
    budget, sizes = pp.Budget(state=2, release=3), {"universe": None, "expected": (1, 2)}
    make = cropped(budget=budget, tau=1, bound=1, memory=64, **sizes)
    assert make(None).plan.groups == 2
    stream, neighbour = [[user, 6, 7], RELEASE, [user]], [[6, 7], RELEASE, []]
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=2))
    assert loss.within(budget.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 50)


INTRUDED = {
    "before": ([[0], RELEASE, [0], ANNOUNCE, [(0, 1)]], [[], RELEASE, [], ANNOUNCE, []]),
    "after": ([[(0, 2)], ANNOUNCE, [(0, -1)], RELEASE], [[], ANNOUNCE, [], RELEASE]),
    "both": ([[0], RELEASE, ANNOUNCE, [0], RELEASE], [[], RELEASE, ANNOUNCE, [], RELEASE]),
}
"""Releases before and after an announced intrusion: of high cells, and of cells that are not 0."""


@pytest.mark.parametrize("when", INTRUDED)
def test_a_cropped_sum_around_an_announced_intrusion_keeps_its_claim(when):
    stream, neighbour = INTRUDED[when]
    releases = stream.count(RELEASE)
    loss = exact_loss(cropped(releases=releases, intrusions=1), stream, neighbour)
    assert loss.within(BUDGET.total(releases=releases, intrusions=1))
    assert loss.set_aside < Fraction(1, 100)


SEVERAL = {
    "before": ([[], [(0, 1)], RELEASE], [[], [], RELEASE]),
    "between": ([ANNOUNCE, [], [(0, 1)], RELEASE], [ANNOUNCE, [], [], RELEASE]),
    "after all": (
        [[(0, 1)], ANNOUNCE, ANNOUNCE, [], [(0, -1)], RELEASE],
        [[], ANNOUNCE, ANNOUNCE, [], [], RELEASE],
    ),
}
"""Where two intrusions may be announced: values have other scores after each."""


@pytest.mark.parametrize("when", SEVERAL)
def test_a_cropped_sum_of_scores_keeps_its_claim_around_two_announced_intrusions(when):
    budget = pp.Budget(Fraction(1, 2), Fraction(9))
    total = budget.total(releases=1, intrusions=2)
    sizes = {"tau": 1, "bound": 1, "universe": 1, "budget": budget, "intrusions": 2}
    stream, neighbour = SEVERAL[when]
    loss = exact_loss(
        lambda coins: pp.CroppedSum(epsilon=total, coins=coins, **sizes), stream, neighbour
    )
    assert loss.within(total)
    assert loss.set_aside < Fraction(1, 100)
    assert float(loss) > 0.99 * float(budget.release)


def test_the_state_spends_all_that_its_law_loses():
    losses = [exact_loss(cropped(), [[(0, state)]], [[]]) for state in range(1, 6)]
    law = cropped()(None).plan.law
    assert all(loss.within(1) for loss in losses)
    assert max(map(float, losses)) == pytest.approx(law.loss, abs=1e-9)
    assert law.loss == pytest.approx(1, abs=1e-5)


def test_two_looks_spend_all_that_two_looks_may():
    loss = exact_loss(cropped(intrusions=1), [[(0, 2)], ANNOUNCE, [(0, -4)]], [[], ANNOUNCE, []])
    assert loss.within(2)
    assert float(loss) == pytest.approx(2, abs=1e-4)


def test_one_user_moves_the_count_by_at_most_one():
    """A release alone, of a state that nobody sees, costs less than that of a seen one."""
    loss = exact_loss(cropped(budget=pp.Budget(4, 1)), [[(0, 2)], RELEASE], [[], RELEASE])
    assert loss.within(5)


class Mean:
    """A cropped sum of which each release is asked for the mean."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def release(self):
        return self._inner.release(mean=True)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(one, marks=[] if one == "appears once" else pytest.mark.slow)
        for one in HISTORIES
    ],
)
def test_a_mean_keeps_its_claim(history):
    make = cropped()
    loss = exact_loss(
        lambda coins: Mean(make(coins)), *HISTORIES[history], coins=EnumeratedCoins(tail=3)
    )
    assert loss.within(BUDGET.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.long
@pytest.mark.parametrize("state", [2, -1])
@pytest.mark.parametrize("budget", [BUDGET, pp.Budget(state=3, release=Fraction(1, 2))])
def test_a_mean_that_nobody_sees_the_state_of_keeps_its_claim(state, budget):
    make = cropped(budget=budget)
    loss = exact_loss(
        lambda coins: Unseen(Mean(make(coins))),
        [[(0, state)], RELEASE],
        [[], RELEASE],
        coins=EnumeratedCoins(tail=3),
    )
    assert loss.within(make(None).guarantee.unseen_loss.epsilon)
